// Shows how programs ask what is on the screen: curl, Python, grpcurl.

import { part } from "./elements.js";

/**
 * Shows the calls that ask what was asked.
 *
 * @param asked {model, version, number, text, tags, terms, body}: `version` is the end of its path
 *   ("" is the latest), `number` its number, `terms` the glossary, `body` the body of the REST
 *   request.
 */
export function showCalls(asked, way, grpcPort) {
  part("curl").textContent = curl(asked);
  part("python").textContent = python(asked, way, grpcPort);
  part("grpcurl").textContent = grpcurl(asked, grpcPort);
}

/** Returns the address of the REST path, relative to the server. */
export function predictPath({ model, version }) {
  return `v1/models/${encodeURIComponent(model)}${version}:predict`;
}

function curl(asked) {
  const url = new URL(predictPath(asked), location.origin);
  return `curl -d ${quoted(json(asked.body))} \\\n  ${quoted(url.href)}`;
}

function python(asked, way, grpcPort) {
  const isSecure = location.protocol === "https:";
  const lines = isSecure ? ["from serving import tls"] : [];
  const address = json(`${location.hostname}:${grpcPort}`);
  const more = [`model=${json(asked.model)}`];
  if (asked.version) more.push(`version=${asked.number}`);
  if (isSecure) more.push('credentials=tls.client_credentials("ca.pem")');
  const [method, best] = {
    n_best: ["n_best", "[0]"], serving_default: ["predict", ""], continue: ["continue_text", ""],
  }[way.signature];
  const values = [json([asked.text])];
  const tags = Object.entries(asked.tags).map(([name, line]) => [name, [line]]);
  if (tags.length) values.push(`features=${json(Object.fromEntries(tags))}`);
  if (Object.keys(asked.terms).length) values.push(`glossary=${json(asked.terms)}`);
  return [
    ...lines,
    "from serving.client import Client",
    "",
    `with Client(${address}, ${more.join(", ")}) as client:`,
    `    for answer in client.${method}(${values.join(", ")})${best}:`,
    "        print(answer.text, answer.score)",
  ].join("\n");
}

/** As in gRPC's JSON: strings of tensors are bytes, in base64. */
function grpcurl(asked, grpcPort) {
  const inputs = Object.entries(asked.body.inputs).map(([name, lines]) => {
    const dim = [{ size: lines.length }];
    const tensor = { dtype: "DT_STRING", tensor_shape: { dim }, string_val: lines.map(base64) };
    return [name, tensor];
  });
  const spec = { name: asked.model, signature_name: asked.body.signature_name };
  if (asked.version) spec.version = asked.number;
  const request = { model_spec: spec, inputs: Object.fromEntries(inputs) };
  const plain = location.protocol === "https:" ? "-cacert ca.pem" : "-plaintext";
  return (
    `grpcurl ${plain} -d ${quoted(json(request))} \\\n  ${location.hostname}:${grpcPort} ` +
    "tensorflow.serving.PredictionService/Predict"
  );
}

/** Returns JSON whose invisible characters are escaped; Python reads it, too. */
function json(value) {
  const escape = (mark) => `\\u${mark.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return JSON.stringify(value).replace(/[\u007f-\u009f\u200b-\u200f\u2028-\u202e\ufff9-\ufffb]/g, escape);
}

/** Returns a text as one word of a shell. */
function quoted(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function base64(text) {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}
