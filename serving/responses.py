"""Reads the responses of a served model, nested lists by output name, as plain values."""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from serving import term_markup
from serving.answers import Answer, Explanation, Score, Token, WordScore

A = TypeVar("A")
#: Output name to nested lists of strings or numbers.
Arrays = Mapping[str, list[Any]]


@dataclasses.dataclass(frozen=True)
class Reading(Generic[A]):
    """How the outputs of a signature are read.

    Attributes:
        axes: output name to number of axes, the texts' axis included.
        read: function of the outputs' lists; returns an answer for each text.
        optional: the same as `axes`, of outputs that not every model has.
    """

    axes: Mapping[str, int]
    read: Callable[[Arrays], list[A]]
    optional: Mapping[str, int] = dataclasses.field(default_factory=dict)


def _answers(outputs: Arrays) -> list[Answer]:
    return [_answer(outputs, (row,), row) for row in range(len(outputs["text"]))]


def _lists_of_answers(outputs: Arrays) -> list[list[Answer]]:
    return [
        [_answer(outputs, (row, best), row) for best in range(len(texts))]
        for row, texts in enumerate(outputs["text"])
    ]


def _answer(outputs: Arrays, index: tuple[int, ...], row: int) -> Answer:
    """Returns the `Answer` at `index` of the outputs; `row` is its text's place in the request."""
    source_tokens = outputs["source_tokens"][row]
    tokens = []
    for text, position, probability in zip(
        _at(outputs["tokens"], index),
        _at(outputs["copied_from"], index),
        _at(outputs["copy_probability"], index),
    ):
        if text == "":
            continue
        if 0 <= position < len(source_tokens):
            source_token = source_tokens[position]
            term = term_markup.read_term(source_token)
            phrase = term[0] if term else source_token
            tokens.append(Token(text, position, phrase, probability, is_term=bool(term)))
        else:
            tokens.append(Token(text, copy_probability=probability))
    long = {name: outputs[name][row] for name in _LONG_AXES if name in outputs}
    return Answer(_at(outputs["text"], index), _at(outputs["score"], index), tuple(tokens), **long)


def _explanations(outputs: Arrays) -> list[Explanation]:
    return [_explanation(outputs, row) for row in range(len(outputs["text"]))]


def _explanation(outputs: Arrays, row: int) -> Explanation:
    answer = _answer(outputs, (row,), row)
    source_tokens = [token for token in outputs["source_tokens"][row] if token]
    attention = tuple(
        tuple(weights[: len(source_tokens)])
        for token, weights in zip(outputs["tokens"][row], outputs["attention"][row])
        if token
    )
    phrases = (term_markup.read_term(token) for token in source_tokens)
    return Explanation(
        **{field.name: getattr(answer, field.name) for field in dataclasses.fields(Answer)},
        source_tokens=tuple(
            term[0] if term else token for term, token in zip(phrases, source_tokens)
        ),
        attention=attention,
    )


def _at(values: Any, index: tuple[int, ...]) -> Any:
    """Returns the value at a place of nested lists."""
    for place in index:
        values = values[place]
    return values


def _scores(outputs: Arrays) -> list[Score]:
    return [Score(p, n) for p, n in zip(outputs["log_probability"], outputs["token_count"])]


def _continuations(outputs: Arrays) -> list[Answer]:
    return [_continuation(outputs, row) for row in range(len(outputs["text"]))]


def _continuation(outputs: Arrays, row: int) -> Answer:
    read = [token for token in outputs["text_tokens"][row] if token]
    words: Sequence[str] = [*read, *outputs["tokens"][row]]
    tokens = tuple(
        Token(word, position, words[position], probability)
        if 0 <= position < len(words)
        else Token(word, copy_probability=probability)
        for word, position, probability in zip(
            outputs["tokens"][row], outputs["copied_from"][row], outputs["copy_probability"][row]
        )
    )
    return Answer(outputs["text"][row], math.fsum(outputs["log_probability"][row]), tokens)


def _word_scores(outputs: Arrays) -> list[WordScore]:
    return [
        WordScore(tuple(tokens[:count]), tuple(log_probabilities[:count]))
        for tokens, log_probabilities, count in zip(
            outputs["tokens"], outputs["log_probability"], outputs["token_count"]
        )
    ]


_ANSWER_AXES = {"text": 1, "score": 1, "tokens": 2, "copied_from": 2, "copy_probability": 2}

# Only models with `decoding.long_texts` have them.
_LONG_AXES = {"parts": 1, "tokens_dropped": 1}

ANSWERS = Reading({**_ANSWER_AXES, "source_tokens": 2}, _answers, _LONG_AXES)
EXPLANATIONS = Reading(
    {**_ANSWER_AXES, "source_tokens": 2, "attention": 3}, _explanations, _LONG_AXES
)
LISTS_OF_ANSWERS = Reading(
    {**{name: axes + 1 for name, axes in _ANSWER_AXES.items()}, "source_tokens": 2},
    _lists_of_answers,
    _LONG_AXES,
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
