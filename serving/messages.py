"""Requests to a served model as TensorFlow Serving's messages, and what its responses say.

Nothing is sent from here.
"""

import dataclasses
import functools
from collections.abc import Callable

import grpc
import numpy as np

from serving import protos
from serving.answers import (
    Answer,
    Metadata,
    Score,
    Signature,
    TensorFacts,
    Token,
    VersionStatus,
    WordScore,
)
from serving.errors import RequestError

_DTYPES = {
    "DT_FLOAT": (np.float32, "float_val"),
    "DT_INT32": (np.int32, "int_val"),
    "DT_INT64": (np.int64, "int64_val"),
}

# The outputs that make an `Answer`, with their number of axes.
_ANSWER_OUTPUTS = {
    "text": 1,
    "score": 1,
    "tokens": 2,
    "copied_from": 2,
    "copy_probability": 2,
    "source_tokens": 2,
}

_CONTINUATION_OUTPUTS = {
    "text": 1,
    "tokens": 2,
    "copied_from": 2,
    "copy_probability": 2,
    "log_probability": 2,
    "text_tokens": 2,
}


@dataclasses.dataclass(frozen=True)
class Question:
    """One request.

    Attributes:
        method: `Predict`, `GetModelMetadata` or `GetModelStatus`.
        message: what is sent.
        read: function of the response; returns what it says, for `Predict` a list with an answer
            for each text. It raises `RequestError` if this is not the response of a Verbatim model.
        where: which of many texts the request holds, to begin an error's sentence with; empty if it
            holds all.
    """

    method: str
    message: object
    read: Callable
    where: str = ""


class Messages:
    """Makes the requests for one model, and reads their responses.

    Args:
        address: the server's, for sentences.
        model: the model's name; empty is the server's only one.
        version: a version number, or None for the latest.
        batch_size: the most texts in a request; None is no limit.

    Raises:
        ImportError: `tensorflow-serving-api` is not installed.
    """

    def __init__(self, address, model, version, batch_size):
        self.protos = protos.load()
        self._address = address
        self._model = model
        self._version = version
        self._batch_size = batch_size

    # The questions to a model. Those on texts are iterators of `Question`: one for each batch, in
    # the texts' order. All raise `RequestError` where the arguments do not fit each other or cannot
    # be sent.

    def predict(self, texts, signature, features):
        """The best output of each text: answered by `Answer`."""
        return self._on_texts(signature, _inputs(texts, features), _ANSWER_OUTPUTS, _answers)

    def n_best(self, texts, signature, features):
        """The best outputs of each text: answered by lists of `Answer`."""
        return self._on_texts(
            signature, _inputs(texts, features), _ANSWER_OUTPUTS, _lists_of_answers, rank=2
        )

    def score(self, sources, targets, features):
        """How likely each target is for its source: answered by `Score`."""
        sources, targets = _as_list(sources), _as_list(targets)
        if len(sources) != len(targets):
            raise RequestError(
                f"There must be as many targets as sources; got {len(sources)} sources and "
                f"{len(targets)} targets."
            )
        inputs = {"target": targets, **_inputs(sources, features)}
        return self._on_texts("score", inputs, {"log_probability": 1, "token_count": 1}, _scores)

    def continue_text(self, texts, signature):
        """How a language model goes on: answered by `Answer`."""
        return self._on_texts(
            signature, {"text": _as_list(texts)}, _CONTINUATION_OUTPUTS, _continuations
        )

    def score_text(self, texts):
        """How likely a language model finds each word: answered by `WordScore`."""
        names = {"log_probability": 2, "tokens": 2, "token_count": 1}
        return self._on_texts("score", {"text": _as_list(texts)}, names, _word_scores)

    def metadata(self):
        """The `Question` answered by `Metadata`."""
        message = self.protos.get_model_metadata_pb2.GetModelMetadataRequest(
            metadata_field=["signature_def"]
        )
        self._name_model(message.model_spec)
        return Question("GetModelMetadata", message, self._read_metadata)

    def status(self):
        """The `Question` answered by a list of `VersionStatus`."""
        message = self.protos.get_model_status_pb2.GetModelStatusRequest()
        self._name_model(message.model_spec)
        return Question("GetModelStatus", message, self._read_status)

    def _name_model(self, spec):
        spec.name = self._model
        if self._version is not None:
            spec.version.value = self._version

    def _on_texts(self, signature, inputs, names, read, rank=1):
        """Yields the questions to a signature.

        Args:
            signature: its name.
            inputs: input name to list of texts, all as long.
            names: the outputs to ask for, each with the number of axes that it has after `rank -
                1`.
            read: function of a dict from output name to NumPy array; returns a list of answers.
            rank: axes of the output `text`: 1, or 2 for n-best lists.
        """
        total = len(next(iter(inputs.values())))
        size = self._batch_size or max(total, 1)
        for start in range(0, total, size):
            batch = {name: texts[start : start + size] for name, texts in inputs.items()}
            rows = min(size, total - start)
            last = start + rows - 1
            which = f"Text {start}" if start == last else f"Texts {start} to {last}"
            where = "" if rows == total else f"{which}, counted from 0: "
            message = self._predict_request(signature, batch, names, where)
            reader = functools.partial(
                self._read_outputs, signature, names, rank, rows, read, where
            )
            yield Question("Predict", message, reader, where)

    def _predict_request(self, signature, inputs, names, where):
        message = self.protos.predict_pb2.PredictRequest()
        self._name_model(message.model_spec)
        message.model_spec.signature_name = signature
        message.output_filter.extend(names)
        for name, texts in inputs.items():
            tensor = message.inputs[name]
            tensor.dtype = self.protos.types_pb2.DT_STRING
            tensor.tensor_shape.dim.add(size=len(texts))
            try:
                tensor.string_val.extend(text.encode("utf-8") for text in texts)
            except UnicodeEncodeError:
                sentence = (
                    f'{where}A text of "{name}" holds half a surrogate pair and cannot be '
                    "sent as UTF-8."
                )
                raise RequestError(sentence) from None
        return message

    def _read_outputs(self, signature, names, rank, rows, read, where, response):
        outputs = {}
        for name, axes in names.items():
            array = self._to_array(response.outputs[name]) if name in response.outputs else None
            expected = axes if name == "source_tokens" else axes + rank - 1
            if array is None or array.ndim != expected or array.shape[0] != rows:
                raise RequestError(
                    f'{where}The signature "{signature}" of the model at {self._address} does not '
                    "answer as a Verbatim "
                    f'model does: see its output "{name}".',
                    grpc.StatusCode.FAILED_PRECONDITION,
                )
            outputs[name] = array
        return read(outputs)

    def _to_array(self, tensor):
        """Returns a `TensorProto` as a NumPy array;
        None if it is of a type that no Verbatim model gives.
        """
        shape = [dim.size for dim in tensor.tensor_shape.dim]
        dtype = self.protos.types_pb2.DataType.Name(tensor.dtype)
        try:
            if dtype == "DT_STRING":
                array = np.empty(len(tensor.string_val), object)
                array[:] = [value.decode("utf-8", "replace") for value in tensor.string_val]
                return array.reshape(shape)
            number, field = _DTYPES[dtype]
            if tensor.tensor_content:
                return np.frombuffer(tensor.tensor_content, number).reshape(shape)
            return np.array(getattr(tensor, field), number).reshape(shape)
        except (KeyError, ValueError):
            return None

    def _read_metadata(self, response):
        signatures = self.protos.get_model_metadata_pb2.SignatureDefMap()
        response.metadata["signature_def"].Unpack(signatures)
        return Metadata(
            name=response.model_spec.name,
            version=response.model_spec.version.value,
            signatures={
                name: Signature(
                    inputs={key: self._facts(info) for key, info in signature.inputs.items()},
                    outputs={key: self._facts(info) for key, info in signature.outputs.items()},
                )
                for name, signature in signatures.signature_def.items()
            },
        )

    def _facts(self, info):
        dtype = self.protos.types_pb2.DataType.Name(info.dtype)[len("DT_") :].lower()
        dtype = {"float": "float32", "double": "float64"}.get(dtype, dtype)
        if info.tensor_shape.unknown_rank:
            return TensorFacts(dtype, None)
        return TensorFacts(dtype, tuple(dim.size for dim in info.tensor_shape.dim))

    def _read_status(self, response):
        state_name = self.protos.get_model_status_pb2.ModelVersionStatus.State.Name
        return [
            VersionStatus(entry.version, state_name(entry.state), entry.status.error_message)
            for entry in response.model_version_status
        ]


