// Asks the server that this page comes from, and shows its answers. All that a model, a server or an address says
// becomes text (textContent, value), never markup: the content security policy lets no string become any.
"use strict";

const JOINER = "\uFFED"; // the mark of a token that touches its neighbour, see docs/architecture.md
const LINE_FEED = "[END]"; // of language models
const OUTPUTS = ["text", "tokens", "copied_from", "copy_probability"];

// What a version can be asked, the best way first: a signature, the input that is the text, and who reads its outputs.
const WAYS = [
  { signature: "n_best", input: "source", outputs: [...OUTPUTS, "score", "source_tokens"], read: readBest },
  { signature: "serving_default", input: "source", outputs: [...OUTPUTS, "score", "source_tokens"], read: readFirst },
  { signature: "continue", input: "text", outputs: [...OUTPUTS, "log_probability", "text_tokens"], read: readContinuation },
];
const WORDING = {
  source: { label: "Source text", send: "Decode", answer: "Answer", source: "Source words", from: "source word", of: "the answer", score: "score" },
  text: { label: "Text to continue", send: "Continue", answer: "Continuation", source: "Words of the text", from: "word", of: "the continuation", score: "log-probability" },
};

const part = (id) => document.getElementById(id);
let models = [];
let running = null; // the AbortController of the request that is not answered yet

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
    throw new Problem(`No server answers at ${location.host}; start it again or check the address.`);
  }
  let value = null;
  try {
    value = JSON.parse(body);
  } catch {
    if (response.ok) throw new Problem("The server's answer cannot be read: it is not valid JSON.");
  }
  if (!response.ok) throw new Problem(value?.error || `The server answered ${response.status} and gave no reason.`);
  return value;
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
  const signatures = chosenVersion()?.signatures ?? {};
  for (const way of WAYS) {
    const signature = signatures[way.signature];
    if (signature?.inputs.includes(way.input) && way.outputs.every((name) => signature.outputs.includes(name))) {
      return { ...way, tags: signature.inputs.filter((name) => name !== way.input) };
    }
  }
  return null;
}

// The answer's form, whatever the signature: {source: [word], best: [{text, score, words: [{text, copiedFrom, probability}]}]}.
// copiedFrom is null, or a place among the source's words and, after these, the answer's own.

function readBest(outputs) {
  const source = unpadded(outputs.source_tokens[0]);
  const best = outputs.text[0].map((text, rank) => {
    const at = (name) => outputs[name][0][rank];
    return { text, score: at("score"), words: words(at("tokens"), at("copied_from"), at("copy_probability"), source.length) };
  });
  return { source, best };
}

function readFirst(outputs) {
  const ranked = Object.entries(outputs).map(([name, [row]]) => [name, name === "source_tokens" ? [row] : [[row]]]);
  return readBest(Object.fromEntries(ranked));
}

function readContinuation(outputs) {
  const source = unpadded(outputs.text_tokens[0]);
  const [tokens, from, probability] = [outputs.tokens[0], outputs.copied_from[0], outputs.copy_probability[0]];
  const score = outputs.log_probability[0].reduce((sum, value) => sum + value, 0);
  return { source, best: [{ text: outputs.text[0], score, words: words(tokens, from, probability, source.length + tokens.length) }] };
}

function words(tokens, from, probability, places) {
  return unpadded(tokens).map((text, i) => ({
    text,
    copiedFrom: from[i] >= 0 && from[i] < places ? from[i] : null,
    probability: probability[i],
  }));
}

function unpadded(tokens) {
  let end = tokens.length;
  while (end && tokens[end - 1] === "") end--;
  return tokens.slice(0, end);
}

// Models and versions.

/** Returns what is chosen: a model's name, and a version as the end of its path ("" is the latest). */
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
  return number === undefined ? model?.versions[0] : model?.versions.find((version) => version.version === number);
}

/** Fills both lists and chooses from them; returns whether they have what is wanted. */
function choose({ model, version }) {
  const found = fill(part("model"), models.map(({ name }) => [name, name]), model);
  return showVersions(found ? version : "") && found;
}

function missing({ model, version }) {
  const known = models.some(({ name }) => name === model);
  return known ? `Model “${model}” has no “${version.slice(1)}” here; choose one of its versions.` : `This server has no model “${model}”; choose one of the list.`;
}

/** Fills a select with [value, text] pairs; returns whether it has the wanted value, which it then shows. */
function fill(select, options, wanted) {
  select.replaceChildren(...options.map(([value, text]) => new Option(text, value)));
  const found = options.some(([value]) => value === wanted);
  if (found) select.value = wanted;
  return found;
}

