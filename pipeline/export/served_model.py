"""An exported model in this process, which answers as a server would."""

import concurrent.futures
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

import numpy as np
from numpy.typing import NDArray

from pipeline.common import progress
from pipeline.export.loaded_model import Arrays, LoadedModel, TextRefused
from pipeline.export.loaded_model import ModelError as ModelError
from pipeline.export.loaded_model import read_facts as read_facts
from pipeline.export.loaded_model import version_directory as version_directory
from pipeline.export.refusals import TextsRefused as TextsRefused
from pipeline.export.refusals import answer_each, check_texts, raise_refusals
from serving import term_markup

if TYPE_CHECKING:
    import tensorflow as tf

_ANSWER = {"text", "score", "tokens", "copied_from", "copy_probability", "source_tokens"}
_SCORE = {"log_probability", "token_count"}
# The number of pairs in a batch that is scored.
_SCORED = 32

Item = TypeVar("Item")


class _Answer(TypedDict):
    text: str
    score: float
    tokens: list[str]
    copied_from: list[int]
    copy_probability: list[float]
    source_tokens: list[str]


class Answer(_Answer, total=False):
    """A model's answer to a text, without padding.

    Attributes:
        text: the answer.
        score: its score.
        tokens: its tokens.
        copied_from: for each token the position of the source token that it copies, or -1.
        copy_probability: for each token, that it is copied.
        source_tokens: the source's tokens.
        attention: of the signature `explain`: for each token, weights of the source's tokens.
        unknown_not_copied: how many of the source's tokens the model does not know and has
            neither copied nor replaced; models of older versions do not report it.
    """

    attention: list[list[float]]
    unknown_not_copied: int


