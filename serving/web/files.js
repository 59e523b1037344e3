// Translates a file that is chosen or dropped, and hands back the finished one.

import { element, part } from "./elements.js";
import { Problem, postJson } from "./server.js";

// How many refused places the page names.
const MOST_NAMED = 20;

let running = null;
let address = null;

/**
 * Connects the box for files.
 *
 * @param about function that returns what the server tells of files: {suffixes, max_bytes}.
 * @param asked function that returns {model, version, glossary}.
 */
export function connectFiles(about, asked) {
  const translate = ([file]) => file && translateFile(file, about(), asked());
  part("file").addEventListener("change", () => {
    translate([...part("file").files]);
    // The same file can be chosen again.
    part("file").value = "";
  });
  const box = part("files");
  for (const event of ["dragover", "drop"]) {
    // Beside the box, the browser would leave the page to show the file.
    document.addEventListener(event, (dragged) => dragged.preventDefault());
  }
  box.addEventListener("dragover", () => box.classList.add("dragged"));
  for (const event of ["dragleave", "drop"]) {
    box.addEventListener(event, () => box.classList.remove("dragged"));
  }
  box.addEventListener("drop", ({ dataTransfer }) => translate([...dataTransfer.files]));
}

/** Shows the box if the chosen version can translate files. */
export function showFiles(about, needsKey, canTranslate) {
  part("files").hidden = !about || !canTranslate;
  if (!about) return;
  part("file").accept = about.suffixes.join(",");
  part("formats").textContent = `${about.suffixes.join(" ")}, at most ${megabytes(about)} MB`;
  part("key-box").hidden = !needsKey;
}

async function translateFile(file, about, asked) {
  running?.abort();
  const controller = (running = new AbortController());
  say("");
  part("file-result").hidden = true;
  part("file-state").textContent = `Translating ${file.name} …`;
  try {
    if (file.size > about.max_bytes) {
      throw new Problem(
        `${file.name} has more than ${megabytes(about)} MB; split it, or use verbatim translate.`,
      );
    }
    const content = await base64(file);
    const request = { ...asked, name: file.name, content, api_key: part("key").value };
    showResult(file.name, await postJson("web/translate", request, controller.signal));
  } catch (error) {
    if (error.name === "AbortError") return;
    if (!(error instanceof Problem)) throw error;
    say(error.message);
  } finally {
    if (running === controller) {
      running = null;
      part("file-state").textContent = "";
    }
  }
}

function showResult(source, { name, content, refused, ...counts }) {
  const bytes = Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0));
  if (address) URL.revokeObjectURL(address);
  address = URL.createObjectURL(new Blob([bytes]));
  Object.assign(part("download"), { href: address, download: name });
  part("download").textContent = `Download ${name}`;
  part("counts").textContent =
    `${source}: ${counts.translated} translated, ${counts.blank} blank, ` +
    `${counts.translated_before} translated before, ${refused.length} refused`;
  const lines = refused.slice(0, MOST_NAMED).map(({ line, reason }) => {
    return element("li", "text", { textContent: `Line ${line}: ${reason}` });
  });
  if (refused.length > MOST_NAMED) {
    const textContent = `${refused.length - MOST_NAMED} more places were refused.`;
    lines.push(element("li", "", { textContent }));
  }
  part("refused").replaceChildren(...lines);
  part("refused").hidden = !lines.length;
  part("file-result").hidden = false;
  part("download").click();
}

function base64(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result.slice(reader.result.indexOf(",") + 1));
    reader.onerror = () => {
      reject(new Problem(`${file.name} cannot be read; choose a file, not a folder.`));
    };
    reader.readAsDataURL(file);
  });
}

function megabytes({ max_bytes }) {
  return Number((max_bytes / 1e6).toFixed(1));
}

function say(sentence) {
  part("file-problem").textContent = sentence;
  part("file-problem").hidden = !sentence;
}
