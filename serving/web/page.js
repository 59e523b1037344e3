// The form of the page: which model is asked what. It asks the server that the page comes from.

import { showAnswer } from "./answer.js";
import { predictPath, showCalls } from "./calls.js";
import { showCard } from "./card.js";
import { element, part } from "./elements.js";
import { connectFiles, showFiles } from "./files.js";
import { Problem, fetchJson, postJson } from "./server.js";
import { WORDING, bestWay, readsTerms, takesGlossary } from "./ways.js";

let models = [];
// What the server tells of itself: {grpc_port, needs_key, files}.
let server = {};
// The AbortController of the request that is not answered yet.
let running = null;

async function loadModels() {
  const chosen = choice();
  const { models: found, ...about } = await fetchJson("web/models");
  server = about;
  if (JSON.stringify(found) === JSON.stringify(models)) return;
  models = found;
  if (!choose(chosen) && chosen.model) throw new Problem(missing(chosen));
}

/** Returns the way to ask the chosen version, with its further inputs; null if there is none. */
function wayToAsk() {
  return bestWay(chosenVersion()?.signatures ?? {});
}

// Models and versions.

/** Returns the chosen model's name, and the version as the end of its path ("" is the latest). */
function choice() {
  return { model: part("model").value, version: part("version").value };
}

function chosenModel() {
  return models.find((model) => model.name === part("model").value);
}

function chosenVersion() {
  const model = chosenModel();
  const [, kind, name] = part("version").value.split("/");
  const number = kind === "labels" ? model?.labels[decodeURIComponent(name)] : name;
  if (number === undefined) return model?.versions[0];
  return model?.versions.find(({ version }) => version === number);
}

/** Fills both lists and chooses from them; returns whether they have what is chosen. */
function choose({ model, version }) {
  const names = models.map(({ name }) => [name, name]);
  const found = fill(part("model"), names, model);
  return showVersions(found ? version : "") && found;
}

function missing({ model, version }) {
  if (!models.some(({ name }) => name === model)) {
    return `This server has no model “${model}”; choose one from the list.`;
  }
  return `Model “${model}” has no “${version.slice(1)}” here; choose one of its versions.`;
}

/** Fills a select with [value, text] pairs and shows a value; returns whether it has that value. */
function fill(select, options, value) {
  select.replaceChildren(...options.map(([value, text]) => new Option(text, value)));
  const found = options.some(([known]) => known === value);
  if (found) select.value = value;
  return found;
}

function showVersions(version) {
  const { versions, labels } = chosenModel() ?? { versions: [], labels: {} };
  const options = [
    ["", versions.length ? `latest (${versions[0].version})` : "none answers now"],
    ...Object.entries(labels).map(([label, number]) => {
      return [`/labels/${encodeURIComponent(label)}`, `${label} (${number})`];
    }),
    ...versions.map(({ version }) => [`/versions/${version}`, version]),
  ];
  const found = fill(part("version"), options, version);
  showWay();
  return found;
}

/** Makes the form that of the chosen version: its wording, and a line for each further input. */
function showWay() {
  const way = wayToAsk();
  const wording = WORDING[way?.input ?? "source"];
  part("text-label").textContent = wording.label;
  part("send").textContent = wording.send;
  part("send").disabled = !way;
  part("glossary-box").hidden = !takesGlossary(way);
  showFiles(server.files, server.needs_key, takesGlossary(way));
  const { version, has_card } = chosenVersion() ?? {};
  const { model } = choice();
  showCard(has_card ? { model, version: `/versions/${version}` } : null);
  const before = tags();
  part("tags").replaceChildren(
    ...(way?.tags ?? []).map((name) => {
      const value = before[name] ?? "";
      const input = element("input", "tags", { type: "text", name, dir: "auto", value });
      const label = element("label", "", { textContent: `${name}: one tag for each source token` });
      label.append(input);
      return label;
    }),
  );
  say(way || !chosenVersion() ? "" : cannotAsk(Object.keys(chosenVersion().signatures)));
}

function cannotAsk(signatures) {
  return (
    `This page cannot use this version; its signatures are ${signatures.join(", ")}, and this ` +
    "page needs n_best, serving_default or continue with the inputs and outputs of a Verbatim " +
    "model."
  );
}

/** Returns the text of each further input by its name. */
function tags() {
  const inputs = [...part("tags").querySelectorAll("input")];
  return Object.fromEntries(inputs.map((input) => [input.name, input.value]));
}

