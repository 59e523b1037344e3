"""A small client for a served Verbatim model: this project's embedded server, or TensorFlow Serving.

It imports neither TensorFlow, TFX nor Keras, so it starts in a fraction of a second; see `serving/protos.py`.

    with Client("127.0.0.1:8500") as client:
        for answer in client.predict(["Hello %(name)s"]):
            print(format_answer(answer))
"""

import dataclasses

import grpc
import numpy as np

from serving import protos

_DTYPES = {
    "DT_FLOAT": (np.float32, "float_val"),
    "DT_INT32": (np.int32, "int_val"),
    "DT_INT64": (np.int64, "int64_val"),
}


class RequestError(RuntimeError):
    """A request without an answer; its message is one sentence for the user.

    Attributes:
        code: the `grpc.StatusCode`.
    """

    def __init__(self, sentence, code):
        super().__init__(sentence)
        self.code = code


@dataclasses.dataclass(frozen=True)
class Token:
    """One token of an answer.

    Attributes:
        text: the token; it may carry the joiner mark of `pipeline/tokenization.py` where it touches its neighbour.
        copied_from: position of the source token that it was copied from, counted from 0; None if generated.
        source_token: that source token; None if generated.
        copy_probability: how much of the token's probability comes from copying, 0 to 1.
    """

    text: str
    copied_from: int | None = None
    source_token: str | None = None
    copy_probability: float = 0.0


@dataclasses.dataclass(frozen=True)
class Answer:
    """One output text.

    Attributes:
        text: the text.
        score: its length-normalised log-probability.
        tokens: its tokens, without padding.
    """

    text: str
    score: float
    tokens: tuple[Token, ...] = ()


@dataclasses.dataclass(frozen=True)
class Score:
    """How likely a model finds a given target.

    Attributes:
        log_probability: the sum over the target's tokens and its end.
        token_count: how many terms that sum has.
    """

    log_probability: float
    token_count: int


@dataclasses.dataclass(frozen=True)
class WordScore:
    """How likely a language model finds a text.

    Attributes:
        tokens: its words; `[END]` is a line feed.
        log_probabilities: of each, after all before it in the text.
    """

    tokens: tuple[str, ...]
    log_probabilities: tuple[float, ...]


@dataclasses.dataclass(frozen=True)
class TensorFacts:
    """One input or output.

    Attributes:
        dtype: its type, such as `string`.
        shape: its sizes, -1 for any; None where not even the rank is fixed.
    """

    dtype: str
    shape: tuple[int, ...] | None


@dataclasses.dataclass(frozen=True)
class Signature:
    """Inputs and outputs of one signature, by name."""

    inputs: dict[str, TensorFacts]
    outputs: dict[str, TensorFacts]


@dataclasses.dataclass(frozen=True)
class Metadata:
    """What a served model says of itself: its name, the version that answers, its signatures by name."""

    name: str
    version: int
    signatures: dict[str, Signature]


@dataclasses.dataclass(frozen=True)
class VersionStatus:
    """The state of one version.

    Attributes:
        version: its number.
        state: `START`, `LOADING`, `AVAILABLE`, `UNLOADING` or `END`.
        error: why it could not be loaded; empty if all is well.
    """

    version: int
    state: str
    error: str = ""