function showVersions(wanted) {
  const { versions, labels } = chosenModel() ?? { versions: [], labels: {} };
  const options = [
    ["", versions.length ? `latest (${versions[0].version})` : "none answers now"],
    ...Object.entries(labels).map(([label, version]) => [`/labels/${encodeURIComponent(label)}`, `${label} (${version})`]),
    ...versions.map(({ version }) => [`/versions/${version}`, version]),
  ];
  const found = fill(part("version"), options, wanted);
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
      const input = element("input", "tags", { type: "text", name, dir: "auto", value: before[name] ?? "" });
      const label = element("label", "", { textContent: `${name}: one tag for each source token` });
      label.append(input);
      return label;
    }),
  );
  const signatures = Object.keys(chosenVersion()?.signatures ?? {});
  say(
    way || !chosenVersion() ? "" : `This page cannot ask this version; its signatures are ${signatures.join(", ")}, and this page needs ` +
      "n_best, serving_default or continue with the inputs and outputs of a Verbatim model.",
  );
}

function tags() {
  return Object.fromEntries([...part("tags").querySelectorAll("input")].map((input) => [input.name, input.value]));
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
    const inputs = Object.fromEntries([[way.input, [asked.text]], ...Object.entries(asked.tags).map(([name, line]) => [name, [line]])]);
    const started = performance.now();
    const { outputs } = await fetchJson(`v1/models/${encodeURIComponent(asked.model)}${asked.version}:predict`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ signature_name: way.signature, inputs }),
      signal: controller.signal,
    });
    const milliseconds = performance.now() - started;
    showAnswer(asked, way, read(way, outputs), milliseconds);
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
    throw new Problem(`The signature ${way.signature} of this model does not answer as a Verbatim model does: ${error.message}.`);
  }
}

function say(sentence) {
  part("problem").textContent = sentence;
  part("problem").hidden = !sentence;
}

// Showing.

function showAnswer(asked, way, answer, milliseconds) {
  const wording = WORDING[way.input];
  part("answer-title").textContent = wording.answer;
  part("source-title").textContent = wording.source;
  part("words-title").textContent = `Words of ${wording.of}`;
  part("asked").textContent = `${asked.model}, ${asked.version ? `version ${asked.name}` : "latest version"}`;
  part("latency").textContent = `${milliseconds < 10 ? milliseconds.toFixed(1) : Math.round(milliseconds)} ms from request to answer`;
  part("link").href = `#${link(asked)}`;
  part("best-list").replaceChildren(
    ...answer.best.map((output, rank) => {
      const input = element("input", "", { type: "radio", name: "best", checked: rank === 0 });
      input.addEventListener("change", () => showOutput(answer.source, output, wording));
      const label = element("label", "best");
      label.append(input, element("span", "text", { textContent: output.text }), element("span", "small-number", { textContent: number(output.score) }));
      return label;
    }),
  );
  part("best").hidden = answer.best.length < 2;
  showOutput(answer.source, answer.best[0], wording);
  part("answer").hidden = false;
}

/** Shows one output: its text, the source's words and its own, and which of them are linked. */
function showOutput(source, output, wording) {
  part("answer-text").textContent = output.text;
  part("score").textContent = `${wording.score} ${number(output.score)}`;
  const sources = source.map((text, i) => makeWord(text, source[i - 1], number(i + 1, 0)));
  const answers = output.words.map(({ text, probability }, i) => {
    const word = makeWord(text, output.words[i - 1]?.text, probability.toFixed(2));
    const gate = element("span", "gate");
    const bar = gate.appendChild(element("span"));
    bar.style.setProperty("--copy-probability", Math.min(1, Math.max(0, probability)));
    word.element.insertBefore(gate, word.element.lastChild);
    return word;
  });
  const all = [...sources, ...answers];
  output.words.forEach(({ copiedFrom, probability }, i) => {
    const chance = `copy probability ${probability.toFixed(2)}`;
    if (copiedFrom === null) return answers[i].says.push(`generated, ${chance}`);
    const [from, own] = [all[copiedFrom], copiedFrom >= sources.length];
    const place = own ? `word ${copiedFrom - sources.length + 1} of ${wording.of}` : `${wording.from} ${copiedFrom + 1}`;
    answers[i].says.push(`copied from ${place}, ${chance}`);
    answers[i].linked.push(from);
    from.says.push(`copied to word ${i + 1} of ${wording.of}, ${chance}`);
    from.linked.push(answers[i]);
  });
  sources.forEach((word) => word.linked.length || word.says.push("not copied"));
  for (const word of all) {
    word.element.classList.toggle("copied", word.linked.length > 0);
    word.element.setAttribute("aria-label", `${word.text}: ${word.says.join("; ")}`);
  }
  const state = { hovered: null, focused: null };
  const update = () => highlight(all, state.hovered ?? state.focused);
  connect(part("source-words"), sources, state, update);
  connect(part("answer-words"), answers, state, update);
  update();
}

