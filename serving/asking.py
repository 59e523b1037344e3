"""Sends many texts a few at a time; a refused text does not fail the others."""

import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, TypeVar

import grpc

from serving.errors import RequestError
from serving.messages import Question

A = TypeVar("A")
# A function of a list of texts for each column; it returns an answer for each row.
Ask = Callable[..., Sequence[A]]
#: Yields questions, and receives the answers to each, or the error instead.
Asked = Generator[Question[list[Any]], "list[Any] | RequestError", None]
# If this many texts are refused for the same reason before one is answered, the texts are not the
# reason.
_ENOUGH = 8


class Collected:
    """The answers to one call's texts, as they arrive.

    Attributes:
        answers: for each text its answer, the `RequestError` that refuses it, or None so far.
    """

    def __init__(self) -> None:
        self.answers: list[Any] = []
        self._reasons: set[str] | None = set()
        self._lock = threading.Lock()

    def step(
        self, asked: Asked, reply: "list[Any] | RequestError | None"
    ) -> Question[list[Any]] | None:
        """Returns the next question of `ask` after the reply to the last one; None at its end.

        Threads may call it, each with questions of its own.

        Raises:
            RequestError: as `ask`.
        """
        with self._lock:
            try:
                return next(asked) if reply is None else asked.send(reply)
            except StopIteration:
                return None

    def ask(self, question: Question[list[Any]]) -> Asked:
        """Asks one question; if it is refused for its texts, asks each half of them alone.

        Raises:
            RequestError: no server answers, or the call as a whole is refused.
        """
        batch = question.batch
        assert batch is not None
        self.answers += [None] * (batch.total - len(self.answers))
        answers = yield question
        if not isinstance(answers, RequestError):
            for row, answer in zip(batch.rows, answers):
                self.answers[row] = answer
            self._reasons = None
        elif answers.code != grpc.StatusCode.INVALID_ARGUMENT:
            raise answers
        elif len(batch.rows) > 1:
            for half in batch.halves():
                yield from self.ask(half)
        else:
            self.answers[batch.rows[0]] = answers
            self._check_reason(answers)

    def _check_reason(self, error: RequestError) -> None:
        """Ends the call if every text so far is refused for the same reason, which names none."""
        if self._reasons is None or error.names_text:
            self._reasons = None
            return
        self._reasons.add(error.reason)
        refused = sum(isinstance(answer, RequestError) for answer in self.answers)
        if len(self._reasons) > 1:
            self._reasons = None
        elif len(self.answers) > 1 and refused == min(_ENOUGH, len(self.answers)):
            raise RequestError(error.reason, error.code)

    def result(self, return_exceptions: bool) -> list[Any]:
        """Returns the answers.

        Args:
            return_exceptions: whether the `RequestError` of a refused text takes its place.

        Raises:
            RequestError: otherwise, if a text is refused; it has the answers to the others.
        """
        errors = [answer for answer in self.answers if isinstance(answer, RequestError)]
        if return_exceptions or not errors:
            return self.answers
        sentence = str(errors[0])
        if len(errors) > 1:
            sentence += f" {len(errors)} of {len(self.answers)} texts were refused."
        raise self._with_answers(errors[0], sentence)

    def broken_off(self, error: RequestError) -> RequestError:
        """Returns the error that ended the call, with the answers so far."""
        if all(answer is None or isinstance(answer, RequestError) for answer in self.answers):
            return error
        return self._with_answers(error, str(error))

    def _with_answers(self, error: RequestError, sentence: str) -> RequestError:
        return RequestError(
            sentence,
            error.code,
            index=error.index,
            reason=error.reason,
            names_text=error.names_text,
            answers=self.answers if len(self.answers) > 1 else None,
        )


def ask_all(ask: Ask[A], columns: Sequence[Sequence[str]], size: int) -> Iterator[A | RequestError]:
    """Asks rows of texts in batches, and yields the answers as they arrive.

    Args:
        ask: function of one list of texts per column; returns an answer for each row. It raises
            `RequestError`, with the answers to the others where single texts are refused.
        columns: lists of texts of equal length; the first is not empty.
        size: the most rows in a batch.

    Yields:
        For each row, in order, its answer, or the `RequestError` that refuses it.

    Raises:
        RequestError: no server answers, or the request as a whole is refused.
    """
    total = len(columns[0])
    for begin in range(0, total, size):
        try:
            yield from ask(*(column[begin : begin + size] for column in columns))
        except RequestError as error:
            if error.code != grpc.StatusCode.INVALID_ARGUMENT:
                # The texts before it in this batch were answered.
                for answer in error.answers or ():
                    if answer is None:
                        break
                    yield answer
                raise
            if error.answers is not None:
                yield from error.answers
            elif total > 1 and error.index is not None:
                yield error
            else:
                raise
