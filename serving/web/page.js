// The form of the page: which model is asked what. It asks the server that the page comes from.

import { showAnswer } from "./answer.js";
import { element, part } from "./elements.js";
import { WORDING, bestWay } from "./ways.js";

let models = [];
// The AbortController of the request that is not answered yet.
let running = null;

/** A failure that a person is told of; its message is one sentence. */
class Problem extends Error {}

// The server.

async function fetchJson(path, options) {
  let response, body;
  try {
    response = await fetch(path, { cache: "no-store", ...options });
    body = await response.text();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    const where = location.host;
    throw new Problem(`No server answers at ${where}; start it again or check the address.`);
  }
  let value = null;
  try {
    value = JSON.parse(body);
  } catch {
    if (response.ok) throw new Problem("The server's answer cannot be read: it is not valid JSON.");
  }
  if (response.ok) return value;
  throw new Problem(value?.error || `The server answered ${response.status} and gave no reason.`);
}

async function loadModels() {
  const chosen = choice();
  const found = (await fetchJson("web/models")).models;
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
    const asked = { ...choice(), name, text: part("text").value, tags: tags() };
    const lines = { [way.input]: asked.text, ...asked.tags };
    const inputs = Object.fromEntries(Object.entries(lines).map(([name, line]) => [name, [line]]));
    const started = performance.now();
    const path = `v1/models/${encodeURIComponent(asked.model)}${asked.version}:predict`;
    const { outputs } = await fetchJson(path, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ signature_name: way.signature, inputs }),
      signal: controller.signal,
    });
    const milliseconds = performance.now() - started;
    showAnswer(asked, link(asked), way, read(way, outputs), milliseconds);
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

function link({ model, version, text, tags }) {
  const parameters = new URLSearchParams({ model });
  if (version) parameters.set("version", version.slice(1));
  parameters.set("text", text);
  for (const [name, line] of Object.entries(tags)) parameters.set(`tags.${name}`, line);
  return parameters;
}

/** Fills the form as the address says, and asks if it holds a text. */
function followAddress() {
  const asked = new URLSearchParams(location.hash.slice(1));
  const text = asked.get("text");
  if (text !== null) part("text").value = text;
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
window.addEventListener("hashchange", followAddress);
document.addEventListener("visibilitychange", () => {
  // Versions may have come and gone while nobody looked.
  if (document.visibilityState === "visible") attempt(loadModels);
});
attempt(async () => {
  await loadModels();
  followAddress();
});
