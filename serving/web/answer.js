// Shows an answer: its words, those of the source, and which of them are linked.

import { element, number, part } from "./elements.js";
import { WORDING } from "./ways.js";

// The mark of a token that touches its neighbour, see docs/explanation/tokens_and_ids.md.
const JOINER = "\uFFED";
// White space that is a token; nothing stands between it and its neighbours.
const WHITE_SPACE = /^[\u2420\u2409-\u240D]+$/;
// Of language models.
const LINE_FEED = "[END]";

/**
 * Shows the answer to what was asked.
 *
 * @param asked {model, version, name}: `name` is the version as a person reads it.
 * @param link the address, after the #, that asks the same again.
 */
export function showAnswer(asked, link, way, answer, milliseconds) {
  const wording = WORDING[way.input];
  part("answer-title").textContent = wording.answer;
  part("source-title").textContent = wording.source;
  part("words-title").textContent = `Words of ${wording.of}`;
  const version = asked.version ? `version ${asked.name}` : "latest version";
  part("asked").textContent = `${asked.model}, ${version}`;
  const latency = milliseconds < 10 ? milliseconds.toFixed(1) : Math.round(milliseconds);
  part("latency").textContent = `${latency} ms from request to answer`;
  part("link").href = `#${link}`;
  part("best-list").replaceChildren(
    ...answer.best.map((output, rank) => {
      const input = element("input", "", { type: "radio", name: "best", checked: rank === 0 });
      input.addEventListener("change", () => showOutput(answer.source, output, wording));
      const label = element("label", "best");
      label.append(
        input,
        element("span", "text", { textContent: output.text }),
        element("span", "small-number", { textContent: number(output.score) }),
      );
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
    const from = all[copiedFrom];
    const place =
      copiedFrom < sources.length
        ? `${wording.from} ${copiedFrom + 1}`
        : `word ${copiedFrom - sources.length + 1} of ${wording.of}`;
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

/**
 * Returns a word with its element.
 *
 * The joiner is in few fonts: words that touch stand close, and an undertie stands for a lone
 * joiner.
 */
function makeWord(token, before, below) {
  const text = token === LINE_FEED ? "¶" : token.replaceAll(JOINER, "") || "\u203F";
  const isTight = token.startsWith(JOINER) || before?.endsWith(JOINER);
  const touches = isTight || WHITE_SPACE.test(token) || WHITE_SPACE.test(before ?? "");
  const box = element("span", touches ? "word touching" : "word", { tabIndex: -1 });
  box.setAttribute("role", "option");
  box.append(
    element("span", "surface", { textContent: text }),
    element("span", "small-number", { textContent: below }),
  );
  return { text, says: [], linked: [], element: box };
}

/** Puts words into their list: one stop of the Tab key, arrow keys go from word to word. */
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
      // The pointer may rest on another word.
      state.hovered = null;
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
