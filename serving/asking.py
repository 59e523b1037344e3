"""Many texts asked a few at a time: a refused text does not affect the others."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import grpc

from serving.errors import RequestError

A = TypeVar("A")
# A function of a list of texts for each column; it returns an answer for each row.
Ask = Callable[..., Sequence[A]]


def ask_all(ask: Ask[A], columns: Sequence[Sequence[str]], size: int) -> Iterator[A | RequestError]:
    """Asks rows of texts in batches, and one by one where a batch is refused for what it holds.

    Args:
        ask: function of as many lists of texts as there are columns; returns an answer for each
            row.
        columns: lists of texts of equal length; the first is not empty.
        size: the most rows in a request.

    Yields:
        For each row, in order, its answer, or the `RequestError` that refuses it.

    Raises:
        RequestError: nobody answers, or all of the first rows are refused: then no single text is
            the reason.
    """
    answered = False
    for begin in range(0, len(columns[0]), size):
        answers = _answers(ask, [column[begin : begin + size] for column in columns])
        first = answers[0]
        if not answered and isinstance(first, RequestError):
            if all(isinstance(answer, RequestError) for answer in answers):
                raise first
        answered = True
        yield from answers


def _answers(ask: Ask[A], rows: Sequence[Sequence[str]]) -> Sequence[A | RequestError]:
    """Returns an answer, or the error that refuses it, for each row."""
    answers = _try(ask, rows)
    if not isinstance(answers, RequestError):
        return answers
    if len(rows[0]) == 1:
        return [answers]
    return [_only(_try(ask, [[text] for text in row])) for row in zip(*rows)]


def _try(ask: Ask[A], rows: Sequence[Sequence[str]]) -> Sequence[A] | RequestError:
    """Returns the answers, or the error if the request is refused for what it holds."""
    try:
        return ask(*rows)
    except RequestError as error:
        if error.code != grpc.StatusCode.INVALID_ARGUMENT:
            raise
        return error


def _only(answers: Sequence[A] | RequestError) -> A | RequestError:
    return answers if isinstance(answers, RequestError) else answers[0]
