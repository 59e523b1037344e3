"""Asks a server all that a client of TensorFlow Serving may ask, and says what it answers
otherwise.

    python -m tests.end_to_end.serving_conformance --address HOST:PORT --model NAME [--rest
    HOST:PORT] [--text TEXT]

The same checks hold for `verbatim serve` and for TensorFlow Serving with the same model, which must
be a translating model that this project exported. Nothing here knows which server it asks: only
messages of `tensorflow_serving.apis` and JSON go out. The exit status is 1 if a check fails.
"""

import argparse
import base64
import http.client
import json
import sys
import traceback

import grpc
import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    get_model_status_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

TIMEOUT = 120  # seconds: a server may compile at the first request
SIGNATURES = ("serving_default", "serving_default_no_xla", "n_best", "score")
OUTPUTS = {
    *("text", "score", "tokens", "copied_from", "copy_probability", "source_tokens"),
    "unknown_not_copied",
}


class Server:
    """What the checks ask."""

    def __init__(self, address, model, rest=None, text="Delete page %(title)s"):
        self.model, self.rest, self.text = model, rest, text
        self.channel = grpc.insecure_channel(address)
        self._prediction = prediction_service_pb2_grpc.PredictionServiceStub(self.channel)
        self._models = model_service_pb2_grpc.ModelServiceStub(self.channel)

    def request(self, texts, signature="", model=None, version=None, **inputs):
        message = predict_pb2.PredictRequest()
        message.model_spec.name = self.model if model is None else model
        message.model_spec.signature_name = signature
        if version is not None:
            message.model_spec.version.value = version
        for name, values in {"source": texts, **inputs}.items():
            if values is not None:
                message.inputs[name].CopyFrom(tf.make_tensor_proto(values))
        return message

    def predict(self, *arguments, **options):
        """Returns the outputs as arrays, and the `ModelSpec` of the answer."""
        response = self._prediction.Predict(self.request(*arguments, **options), timeout=TIMEOUT)
        return {
            name: tf.make_ndarray(tensor) for name, tensor in response.outputs.items()
        }, response.model_spec

    def refusal(self, message, *codes):
        """Sends a request that must be refused with one of these codes; returns the sentence."""
        try:
            self._prediction.Predict(message, timeout=TIMEOUT)
        except grpc.RpcError as error:
            assert error.code() in codes, (
                f"refused with {error.code()}, not with one of {codes}: {error.details()}"
            )
            assert error.details(), "refused without a sentence"
            return error.details()
        raise AssertionError("answered instead of refused")

    def status(self, version=None):
        message = get_model_status_pb2.GetModelStatusRequest()
        message.model_spec.name = self.model
        if version is not None:
            message.model_spec.version.value = version
        return self._models.GetModelStatus(message, timeout=TIMEOUT).model_version_status

    def metadata(self):
        message = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
        message.model_spec.name = self.model
        response = self._prediction.GetModelMetadata(message, timeout=TIMEOUT)
        signatures = get_model_metadata_pb2.SignatureDefMap()
        assert response.metadata["signature_def"].Unpack(signatures)
        return response.model_spec, signatures.signature_def

    def http(self, method, path, body=None):
        """Returns the HTTP status and the JSON of the answer."""
        connection = http.client.HTTPConnection(self.rest, timeout=TIMEOUT)
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    @property
    def version(self):
        """The highest version that is available."""
        available = get_model_status_pb2.ModelVersionStatus.AVAILABLE
        return max(status.version for status in self.status() if status.state == available)


INVALID, NOT_FOUND = grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND
# TensorFlow Serving has had both for an unknown signature.
UNKNOWN_SIGNATURE = (INVALID, NOT_FOUND, grpc.StatusCode.FAILED_PRECONDITION)


def check_a_version_is_available(server):
    assert server.version > 0
    assert server.status()[0].status.error_code == 0


def check_the_status_of_one_version(server):
    (status,) = server.status(server.version)
    assert status.version == server.version


def check_the_metadata_name_the_signatures(server):
    spec, signatures = server.metadata()
    assert spec.name == server.model and spec.version.value == server.version
    for name in SIGNATURES:
        assert name in signatures, f"the signature {name} is missing"
    assert set(signatures["serving_default"].outputs) == OUTPUTS
    assert set(signatures["score"].inputs) == {"source", "target"}


