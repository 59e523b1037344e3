"""What the responses of a served model say: arrays by output name, read as plain values."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy.typing as npt

from serving.answers import Answer, Score, Token, WordScore

A = TypeVar("A")
Arrays = Mapping[str, npt.NDArray[Any]]


@dataclasses.dataclass(frozen=True)
class Reading(Generic[A]):
    """How the outputs of a signature are read.

    Attributes:
        axes: output name to number of axes, the texts' axis included. They are all asked for.
        read: function of the outputs' arrays; returns an answer for each text.
    """

    axes: Mapping[str, int]
    read: Callable[[Arrays], list[A]]


def _answers(outputs: Arrays) -> list[Answer]:
    return [_answer(outputs, (row,), row) for row in range(len(outputs["text"]))]


def _lists_of_answers(outputs: Arrays) -> list[list[Answer]]:
    rows, count = outputs["text"].shape
    return [[_answer(outputs, (row, best), row) for best in range(count)] for row in range(rows)]


def _answer(outputs: Arrays, index: tuple[int, ...], row: int) -> Answer:
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


def _scores(outputs: Arrays) -> list[Score]:
    return [
        Score(float(p), int(n)) for p, n in zip(outputs["log_probability"], outputs["token_count"])
    ]


def _continuations(outputs: Arrays) -> list[Answer]:
    return [_continuation(outputs, row) for row in range(len(outputs["text"]))]


def _continuation(outputs: Arrays, row: int) -> Answer:
    read = [token for token in outputs["text_tokens"][row] if token]
    words: Sequence[str] = [*read, *outputs["tokens"][row]]
    tokens = tuple(
        Token(word, int(position), words[position], float(probability))
        if position >= 0
        else Token(word, copy_probability=float(probability))
        for word, position, probability in zip(
            outputs["tokens"][row], outputs["copied_from"][row], outputs["copy_probability"][row]
        )
    )
    return Answer(outputs["text"][row], float(outputs["log_probability"][row].sum()), tokens)


def _word_scores(outputs: Arrays) -> list[WordScore]:
    return [
        WordScore(tuple(tokens[:count]), tuple(float(p) for p in log_probabilities[:count]))
        for tokens, log_probabilities, count in zip(
            outputs["tokens"], outputs["log_probability"], outputs["token_count"]
        )
    ]


_ANSWER_AXES = {"text": 1, "score": 1, "tokens": 2, "copied_from": 2, "copy_probability": 2}

ANSWERS = Reading({**_ANSWER_AXES, "source_tokens": 2}, _answers)
LISTS_OF_ANSWERS = Reading(
    {**{name: axes + 1 for name, axes in _ANSWER_AXES.items()}, "source_tokens": 2},
    _lists_of_answers,
)
SCORES = Reading({"log_probability": 1, "token_count": 1}, _scores)
CONTINUATIONS = Reading(
    {
        "text": 1,
        "tokens": 2,
        "copied_from": 2,
        "copy_probability": 2,
        "log_probability": 2,
        "text_tokens": 2,
    },
    _continuations,
)
WORD_SCORES = Reading({"log_probability": 2, "tokens": 2, "token_count": 1}, _word_scores)
