"""An exported language model in this process, which answers as a server would."""

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

import numpy as np
from numpy.typing import NDArray

from pipeline.common import progress
from pipeline.export.loaded_model import Arrays, LoadedModel, ModelError, TextRefused
from pipeline.export.refusals import answer_each, check_texts, raise_refusals
from pipeline.readers import text_streams
from pipeline.text import tokenization

if TYPE_CHECKING:
    import tensorflow as tf

_CONTINUED = {"text", "tokens", "copied_from", "copy_probability", "log_probability", "text_tokens"}
_SCORED = {"log_probability", "tokens", "token_count"}
_CARRIED = ("context", "states", "window")
_STREAMED = {"log_probability", "log_probability_with_copies", "unknown", "token_count", *_CARRIED}
# Words that are scored in one call; it changes memory and speed, but no value.
_LONGEST_CHUNK = 512

Item = TypeVar("Item")


class Continuation(TypedDict):
    """How a model continues a text.

    Attributes:
        text: the continuation.
        tokens: its tokens.
        copied_from: for each token the position of the text's token that it copies, or -1.
        copy_probability, log_probability: of each token.
        text_tokens: the tokens of the text that is continued.
    """

    text: str
    tokens: list[str]
    copied_from: list[int]
    copy_probability: list[float]
    log_probability: list[float]
    text_tokens: list[str]


class StreamScores(TypedDict):
    """A model's scores of each word of a stream, arrays `[words]`.

    Attributes:
        log_probability: float32; a word that has no id counts as the unknown word.
        log_probability_with_copies: float32; such a word counts with its own probability by the
            pointer, if it is in the window.
        unknown: bool, which words have no id.
    """

    log_probability: NDArray[np.float32]
    log_probability_with_copies: NDArray[np.float32]
    unknown: NDArray[np.bool_]


class ServedLanguageModel(LoadedModel):
    """Loads the SavedModel of a language model and calls its signatures with lists of texts.

    Args:
        directory: a SavedModel, or a folder of numbered versions, of which the newest is taken.

    Raises:
        ModelError: no SavedModel, one that cannot be loaded, or one without the signatures.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        super().__init__(directory)
        self._signature("score", {"text"}, _SCORED)
        self._signature("continue", {"text"}, _CONTINUED)

    def score(self, texts: Sequence[str]) -> list[tuple[list[str], NDArray[np.float32]]]:
        """Returns the words of each text and their log-probabilities.

        Args:
            texts: list of strings, however many; a line feed ends a sentence.

        Raises:
            TextsRefused: some texts are empty or too long; it has the scores of the others.
            ModelError: a text is not a string, or scores are NaN.
        """
        function = self._signature("score", {"text"}, _SCORED)

        def score(outputs: Arrays, row: int) -> tuple[list[str], NDArray[np.float32]]:
            count = outputs["token_count"][row]
            words = [token.decode("utf-8") for token in outputs["tokens"][row, :count]]
            return words, outputs["log_probability"][row, :count]

        return self._each(function, texts, score)

    def score_stream(self, words: Sequence[str]) -> StreamScores:
        """Scores every word of a text of any length.

        LSTM states and the pointer's window are carried through it.

        Args:
            words: list of strings; `text_streams.LINE_END` ends a sentence.

        Raises:
            ModelError: there is no word, or the model cannot be used.
        """
        function = self._signature("score_stream", {"text", *_CARRIED}, _STREAMED)
        specs = function.structured_input_signature[1]
        # A text begins as if a sentence had just ended.
        carry: dict[str, Any] = {"context": [tokenization.END]}
        for name in ("states", "window"):
            carry[name] = np.zeros([1, *specs[name].shape[1:]], np.float32)
        parts = []
        description = f"scoring with {self.facts.get('head', 'model')}"
        with progress.counted(description, len(words), "words") as advance:
            for chunk in _chunks(words, min(_LONGEST_CHUNK, self.facts["length_buckets"][-1])):
                outputs = self._call(function, text=[text_streams.join_words(chunk)], **carry)
                if outputs["token_count"][0] != len(chunk):
                    raise ModelError(
                        f"The model {self.directory} cuts {len(chunk)} words into "
                        f"{outputs['token_count'][0]} tokens: tokenize the text as its recipe "
                        "says."
                    )
                carry = {name: outputs[name] for name in _CARRIED}
                parts.append(outputs)
                advance(len(chunk))
        if not parts:
            raise ModelError("The text to score is empty: give words.")
        return {
            "log_probability": _joined(parts, "log_probability"),
            "log_probability_with_copies": _joined(parts, "log_probability_with_copies"),
            "unknown": _joined(parts, "unknown"),
        }

    def continue_text(
        self, texts: Sequence[str], signature: str = "continue"
    ) -> list[Continuation]:
        """Returns how the model continues texts.

        Args:
            texts: list of strings, however many.
            signature: `"continue"` or `"continue_no_xla"`.

        Raises:
            TextsRefused: some texts are empty or too long; it has the answers of the others.
            ModelError: a text is not a string, or scores are NaN.
        """
        function = self._signature(signature, {"text"}, _CONTINUED)
        return self._each(
            function,
            texts,
            lambda outputs, row: _continuation(
                {name: value[row] for name, value in outputs.items()}
            ),
        )

    def _each(
        self,
        function: "tf.types.experimental.ConcreteFunction",
        texts: Sequence[str],
        item_of: Callable[[Arrays, int], Item],
    ) -> list[Item]:
        """Returns `item_of(outputs, row)` of each text, answered in the largest batches."""
        check_texts("text", texts)

        def answer(rows: Sequence[int]) -> list[Item]:
            outputs = self._call(function, text=[texts[row] for row in rows])
            return [item_of(outputs, row) for row in range(len(rows))]

        rows, batch = range(len(texts)), self._largest_batch
        items: list[Item | TextRefused] = []
        for start in range(0, len(texts), batch):
            items += answer_each(answer, rows[start : start + batch])
        return raise_refusals(items)


def _chunks(words: Iterable[str], size: int) -> Iterator[list[str]]:
    words = iter(words)
    while chunk := list(itertools.islice(words, size)):
        yield chunk


def _joined(parts: Sequence[Arrays], name: str) -> NDArray[Any]:
    return np.concatenate([part[name][0] for part in parts])


def _continuation(row: dict[str, Any]) -> Continuation:
    return {
        "text": row["text"].decode("utf-8"),
        "tokens": [token.decode("utf-8") for token in row["tokens"]],
        "copied_from": row["copied_from"].tolist(),
        "copy_probability": row["copy_probability"].tolist(),
        "log_probability": row["log_probability"].tolist(),
        "text_tokens": [token.decode("utf-8") for token in row["text_tokens"] if token],
    }
