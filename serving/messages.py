"""Makes requests to a served model, as TensorFlow Serving's messages, and reads its responses.

Nothing is sent from here.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, Literal, TypeVar

import grpc

from serving import caller_texts, protos, responses, tensor_lists, term_markup
from serving.answers import (
    Answer,
    Explanation,
    Metadata,
    Score,
    Signature,
    TensorFacts,
    VersionStatus,
    WordScore,
)
from serving.caller_texts import Features, Texts
from serving.errors import RequestError
from serving.glossary import GlossaryLike

T = TypeVar("T")
_COUNTED = "counted from 0"
Method = Literal["Predict", "GetModelMetadata", "GetModelStatus"]


@dataclasses.dataclass(frozen=True)
class Question(Generic[T]):
    """One request.

    Attributes:
        method: the method of the service that is called.
        make: function that returns the message to send. It raises `RequestError` if the message
            cannot be sent.
        read: function of the response that returns what it says; for `Predict` that is a list with
            an answer for each text. It raises `RequestError` if this is not the response of a
            Verbatim model.
        batch: of `Predict`, which texts it holds; else None.
    """

    method: Method
    make: Callable[[], Any]
    read: Callable[[Any], T]
    batch: Batch | None = None

    def failure(self, sentence: str, code: grpc.StatusCode) -> RequestError:
        """Returns the error that says why there is no answer."""
        return self.batch.failure(sentence, code) if self.batch else RequestError(sentence, code)


@dataclasses.dataclass(frozen=True)
class Batch:
    """Which of a caller's texts a request holds.

    Attributes:
        rows: their places, counted from 0.
        total: how many texts the caller has.
        inputs: names of the request's inputs.
        ask: function of places that returns the `Question` for them alone.
    """

    rows: Sequence[int]
    total: int
    inputs: tuple[str, ...]
    ask: Callable[[Sequence[int]], Question[list[Any]]]

    def halves(self) -> tuple[Question[list[Any]], Question[list[Any]]]:
        """Returns the questions for each half of its texts; it has two or more."""
        middle = len(self.rows) // 2
        return self.ask(self.rows[:middle]), self.ask(self.rows[middle:])

    def failure(self, sentence: str, code: grpc.StatusCode) -> RequestError:
        """Returns the error of this request; it counts texts as the caller does."""
        first, last = self.rows[0], self.rows[-1]
        if first != last:
            where = "" if len(self.rows) == self.total else f"Texts {first} to {last}, {_COUNTED}: "
            if where and not isinstance(self.rows, range):
                where = f"{len(self.rows)} of {self.total} texts: "
            return RequestError(where + sentence, code)
        named = self._first_text()
        numbered, count = named.subn(
            lambda match: f"{match[1]}[{first}]" if match[1] else f"{match[2]} {first}", sentence
        )
        reason = named.sub(lambda match: str(match[1] or match[2]), sentence)
        if not count and self.total > 1:
            numbered = f"Text {first}, {_COUNTED}: {sentence}"
        return RequestError(numbered, code, index=first, reason=reason, names_text=bool(count))

    def _first_text(self) -> re.Pattern[str]:
        """Matches where a server names the first text: `source[0]`, or `The source text 0`."""
        names = "|".join(re.escape(name) for name in self.inputs)
        return re.compile(rf"^({names})\[0\]|^(The (?:\w+ )?text) 0\b")


class Messages:
    """Makes the requests for one model, and reads their responses.

    Args:
        address: the server's, for sentences.
        model: the model's name; empty is the server's only one.
        version: a version number, or None for the latest.
        batch_size: the most texts in a request; None is no limit.
        by_length: whether texts of similar length share a request, the longest first.
    """

    def __init__(
        self,
        address: str,
        model: str,
        version: int | None,
        batch_size: int | None,
        by_length: bool = False,
    ) -> None:
        self._address = address
        self._model = model
        self._version = version
        self._batch_size = batch_size
        self._by_length = by_length

    # The questions to a model. Those on texts are iterators of `Question`: one for each batch, in
    # the texts' order or by length. All raise `RequestError` if the arguments do not fit together
    # or cannot be sent.

    def predict(
        self,
        texts: Texts,
        signature: str,
        features: Features | None,
        glossary: GlossaryLike | None = None,
    ) -> Iterator[Question[list[Answer]]]:
        """Asks for the best output of each text."""
        inputs = caller_texts.inputs(texts, features, glossary)
        return self._on_texts(signature, inputs, responses.ANSWERS)

    def explain(
        self, texts: Texts, features: Features | None, glossary: GlossaryLike | None = None
    ) -> Iterator[Question[list[Explanation]]]:
        """Asks for the best output of each text, with its attention."""
        inputs = caller_texts.inputs(texts, features, glossary)
        return self._on_texts("explain", inputs, responses.EXPLANATIONS)

    def n_best(
        self,
        texts: Texts,
        signature: str,
        features: Features | None,
        glossary: GlossaryLike | None = None,
    ) -> Iterator[Question[list[list[Answer]]]]:
        """Asks for the best outputs of each text."""
        inputs = caller_texts.inputs(texts, features, glossary)
        return self._on_texts(signature, inputs, responses.LISTS_OF_ANSWERS)

    def score(
        self, sources: Texts, targets: Texts, features: Features | None
    ) -> Iterator[Question[list[Score]]]:
        """Asks for the score of each target for its source."""
        inputs = caller_texts.pairs(sources, targets, features)
        return self._on_texts("score", inputs, responses.SCORES)

    def continue_text(self, texts: Texts, signature: str) -> Iterator[Question[list[Answer]]]:
        """Asks how a language model continues each text."""
        return self._on_texts(
            signature, {"text": caller_texts.as_list(texts)}, responses.CONTINUATIONS
        )

    def score_text(self, texts: Texts) -> Iterator[Question[list[WordScore]]]:
        """Asks for a language model's score of each word."""
        return self._on_texts("score", {"text": caller_texts.as_list(texts)}, responses.WORD_SCORES)

    def metadata(self) -> Question[Metadata]:
        """Asks for the model's name, version and signatures."""
        message = protos.message("GetModelMetadataRequest")(metadata_field=["signature_def"])
        self._name_model(message.model_spec)
        return Question("GetModelMetadata", lambda: message, _read_metadata)

    def status(self) -> Question[list[VersionStatus]]:
        """Asks for the state of each version."""
        message = protos.message("GetModelStatusRequest")()
        self._name_model(message.model_spec)
        return Question("GetModelStatus", lambda: message, _read_status)

    def _name_model(self, spec: Any) -> None:
        spec.name = self._model
        if self._version is not None:
            spec.version.value = self._version

    def _on_texts(
        self, signature: str, inputs: Mapping[str, list[str]], reading: responses.Reading[T]
    ) -> Iterator[Question[list[T]]]:
        """Returns the questions to a signature.

        Args:
            signature: its name.
            inputs: input name to list of texts, all of the same length.
            reading: which outputs to ask for, and how to read them.
        """
        caller_texts.check_name("signature", signature)
        total = len(next(iter(inputs.values())))
        size = self._batch_size or max(total, 1)
        sources = inputs.get("source", [])
        has_terms = any(map(term_markup.has_term, sources))

        def ask(rows: Sequence[int]) -> Question[list[T]]:
            batch = Batch(rows, total, tuple(inputs), ask)
            make = functools.partial(self._predict_request, signature, inputs, reading, batch)
            asked = [sources[row] for row in rows] if has_terms else []
            read = functools.partial(self._read_outputs, signature, reading, batch, asked)
            return Question("Predict", make, read, batch)

        order: Sequence[int] = range(total)
        if self._by_length and total > size:
            texts = next(iter(inputs.values()))
            order = sorted(order, key=lambda row: -len(texts[row]))
        return (ask(order[start : start + size]) for start in range(0, total, size))

    def _predict_request(
        self,
        signature: str,
        inputs: Mapping[str, list[str]],
        reading: responses.Reading[T],
        batch: Batch,
    ) -> Any:
        message = protos.message("PredictRequest")()
        self._name_model(message.model_spec)
        message.model_spec.signature_name = signature
        # A filter may not name outputs that the model lacks.
        if not reading.optional:
            message.output_filter.extend(reading.axes)
        for name, texts in inputs.items():
            try:
                tensor_lists.fill(message.inputs[name], [texts[row] for row in batch.rows])
            except UnicodeEncodeError:
                raise batch.failure(
                    f'A text of "{name}" holds half a surrogate pair and cannot be sent as UTF-8.',
                    grpc.StatusCode.INVALID_ARGUMENT,
                ) from None
        return message

    def _read_outputs(
        self,
        signature: str,
        reading: responses.Reading[T],
        batch: Batch,
        asked: Sequence[str],
        response: Any,
    ) -> list[T]:
        """Returns what a response says.

        Args:
            signature: its name.
            reading: which outputs to read, and how.
            batch: the texts.
            asked: the texts with the markup of terms; empty if none has terms.
            response: the message.
        """
        outputs = {}
        name = ""
        try:
            for name, axes in reading.axes.items():
                lists = None
                if name in response.outputs:
                    lists = tensor_lists.read(response.outputs[name], axes, len(batch.rows))
                if lists is None:
                    raise LookupError
                outputs[name] = lists
            for name in set(reading.optional) & set(response.outputs):
                lists = tensor_lists.read(
                    response.outputs[name], reading.optional[name], len(batch.rows)
                )
                if lists is None:
                    raise LookupError
                outputs[name] = lists
            tokens, texts = outputs.get("source_tokens", []), outputs.get("text", [])
            written = [[text] if isinstance(text, str) else text for text in texts]
            if any(map(term_markup.is_unread, asked, tokens, written)):
                raise batch.failure(
                    f"The model at {self._address} takes no glossary: it is of an older version, "
                    "or no Verbatim model; run its recipe again with --no-cache.",
                    grpc.StatusCode.FAILED_PRECONDITION,
                )
            return reading.read(outputs)
        # Raised above, or because lists have different sizes.
        except LookupError:
            raise batch.failure(
                f'The signature "{signature}" of the model at {self._address} does not answer as a '
                f'Verbatim model does: see its output "{name}".',
                grpc.StatusCode.FAILED_PRECONDITION,
            ) from None


def _read_metadata(response: Any) -> Metadata:
    packed = response.metadata["signature_def"]
    signatures = protos.message("SignatureDefMap").FromString(packed.value)
    return Metadata(
        name=response.model_spec.name,
        version=response.model_spec.version.value,
        signatures={
            name: Signature(
                inputs={key: _facts(info) for key, info in signature.inputs.items()},
                outputs={key: _facts(info) for key, info in signature.outputs.items()},
            )
            for name, signature in signatures.signature_def.items()
        },
    )


def _facts(info: Any) -> TensorFacts:
    dtype = protos.DATA_TYPES.get(info.dtype, f"type {info.dtype}")
    if not info.HasField("tensor_shape") or info.tensor_shape.unknown_rank:
        return TensorFacts(dtype, None)
    return TensorFacts(dtype, tuple(dim.size for dim in info.tensor_shape.dim))


def _read_status(response: Any) -> list[VersionStatus]:
    return [
        VersionStatus(
            entry.version,
            protos.STATES.get(entry.state, str(entry.state)),
            entry.status.error_message,
        )
        for entry in response.model_version_status
    ]
