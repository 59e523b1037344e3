// Asks the server that the page comes from.

/** A failure that a person is told of; its message is one sentence. */
export class Problem extends Error {}

/** Returns the JSON at a path of the server. */
export async function fetchJson(path, options) {
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

/** Sends an object as JSON to a path of the server; returns its JSON. */
export function postJson(path, value, signal) {
  return fetchJson(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(value),
    signal,
  });
}