def check_an_answer_has_text_tokens_and_where_they_come_from(server):
    outputs, spec = server.predict([server.text])
    assert set(outputs) == OUTPUTS
    assert spec.name == server.model and spec.version.value == server.version
    (text,), (tokens,), (copied_from,) = outputs["text"], outputs["tokens"], outputs["copied_from"]
    (source_tokens,), (probabilities,) = outputs["source_tokens"], outputs["copy_probability"]
    assert outputs["score"].dtype == np.float32 and outputs["score"][0] <= 0
    assert len(tokens) == len(copied_from) == len(probabilities)
    assert text and text.decode("utf-8")
    assert 0 <= outputs["unknown_not_copied"][0] <= len(source_tokens)
    for token, place in zip(tokens, copied_from):
        assert place == -1 or token == source_tokens[place], "a copied token is not the source's"


def check_answers_keep_the_order_of_the_texts(server):
    texts = [server.text, "%(a)s", f"{server.text} %(b)s"]
    together = server.predict(texts)[0]
    for number, text in enumerate(texts):
        alone = server.predict([text])[0]
        assert together["text"][number] == alone["text"][0]
        np.testing.assert_allclose(together["score"][number], alone["score"][0], atol=1e-4)


def check_without_xla_the_answer_is_the_same(server):
    compiled, plain = (
        server.predict([server.text])[0],
        server.predict([server.text], "serving_default_no_xla")[0],
    )
    assert compiled["text"].tolist() == plain["text"].tolist()
    np.testing.assert_allclose(compiled["score"], plain["score"], atol=1e-4)


def check_n_best_begins_with_the_best(server):
    best, several = server.predict([server.text])[0], server.predict([server.text], "n_best")[0]
    assert several["text"].shape[0] == 1 and several["text"].ndim == 2
    assert several["text"][0, 0] == best["text"][0]
    assert (np.diff(several["score"][0]) <= 1e-6).all(), "n-best outputs are not sorted by score"


def check_score(server):
    text = server.predict([server.text])[0]["text"][0]
    outputs, _ = server.predict([server.text], "score", target=[text])
    assert outputs["log_probability"].shape == outputs["token_count"].shape == (1,)
    assert outputs["log_probability"][0] < 0 and outputs["token_count"][0] >= 1


def check_a_version_can_be_named(server):
    assert server.predict([server.text], version=server.version)[1].version.value == server.version
    server.refusal(server.request([server.text], version=server.version + 1), NOT_FOUND)


def check_outputs_can_be_chosen(server):
    message = server.request([server.text])
    message.output_filter.append("text")
    assert set(server._prediction.Predict(message, timeout=TIMEOUT).outputs) == {"text"}


def check_models_and_signatures_that_are_not_there(server):
    server.refusal(server.request([server.text], model="no-such-model"), NOT_FOUND)
    server.refusal(server.request([server.text], "no-such-signature"), *UNKNOWN_SIGNATURE)


def check_inputs_that_do_not_fit(server):
    server.refusal(server.request(None), INVALID)
    server.refusal(server.request([1.5]), INVALID)
    server.refusal(server.request([server.text], other=["x"]), INVALID)
    server.refusal(server.request([server.text], "score", target=["a", "b"]), INVALID)


def check_texts_that_cannot_be_answered(server):
    for texts in ([""], ["  "], ["word " * 5000]):
        server.refusal(server.request(texts), INVALID)
    assert server.predict([server.text])[0]["text"][0]  # and it lives


def check_rest_answers_as_grpc_does(server):
    outputs = server.predict([server.text])[0]
    status, content = server.http(
        "POST", f"/v1/models/{server.model}:predict", {"instances": [server.text]}
    )
    assert status == 200, content
    (row,) = content["predictions"]
    assert (
        row["text"] == outputs["text"][0].decode("utf-8")
        and row["copied_from"] == outputs["copied_from"][0].tolist()
    )
    body = {"signature_name": "serving_default", "inputs": {"source": [server.text]}}
    status, content = server.http(
        "POST", f"/v1/models/{server.model}/versions/{server.version}:predict", body
    )
    assert status == 200 and content["outputs"]["text"] == [row["text"]]


