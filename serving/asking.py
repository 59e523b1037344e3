"""Many texts asked a few at a time: a text that is refused costs the others nothing."""

import grpc

from serving.errors import RequestError


def ask_all(ask, columns, size):
    """Asks rows of texts, and once more one by one where a request is refused for what it holds.

    Args:
        ask: function of as many lists of texts as there are columns; returns a list of as many
            answers.
        columns: lists of texts, all as long as the first, which is not empty.
        size: the most rows in a request.

    Yields:
        For each row, in order, its answer, or the `RequestError` that refuses it.

    Raises:
        RequestError: nobody answers, or the first rows are refused without exception, which is then
            no matter of a text.
    """
    answered = False
    for begin in range(0, len(columns[0]), size):
        rows = [column[begin : begin + size] for column in columns]
        answers = _ask(ask, rows)
        if isinstance(answers, RequestError):
            answers = (
                [answers]
                if len(rows[0]) == 1
                else [_only(_ask(ask, [[text] for text in row])) for row in zip(*rows)]
            )
        if not answered and all(isinstance(answer, RequestError) for answer in answers):
            raise answers[0]
        answered = True
        yield from answers


def _ask(ask, rows):
    """Returns the answers, or the error if the request is refused for what it holds."""
    try:
        return ask(*rows)
    except RequestError as error:
        if error.code != grpc.StatusCode.INVALID_ARGUMENT:
            raise
        return error


def _only(answers):
    return answers if isinstance(answers, RequestError) else answers[0]