def _as_list(texts):
    return [texts] if isinstance(texts, str) else list(texts)


def _inputs(texts, features):
    """Returns the inputs of a request: the sources, and their tags by column.

    Raises:
        RequestError: there are not as many tags of a column as texts.
    """
    inputs = {"source": _as_list(texts)}
    count = len(inputs["source"])
    for name, tags in (features or {}).items():
        inputs[name] = _as_list(tags)
        if len(inputs[name]) != count:
            raise RequestError(
                f'There must be as many texts of "{name}" as sources; got {len(inputs[name])} and '
                f"{count}."
            )
    return inputs


# Functions of a response's arrays that return a list of answers.


def _answers(outputs):
    return [_answer(outputs, (row,), row) for row in range(len(outputs["text"]))]


def _lists_of_answers(outputs):
    rows, count = outputs["text"].shape
    return [[_answer(outputs, (row, best), row) for best in range(count)] for row in range(rows)]


def _answer(outputs, index, row):
    """Returns the `Answer` at `index` of the outputs; `row` is its text's place in the request."""
    source_tokens = outputs["source_tokens"][row]
    tokens = []
    for text, position, probability in zip(
        outputs["tokens"][index], outputs["copied_from"][index], outputs["copy_probability"][index]
    ):
        if text == "":
            continue
        if 0 <= position < len(source_tokens):
            tokens.append(Token(text, int(position), source_tokens[position], float(probability)))
        else:
            tokens.append(Token(text, copy_probability=float(probability)))
    return Answer(outputs["text"][index], float(outputs["score"][index]), tuple(tokens))


def _scores(outputs):
    return [
        Score(float(p), int(n)) for p, n in zip(outputs["log_probability"], outputs["token_count"])
    ]


def _continuations(outputs):
    answers = []
    for row, text in enumerate(outputs["text"]):
        read = [token for token in outputs["text_tokens"][row] if token]
        words = [*read, *outputs["tokens"][row]]
        tokens = tuple(
            Token(word, int(position), words[position], float(probability))
            if position >= 0
            else Token(word, copy_probability=float(probability))
            for word, position, probability in zip(
                outputs["tokens"][row],
                outputs["copied_from"][row],
                outputs["copy_probability"][row],
            )
        )
        answers.append(Answer(text, float(outputs["log_probability"][row].sum()), tokens))
    return answers


def _word_scores(outputs):
    return [
        WordScore(tuple(tokens[:count]), tuple(float(p) for p in log_probs[:count]))
        for tokens, log_probs, count in zip(
            outputs["tokens"], outputs["log_probability"], outputs["token_count"]
        )
    ]