def check_rest_status_and_metadata(server):
    status, content = server.http("GET", f"/v1/models/{server.model}")
    assert status == 200
    assert {"version": str(server.version), "state": "AVAILABLE"}.items() <= content[
        "model_version_status"
    ][0].items()
    status, content = server.http("GET", f"/v1/models/{server.model}/metadata")
    assert status == 200 and content["model_spec"]["name"] == server.model
    assert set(SIGNATURES) <= set(content["metadata"]["signature_def"]["signature_def"])


def check_rest_refusals(server):
    path = f"/v1/models/{server.model}:predict"
    for body in ({}, {"instances": []}, {"instances": [7]}, {"instances": [""]}):
        status, content = server.http("POST", path, body)
        assert status == 400 and content["error"], (body, status, content)
    status, content = server.http("POST", "/v1/models/no-such-model:predict", {"instances": ["a"]})
    assert status == 404 and content["error"]


def check_rest_paths_that_are_not_there(server):
    for method, path in (
        ("GET", "/v1/models"),
        ("GET", "/v1/foo"),
        ("GET", f"/v1/models/{server.model}:predict"),
        ("POST", f"/v1/models/{server.model}"),
        ("POST", f"/v1/models/{server.model}/versions/x:predict"),
        ("GET", f"/v1/models/{server.model}/versions/{2**64}"),
    ):
        status, content = server.http(method, path, {} if method == "POST" else None)
        assert status == 400 and content["error"], (method, path, status, content)
    name = "".join(f"%{ord(letter):02X}" for letter in server.model)
    assert server.http("GET", f"/v1/models/{name}")[0] == 200


def check_rest_metadata_has_default_values(server):
    content = server.http("GET", f"/v1/models/{server.model}/metadata")[1]
    signatures = content["metadata"]["signature_def"]["signature_def"]
    shape = signatures["serving_default"]["inputs"]["source"]["tensor_shape"]
    assert shape == {"dim": [{"size": "-1", "name": ""}], "unknown_rank": False}, shape


def check_rest_takes_bytes_and_ignores_unknown_keys(server):
    path, text = f"/v1/models/{server.model}:predict", base64.b64encode(server.text.encode())
    for spelled in (text.decode(), text.decode().rstrip("="), f"{text.decode()}\n"):
        body = {"instances": [{"b64": spelled}], "more": 1}
        status, content = server.http("POST", path, body)
        assert status == 200, content
        assert content == server.http("POST", path, {"instances": [server.text]})[1]


def check_rest_floats_are_written_in_few_digits(server):
    body = {"instances": [server.text]}
    (row,) = server.http("POST", f"/v1/models/{server.model}:predict", body)[1]["predictions"]
    score = server.predict([server.text])[0]["score"][0]
    assert np.float32(row["score"]) == score
    # A float has nine significant digits at most.
    assert float(f"{row['score']:.9g}") == row["score"]


CHECKS = [(name, check) for name, check in sorted(globals().items()) if name.startswith("check_")]


def main(arguments=None):
    """Runs every check; returns the exit status.

    Args:
        arguments: those of the command line; None are this process' own.
    """
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--address", required=True, metavar="HOST:PORT", help="of gRPC")
    parser.add_argument(
        "--rest", metavar="HOST:PORT", help="of the REST paths; without it these are not asked"
    )
    parser.add_argument("--model", required=True, metavar="NAME")
    parser.add_argument("--text", default="Delete page %(title)s", help="what the model is asked")
    options = parser.parse_args(arguments)
    server = Server(options.address, options.model, options.rest, options.text)
    failed = 0
    for name, check in CHECKS:
        said = name.removeprefix("check_").replace("_", " ")
        if "rest" in name.split("_") and not options.rest:
            print(f"skipped  {said}")
            continue
        try:
            check(server)
            print(f"ok       {said}", flush=True)
        except Exception as error:
            failed += 1
            where = traceback.extract_tb(error.__traceback__)[-1]
            print(
                f"FAILED   {said}: {type(error).__name__} {error} (line {where.lineno})", flush=True
            )
    print(f"{len(CHECKS) - failed} of {len(CHECKS)} checks passed or skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