class ServedModel(LoadedModel):
    """Loads the SavedModel of a sequence-to-sequence model and calls its signatures.

    Args:
        directory: a SavedModel, or a folder of numbered versions, of which the newest is taken.
        at_once: how many batches are computed at the same time, where there is no GPU: as many as
            `serving.processors.compute_each_batch_on` says, so that each has cores of its own.

    Attributes:
        source_features: columns of tags that the model takes.

    Raises:
        ModelError: no SavedModel, one that cannot be loaded, or one without the signatures.
    """

    def __init__(self, directory: str | os.PathLike[str], at_once: int = 1) -> None:
        import tensorflow as tf

        super().__init__(directory)
        # A GPU computes one batch after the other; several would only use more memory.
        self._at_once = 1 if tf.config.list_physical_devices("GPU") else at_once
        self.source_features = self.facts.get("source_features", [])
        self._answering("serving_default")

    def predict(
        self,
        texts: Sequence[str],
        signature: str = "serving_default",
        features: Mapping[str, Sequence[str]] | None = None,
    ) -> list[Answer]:
        """Answers texts, however many, in the largest batches that the model compiles for.

        Args:
            texts: list of strings.
            signature: `"serving_default"`, `"serving_default_no_xla"` or `"explain"`.
            features: dict from each column of tags that the model takes to a list of strings, one
                for each text.

        Raises:
            TextsRefused: some texts are empty or too long; it has the answers of the others.
            ModelError: tags are missing, a text is not a string, the model lacks the signature, or
                its scores are NaN.
        """
        check_texts("source text", texts)
        function = self._answering(signature)
        columns = {"source": texts, **self._features_of(features, len(texts))}
        batch = self._largest_batch
        # Texts of similar length together, so that short ones do not wait for long ones.
        order = sorted(range(len(texts)), key=lambda index: len(texts[index].split()))
        parts = [order[start : start + batch] for start in range(0, len(order), batch)]
        # The longest batch begins first, so that no core is left alone with it at the end.
        parts.reverse()
        answers: dict[int, Answer | TextRefused] = {}

        def answer(part: Sequence[int]) -> list[Answer]:
            outputs = self._call_rows(function, columns, part)
            return [
                _unpad({name: value[row] for name, value in outputs.items()})
                for row in range(len(part))
            ]

        description = f"decoding with {self.facts.get('head', 'model')}"
        with progress.counted(description, len(texts), "texts") as advance:
            for part, answered in zip(parts, self._answers_of(answer, parts)):
                answers.update(zip(part, answered))
                advance(len(part))
        return raise_refusals([answers[index] for index in range(len(texts))])

    def score(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        features: Mapping[str, Sequence[str]] | None = None,
    ) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
        """Returns `[pairs]` log-probabilities of targets, and their numbers of tokens.

        Args:
            sources, targets: lists of strings.
            features: as in `predict`.

        Raises:
            TextsRefused, ModelError: as in `predict`.
        """
        check_texts("source text", sources)
        check_texts("target text", targets)
        if len(sources) != len(targets):
            raise ModelError(
                f"There are {len(sources)} source and {len(targets)} target texts; give one target "
                "per source."
            )
        function = self._signature("score", {"source", "target", *self.source_features}, _SCORE)
        columns = {
            "source": sources,
            "target": targets,
            **self._features_of(features, len(sources)),
        }

        def score(part: Sequence[int]) -> list[tuple[np.float32, np.int32]]:
            outputs = self._call_rows(function, columns, part)
            return list(zip(outputs["log_probability"], outputs["token_count"]))

        rows = range(len(sources))
        parts = [rows[start : start + _SCORED] for start in range(0, len(sources), _SCORED)]
        scored = raise_refusals([one for part in self._answers_of(score, parts) for one in part])
        return (
            np.array([log_probability for log_probability, _ in scored], np.float32),
            np.array([count for _, count in scored], np.int32),
        )

    def _answering(self, signature: str) -> "tf.types.experimental.ConcreteFunction":
        return self._signature(signature, {"source", *self.source_features}, _ANSWER)

    def _features_of(
        self, features: Mapping[str, Sequence[str]] | None, number: int
    ) -> Mapping[str, Sequence[str]]:
        """Returns the tags for each column that the model takes.

        Raises:
            ModelError: tags are missing, superfluous, or not as many as there are texts.
        """
        features = features or {}
        if set(features) != set(self.source_features):
            raise ModelError(
                f"The model {self.directory} takes tags of "
                f"{', '.join(self.source_features) or 'no column'}; "
                f"got {', '.join(features) or 'none'}."
            )
        for name, values in features.items():
            if len(values) != number:
                raise ModelError(
                    f"There must be as many tags of {name} as texts; got {len(values)} and "
                    f"{number}."
                )
        return features

    def _call_rows(
        self,
        function: "tf.types.experimental.ConcreteFunction",
        columns: Mapping[str, Sequence[str]],
        rows: Sequence[int],
    ) -> Arrays:
        """Calls a signature with some rows of its inputs' texts."""
        return self._call(
            function,
            **{name: [values[row] for row in rows] for name, values in columns.items()},
        )

    def _answers_of(
        self, answer: Callable[[Sequence[int]], Sequence[Item]], parts: Sequence[Sequence[int]]
    ) -> Iterator[list[Item | TextRefused]]:
        """Answers parts of the texts, some of them concurrently.

        Args:
            answer: function from numbers of texts to what each is answered.
            parts: list of lists of numbers of texts.

        Yields:
            The answers of each part, in their order.
        """

        def answer_part(part: Sequence[int]) -> list[Item | TextRefused]:
            return answer_each(answer, part)

        # No thread is needed, and starting one would delay a single sentence.
        if self._at_once == 1:
            yield from map(answer_part, parts)
            return
        with concurrent.futures.ThreadPoolExecutor(self._at_once) as pool:
            yield from pool.map(answer_part, parts)


def _unpad(row: Mapping[str, Any]) -> Answer:
    tokens = [token.decode("utf-8") for token in row["tokens"] if token]
    source_tokens = [
        term_markup.phrase_of(token.decode("utf-8")) for token in row["source_tokens"] if token
    ]
    answer: Answer = {
        "text": row["text"].decode("utf-8"),
        "score": float(row["score"]),
        "tokens": tokens,
        "copied_from": row["copied_from"][: len(tokens)].tolist(),
        "copy_probability": [round(float(p), 4) for p in row["copy_probability"][: len(tokens)]],
        "source_tokens": source_tokens,
    }
    if "unknown_not_copied" in row:
        answer["unknown_not_copied"] = int(row["unknown_not_copied"])
    if "attention" in row:
        attention = row["attention"][: len(tokens), : len(source_tokens)]
        answer["attention"] = np.round(attention, 4).tolist()
    return answer
