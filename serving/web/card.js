// Shows a model card: as much of Markdown as pipeline/reporting/templates writes.

import { element, part } from "./elements.js";
import { Problem, fetchJson } from "./server.js";

// Whose card is shown or asked for: the end of its address.
let shown = null;

/**
 * Shows the box of a version's card, which is loaded when the box is opened.
 *
 * @param asked {model, version}, a version's path; null if there is no card.
 */
export function showCard(asked) {
  part("card-box").hidden = !asked;
  part("card-box").ontoggle = () => asked && part("card-box").open && load(asked);
  part("card-box").ontoggle();
}

async function load(asked) {
  const query = new URLSearchParams(asked).toString();
  if (query === shown) return;
  shown = query;
  part("card").replaceChildren();
  try {
    const { card } = await fetchJson(`web/card?${query}`);
    if (query === shown) part("card").replaceChildren(...blocks(card.split("\n")));
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    shown = null;
    part("card").replaceChildren(
      element("p", "problem bad", { textContent: error.message }),
    );
  }
}

function* blocks(lines) {
  // The page has a heading of its own.
  const rest = lines.filter((line, place) => place > 1 || !line.startsWith("# "));
  while (rest.length) {
    const line = rest.shift();
    const heading = /^(#+) (.*)/.exec(line);
    const taken = (start) => {
      const found = [line];
      while (rest[0]?.startsWith(start)) found.push(rest.shift());
      return found;
    };
    if (line.startsWith("```")) {
      const end = rest.findIndex((other) => other.startsWith("```"));
      const code = rest.splice(0, end < 0 ? rest.length : end);
      rest.shift();
      yield element("pre", "", { textContent: code.join("\n") });
    } else if (heading) {
      yield filled("h3", heading[2]);
    } else if (line.startsWith("- ")) {
      const list = element("ul");
      list.append(...taken("- ").map((item) => filled("li", item.slice(2))));
      yield list;
    } else if (line.startsWith("|")) {
      yield table(taken("|"));
    } else if (line.trim()) {
      yield filled("p", line);
    }
  }
}

function table([head, , ...rows]) {
  const made = element("table");
  const row = (line, name) => {
    const cells = line.split(/(?<!\\)\|/).slice(1, -1);
    const tr = element("tr");
    tr.append(...cells.map((cell) => filled(name, cell.trim())));
    return tr;
  };
  made.append(row(head, "th"), ...rows.map((line) => row(line, "td")));
  const box = element("div", "wide");
  box.append(made);
  return box;
}

/** Returns an element with a line of Markdown: code, and characters behind a backslash. */
function filled(name, line) {
  const made = element(name);
  made.append(
    ...line.split(/(`[^`]+`)/).map((piece) => {
      return piece.startsWith("`") && piece.length > 2
        ? element("code", "", { textContent: piece.slice(1, -1) })
        : piece.replace(/\\([!-/:-@[-`{-~])/g, "$1").replaceAll("**", "");
    }),
  );
  return made;
}
