// The ways to ask a model: signatures, the words for them, and how their outputs are read.

const OUTPUTS = ["text", "tokens", "copied_from", "copy_probability"];
const TRANSLATION_OUTPUTS = [...OUTPUTS, "score", "source_tokens"];
const CONTINUATION_OUTPUTS = [...OUTPUTS, "log_probability", "text_tokens"];

// What a version can be asked, the best way first: a signature, the input that is the text, the
// outputs that it needs, and the function that reads them.
const WAYS = [
  { signature: "n_best", input: "source", outputs: TRANSLATION_OUTPUTS, read: readBest },
  { signature: "serving_default", input: "source", outputs: TRANSLATION_OUTPUTS, read: readFirst },
  { signature: "continue", input: "text", outputs: CONTINUATION_OUTPUTS, read: readContinuation },
];

/** The words of the page, by the input that is the text. */
export const WORDING = {
  source: {
    label: "Source text",
    send: "Decode",
    answer: "Answer",
    source: "Source words",
    from: "source word",
    of: "the answer",
    score: "score",
  },
  text: {
    label: "Text to continue",
    send: "Continue",
    answer: "Continuation",
    source: "Words of the text",
    from: "word",
    of: "the continuation",
    score: "log-probability",
  },
};

/** Returns the best way to ask these signatures, with its further inputs; null if there is none. */
export function bestWay(signatures) {
  for (const way of WAYS) {
    const signature = signatures[way.signature];
    const has = (name) => signature.outputs.includes(name);
    if (signature?.inputs.includes(way.input) && way.outputs.every(has)) {
      return { ...way, tags: signature.inputs.filter((name) => name !== way.input) };
    }
  }
  return null;
}

/** Whether texts may carry the terms of a glossary: of translators without tags. */
export function takesGlossary(way) {
  return way?.input === "source" && !way.tags.length;
}

// A term of a glossary, see serving/term_markup.py: its phrase and its translation.
const TERM = /\ufff9([^\ufff9-\ufffb]+)\ufffa[^\ufff9-\ufffb]+\ufffb/;

/** Whether a model read the terms of a text as terms, if it has any. */
export function readsTerms(text, outputs) {
  if (!TERM.test(text)) return true;
  const isRead = outputs.source_tokens[0].some((token) => TERM.test(token));
  return isRead && ![outputs.text[0]].flat().some((output) => TERM.test(output));
}

// The answer's form, whatever the signature:
// {source: [word], best: [{text, score, words: [{text, copiedFrom, probability}]}]}.
// copiedFrom is null, or a place among the source's words and, after these, the answer's own.

// A term as its phrase, without the markup.
const phrase = (token) => token.replace(TERM, "$1");

function readBest(outputs) {
  const source = unpadded(outputs.source_tokens[0]).map(phrase);
  const best = outputs.text[0].map((text, rank) => {
    const [score, tokens, from, probability] = [
      "score", "tokens", "copied_from", "copy_probability",
    ].map((name) => outputs[name][0][rank]);
    return { text, score, words: words(tokens, from, probability, source.length) };
  });
  return { source, best };
}

function readFirst(outputs) {
  const ranked = Object.entries(outputs).map(([name, [row]]) => {
    return [name, name === "source_tokens" ? [row] : [[row]]];
  });
  return readBest(Object.fromEntries(ranked));
}

function readContinuation(outputs) {
  const source = unpadded(outputs.text_tokens[0]);
  const [text, tokens, from, probability, logProbability] = [
    "text", "tokens", "copied_from", "copy_probability", "log_probability",
  ].map((name) => outputs[name][0]);
  const score = logProbability.reduce((sum, value) => sum + value, 0);
  const places = source.length + tokens.length;
  return { source, best: [{ text, score, words: words(tokens, from, probability, places) }] };
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
