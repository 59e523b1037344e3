// Small helpers for the elements of the page. All that a model, a server or an address says becomes
// text (textContent, value), never markup: the content security policy lets no string become any.

/** Returns the element of an id. */
export const part = (id) => document.getElementById(id);

/** Makes an element. */
export function element(name, className = "", properties = {}) {
  return Object.assign(document.createElement(name), { className }, properties);
}

/** Returns a number as text, with a proper minus sign. */
export function number(value, digits = 3) {
  return value.toFixed(digits).replace("-", "\u2212");
}