class Client:
    """A connection to one served model. Close it, or use it in a `with` statement. Threads may share it.

    Args:
        address: `HOST:PORT`.
        model: the model's name. None is the only model of an embedded server; TensorFlow Serving needs the name.
        timeout: seconds to wait for one answer.
        credentials: `grpc.ssl_channel_credentials(...)` for a server with TLS; None is no TLS.
        version: a version number to insist on; None is the latest.

    Raises:
        ImportError: `tensorflow-serving-api` is not installed.
    """

    def __init__(self, address, model=None, timeout=30.0, credentials=None, version=None):
        self.address = address
        self.model = model or ""
        self.version = version
        self.timeout = timeout
        self._protos = protos.load()
        options = [("grpc.max_receive_message_length", -1)]  # the attention of `explain` can be large
        if credentials is None:
            self._channel = grpc.insecure_channel(address, options)
        else:
            self._channel = grpc.secure_channel(address, credentials, options)
        self._prediction = self._protos.prediction_service_pb2_grpc.PredictionServiceStub(self._channel)
        self._models = self._protos.model_service_pb2_grpc.ModelServiceStub(self._channel)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def close(self):
        """Ends the connection."""
        self._channel.close()

    def predict(self, texts, signature="serving_default", features=None):
        """Returns the best output of each text.

        Args:
            texts: a text or a sequence of them.
            signature: `serving_default`, `serving_default_no_xla` or `explain`.
            features: dict from each column of tags that the model takes (`data.source_features`) to as many texts; or None.

        Returns:
            A list of `Answer`, one a text.

        Raises:
            RequestError: there is no answer; one sentence says why.
        """
        texts = _as_list(texts)
        if not texts:
            return []
        outputs = self._predict(signature, _inputs(texts, features), _ANSWER_OUTPUTS, rank=1)
        return [_answer(outputs, (row,), row) for row in range(len(texts))]

    def n_best(self, texts, signature="n_best", features=None):
        """Returns the best outputs of each text, the best first.

        Args:
            texts: a text or a sequence of them.
            signature: `n_best` or `n_best_no_xla`.
            features: as in `predict`.

        Returns:
            A list, one a text, of lists of `Answer`.

        Raises:
            RequestError: there is no answer; one sentence says why.
        """
        texts = _as_list(texts)
        if not texts:
            return []
        outputs = self._predict(signature, _inputs(texts, features), _ANSWER_OUTPUTS, rank=2)
        count = outputs["text"].shape[1]
        return [[_answer(outputs, (row, best), row) for best in range(count)] for row in range(len(texts))]

    def score(self, sources, targets, features=None):
        """Returns how likely the model finds each target for its source.

        Args:
            sources: a text or a sequence of them.
            targets: as many.
            features: as in `predict`.

        Returns:
            A list of `Score`.

        Raises:
            RequestError: there is no answer; one sentence says why.
        """
        sources, targets = _as_list(sources), _as_list(targets)
        if len(sources) != len(targets):
            raise RequestError(
                f"There must be as many targets as sources; got {len(sources)} sources and {len(targets)} targets.",
                grpc.StatusCode.INVALID_ARGUMENT,
            )
        if not sources:
            return []
        names = {"log_probability": 1, "token_count": 1}
        inputs = {"target": targets, **_inputs(sources, features)}
        outputs = self._predict("score", inputs, names, rank=1)
        return [Score(float(p), int(n)) for p, n in zip(outputs["log_probability"], outputs["token_count"])]

    def continue_text(self, texts, signature="continue"):
        """Returns how a language model goes on after each text.

        Args:
            texts: a text or a sequence of them; a line feed ends a sentence.
            signature: `continue` or `continue_no_xla`.

        Returns:
            A list of `Answer`, one a text. Its text is the continuation alone, and its score the sum of the words'
            log-probabilities. `copied_from` counts the words of text and continuation, line feeds included.

        Raises:
            RequestError: there is no answer; one sentence says why.
        """
        texts = _as_list(texts)
        if not texts:
            return []
        outputs = self._predict(signature, {"text": texts}, _CONTINUATION_OUTPUTS, rank=1)
        answers = []
        for row, text in enumerate(outputs["text"]):
            read = [token for token in outputs["text_tokens"][row] if token]
            words = [*read, *outputs["tokens"][row]]
            tokens = tuple(
                Token(word, int(position), words[position], float(probability))
                if position >= 0
                else Token(word, copy_probability=float(probability))
                for word, position, probability in zip(
                    outputs["tokens"][row], outputs["copied_from"][row], outputs["copy_probability"][row]
                )
            )
            answers.append(Answer(text, float(outputs["log_probability"][row].sum()), tokens))
        return answers

    def score_text(self, texts):
        """Returns how likely a language model finds each word of each text.

        Args:
            texts: a text or a sequence of them; a line feed ends a sentence.

        Returns:
            A list of `WordScore`.

        Raises:
            RequestError: there is no answer; one sentence says why.
        """
        texts = _as_list(texts)
        if not texts:
            return []
        names = {"log_probability": 2, "tokens": 2, "token_count": 1}
        outputs = self._predict("score", {"text": texts}, names, rank=1)
        return [
            WordScore(tuple(tokens[:count]), tuple(float(p) for p in log_probs[:count]))
            for tokens, log_probs, count in zip(outputs["tokens"], outputs["log_probability"], outputs["token_count"])
        ]

    def metadata(self):
        """Returns the `Metadata` of the version that answers.

        Raises:
            RequestError: there is no answer; one sentence says why.
        """
        request = self._protos.get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
        self._name_model(request.model_spec)
        response = self._call(self._prediction.GetModelMetadata, request)
        signatures = self._protos.get_model_metadata_pb2.SignatureDefMap()
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

    def status(self):
        """Returns a list of `VersionStatus`, one for each version that the server knows.

        Raises:
            RequestError: there is no answer; one sentence says why.
        """
        request = self._protos.get_model_status_pb2.GetModelStatusRequest()
        self._name_model(request.model_spec)
        response = self._call(self._models.GetModelStatus, request)
        state_name = self._protos.get_model_status_pb2.ModelVersionStatus.State.Name
        return [
            VersionStatus(entry.version, state_name(entry.state), entry.status.error_message)
            for entry in response.model_version_status
        ]

    def _name_model(self, spec):
        spec.name = self.model
        if self.version is not None:
            spec.version.value = self.version

    def _facts(self, info):
        dtype = self._protos.types_pb2.DataType.Name(info.dtype)[len("DT_") :].lower()
        dtype = {"float": "float32", "double": "float64"}.get(dtype, dtype)
        if info.tensor_shape.unknown_rank:
            return TensorFacts(dtype, None)
        return TensorFacts(dtype, tuple(dim.size for dim in info.tensor_shape.dim))

    def _predict(self, signature, inputs, names, rank):
        """Sends one Predict request.

        Args:
            signature: its name.
            inputs: input name to list of texts.
            names: the outputs to ask for, each with the number of axes that it has after `rank - 1`.
            rank: axes of the output `text`: 1, or 2 for n-best lists.

        Returns:
            Output name to NumPy array.

        Raises:
            RequestError: no answer, or not the answer of a Verbatim model.
        """
        request = self._protos.predict_pb2.PredictRequest()
        self._name_model(request.model_spec)
        request.model_spec.signature_name = signature
        request.output_filter.extend(names)
        for name, texts in inputs.items():
            tensor = request.inputs[name]
            tensor.dtype = self._protos.types_pb2.DT_STRING
            tensor.tensor_shape.dim.add(size=len(texts))
            try:
                tensor.string_val.extend(text.encode("utf-8") for text in texts)
            except UnicodeEncodeError:
                raise RequestError(
                    f'A text of "{name}" holds half a surrogate pair and cannot be sent as UTF-8.',
                    grpc.StatusCode.INVALID_ARGUMENT,
                ) from None
        response = self._call(self._prediction.Predict, request)
        rows = len(next(iter(inputs.values())))
        outputs = {}
        for name, axes in names.items():
            array = self._to_array(response.outputs[name]) if name in response.outputs else None
            expected = axes if name == "source_tokens" else axes + rank - 1
            if array is None or array.ndim != expected or array.shape[0] != rows:
                raise RequestError(
                    f'The signature "{signature}" of the model at {self.address} does not answer as a Verbatim '
                    f'model does: see its output "{name}".',
                    grpc.StatusCode.FAILED_PRECONDITION,
                )
            outputs[name] = array
        return outputs

    def _to_array(self, tensor):
        """Returns a `TensorProto` as a NumPy array; None if it is of a type that no Verbatim model gives."""
        shape = [dim.size for dim in tensor.tensor_shape.dim]
        dtype = self._protos.types_pb2.DataType.Name(tensor.dtype)
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

    def _call(self, method, request):
        try:
            return method(request, timeout=self.timeout)
        except grpc.RpcError as error:
            code, details = error.code(), error.details() or ""
        if code == grpc.StatusCode.UNAVAILABLE:
            sentence = f"No server answers at {self.address}; start one with 'verbatim serve' or check the address."
        elif code == grpc.StatusCode.DEADLINE_EXCEEDED:
            sentence = f"The server at {self.address} did not answer within {self.timeout:g} seconds."
        elif code == grpc.StatusCode.UNIMPLEMENTED:
            sentence = f"The server at {self.address} does not offer this request."
        elif code in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND) and details:
            sentence = details
        else:
            sentence = f"The server at {self.address} answered {code.name}: {details or 'no reason given'}"
        raise RequestError(sentence, code) from None


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


def _as_list(texts):
    return [texts] if isinstance(texts, str) else list(texts)


def _inputs(texts, features):
    """Returns the inputs of a request: the sources, and their tags by column.

    Raises:
        RequestError: there are not as many tags of a column as texts.
    """
    inputs = {"source": texts}
    for name, tags in (features or {}).items():
        inputs[name] = _as_list(tags)
        if len(inputs[name]) != len(texts):
            raise RequestError(
                f'There must be as many texts of "{name}" as sources; got {len(inputs[name])} and {len(texts)}.',
                grpc.StatusCode.INVALID_ARGUMENT,
            )
    return inputs


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


def format_answer(answer):
    """Returns an answer for the terminal: its text, then a line for each token that was copied.

    Such a line reads `  %(name)s  <- source token 3 '%(name)s' (copy probability 0.98)`; source tokens are
    counted from 0.
    """
    lines = [answer.text]
    for token in answer.tokens:
        if token.copied_from is not None:
            lines.append(
                f"  {token.text}  <- source token {token.copied_from} '{token.source_token}' "
                f"(copy probability {token.copy_probability:.2f})"
            )
    return "\n".join(lines)