// Asking.

async function ask() {
  running?.abort();
  const controller = (running = new AbortController());
  part("state").textContent = "Waiting for the answer …";
  say("");
  try {
    if (!models.length) await loadModels();
    const way = wayToAsk();
    if (!way) return showWay();
    const name = part("version").selectedOptions[0].textContent;
    const asked = {
      ...choice(),
      name,
      number: chosenVersion().version,
      text: part("text").value,
      tags: tags(),
      glossary: glossary(way),
    };
    const { text, terms } = await marked(asked, controller.signal);
    const lines = Object.entries({ [way.input]: text, ...asked.tags });
    const inputs = Object.fromEntries(lines.map(([name, line]) => [name, [line]]));
    const body = { signature_name: way.signature, inputs };
    const started = performance.now();
    const { outputs } = await postJson(predictPath(asked), body, controller.signal);
    const milliseconds = performance.now() - started;
    const answer = read(way, outputs);
    if (text !== asked.text && !readsTerms(text, outputs)) {
      throw new Problem(`Model “${asked.model}” takes no glossary; it is of an older version.`);
    }
    showAnswer(asked, link(asked), way, answer, milliseconds);
    showCalls({ ...asked, terms, body }, way, server.grpc_port);
  } catch (error) {
    if (error.name === "AbortError") return;
    if (!(error instanceof Problem)) throw error;
    part("answer").hidden = true;
    say(error.message);
  } finally {
    if (running === controller) {
      running = null;
      part("state").textContent = "";
    }
  }
}

/** Returns the glossary if the way to ask takes one, else "". */
function glossary(way = wayToAsk()) {
  return takesGlossary(way) ? part("glossary").value : "";
}

/** Returns {text, terms}: the text with the markup of its terms, as the server's clients send it. */
async function marked({ text, glossary }, signal) {
  if (!glossary.trim()) return { text, terms: {} };
  return postJson("web/terms", { text, glossary }, signal);
}

function read(way, outputs) {
  try {
    return way.read(outputs);
  } catch (error) {
    throw new Problem(
      `The signature ${way.signature} of this model does not answer as a Verbatim model does: ` +
        `${error.message}.`,
    );
  }
}

function say(sentence) {
  part("problem").textContent = sentence;
  part("problem").hidden = !sentence;
}

// Links: what was asked, after the # of the address, where it stays in the browser and out of the
// logs of servers.

function link({ model, version, text, tags, glossary }) {
  const parameters = new URLSearchParams({ model });
  if (version) parameters.set("version", version.slice(1));
  parameters.set("text", text);
  for (const [name, line] of Object.entries(tags)) parameters.set(`tags.${name}`, line);
  if (glossary.trim()) parameters.set("glossary", glossary);
  return parameters;
}

/** Fills the form as the address says, and asks if it holds a text. */
function followAddress() {
  const asked = new URLSearchParams(location.hash.slice(1));
  const text = asked.get("text");
  if (text !== null) part("text").value = text;
  if (asked.has("glossary")) {
    part("glossary").value = asked.get("glossary");
    part("glossary-box").open = true;
  }
  const chosen = {
    model: asked.get("model") ?? part("model").value,
    version: asked.has("version") ? `/${asked.get("version")}` : "",
  };
  if (!choose(chosen)) return say(missing(chosen));
  for (const input of part("tags").querySelectorAll("input")) {
    input.value = asked.get(`tags.${input.name}`) ?? input.value;
  }
  if (text) ask();
}

async function attempt(work) {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    say(error.message);
  }
}

part("form").addEventListener("submit", (event) => {
  event.preventDefault();
  ask();
});
part("form").addEventListener("keydown", (event) => {
  const sends = event.key === "Enter" && (event.ctrlKey || event.metaKey);
  if (!sends || part("send").disabled) return;
  event.preventDefault();
  part("form").requestSubmit();
});
part("model").addEventListener("change", () => showVersions(""));
part("version").addEventListener("change", showWay);
connectFiles(
  () => server.files,
  () => ({ ...choice(), glossary: glossary() }),
);
window.addEventListener("hashchange", followAddress);
document.addEventListener("visibilitychange", () => {
  // Versions may have come and gone while nobody looked.
  if (document.visibilityState === "visible") attempt(loadModels);
});
attempt(async () => {
  await loadModels();
  followAddress();
});