/** Returns a word with its element. The joiner is in few fonts: words that touch stand close, and an undertie stands for a lone joiner. */
function makeWord(token, before, below) {
  const text = token === LINE_FEED ? "¶" : token.replaceAll(JOINER, "") || "\u203F";
  const touches = token.startsWith(JOINER) || before?.endsWith(JOINER);
  const word = { text, says: [], linked: [], element: element("span", touches ? "word touching" : "word", { tabIndex: -1 }) };
  word.element.setAttribute("role", "option");
  word.element.append(element("span", "surface", { textContent: text }), element("span", "small-number", { textContent: below }));
  return word;
}

/** Puts words into their list, which is one stop of the Tab key; arrow keys go from word to word. */
function connect(list, words, state, update) {
  list.replaceChildren(...words.map((word) => word.element));
  if (words.length) words[0].element.tabIndex = 0;
  words.forEach((word, place) => {
    const set = (name, value) => () => {
      state[name] = value;
      update();
    };
    word.element.addEventListener("pointerenter", set("hovered", word));
    word.element.addEventListener("pointerleave", set("hovered", null));
    word.element.addEventListener("blur", set("focused", null));
    word.element.addEventListener("focus", () => {
      for (const other of words) other.element.tabIndex = other === word ? 0 : -1;
      state.hovered = null; // the pointer may rest on another word
      set("focused", word)();
    });
    word.element.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.altKey || event.metaKey) return;
      const forwards = getComputedStyle(list).direction === "rtl" ? "ArrowLeft" : "ArrowRight";
      const backwards = forwards === "ArrowRight" ? "ArrowLeft" : "ArrowRight";
      const goTo = {
        [forwards]: words[place + 1],
        [backwards]: words[place - 1],
        Home: words[0],
        End: words.at(-1),
        ArrowUp: word.linked[0],
        ArrowDown: word.linked[0],
      }[event.key];
      if (!goTo) return;
      event.preventDefault();
      goTo.element.focus();
    });
  });
}

/** Marks a word and those that it is linked with, and says how; null marks none. */
function highlight(words, shown) {
  for (const word of words) {
    word.element.classList.toggle("shown", word === shown);
    word.element.classList.toggle("linked", Boolean(shown?.linked.includes(word)));
    word.element.setAttribute("aria-selected", word === shown);
  }
  part("origin").textContent = shown ? `“${shown.text}”: ${shown.says.join("; ")}` : "";
  part("how").classList.toggle("away", Boolean(shown));
}

function number(value, digits = 3) {
  return value.toFixed(digits).replace("-", "\u2212");
}

function element(name, className = "", properties = {}) {
  return Object.assign(document.createElement(name), { className }, properties);
}

// Links: what was asked, after the # of the address, where it stays in the browser and out of the logs of servers.

function link({ model, version, text, tags }) {
  const parameters = new URLSearchParams({ model, ...(version && { version: version.slice(1) }), text });
  for (const [name, line] of Object.entries(tags)) parameters.set(`tags.${name}`, line);
  return parameters;
}

/** Fills the form as the address says, and asks if it holds a text. */
function followAddress() {
  const asked = new URLSearchParams(location.hash.slice(1));
  const text = asked.get("text");
  if (text !== null) part("text").value = text;
  const wanted = { model: asked.get("model") ?? part("model").value, version: asked.has("version") ? `/${asked.get("version")}` : "" };
  if (!choose(wanted)) return say(missing(wanted));
  for (const input of part("tags").querySelectorAll("input")) input.value = asked.get(`tags.${input.name}`) ?? input.value;
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
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || part("send").disabled) return;
  event.preventDefault();
  part("form").requestSubmit();
});
part("model").addEventListener("change", () => showVersions(""));
part("version").addEventListener("change", showWay);
window.addEventListener("hashchange", followAddress);
// Versions may have come and gone while nobody looked.
document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && attempt(loadModels));
attempt(async () => {
  await loadModels();
  followAddress();
});
