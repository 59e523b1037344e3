"""Finds the texts that a model refuses, so that the others keep their answers."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from pipeline.export.loaded_model import ModelError, TextRefused

Item = TypeVar("Item")
# How a model names the refused text, counted within its batch.
_NAMED = re.compile(r"\b((?:source |target )?text) 0\b")


class TextsRefused(ModelError):
    """Some texts were refused; the message names the first of them.

    Attributes:
        reasons: dict from the place of each refused text in the caller's list to a sentence.
        answers: list of the other texts' answers, with None in the place of each refused one.
    """

    def __init__(self, reasons: Mapping[int, str], answers: Sequence[Any]) -> None:
        self.reasons = dict(sorted(reasons.items()))
        self.answers = list(answers)
        first = next(iter(self.reasons.values()))
        others = len(self.reasons) - 1
        number = "1 more text was" if others == 1 else f"{others} more texts were"
        super().__init__(f"{first} {number} refused, too." if others else first)


def answer_each(
    answer: Callable[[Sequence[int]], Sequence[Item]], rows: Sequence[int]
) -> list[Item | TextRefused]:
    """Answers a batch; if it is refused, finds the text that causes it.

    Args:
        answer: function from places in the caller's list to an item for each.
        rows: the places.

    Returns:
        For each place its item, or a `TextRefused` that names the text by that place.
    """
    try:
        return list(answer(rows))
    except TextRefused as error:
        if len(rows) == 1:
            return [TextRefused(_NAMED.sub(rf"\1 {rows[0]}", str(error)))]
    middle = len(rows) // 2
    return [*answer_each(answer, rows[:middle]), *answer_each(answer, rows[middle:])]


def raise_refusals(answers: Sequence[Item | TextRefused]) -> list[Item]:
    """Returns the answers.

    Raises:
        TextsRefused: some of them are refusals.
    """
    given = [None if isinstance(answer, TextRefused) else answer for answer in answers]
    reasons = {
        place: str(answer)
        for place, answer in enumerate(answers)
        if isinstance(answer, TextRefused)
    }
    if reasons:
        raise TextsRefused(reasons, given)
    return [answer for answer in answers if not isinstance(answer, TextRefused)]


def check_texts(name: str, texts: Sequence[Any]) -> None:
    """Checks that texts are a list of strings.

    Args:
        name: the name of a text, such as `"source text"`.
        texts: the caller's argument.

    Raises:
        ModelError: they are one string, or one of them is not a string.
    """
    if isinstance(texts, str | bytes) or not isinstance(texts, Sequence):
        raise ModelError(f"Give a list of {name}s; got {type(texts).__name__}.")
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise ModelError(f"The {name} {place} must be a string; got {type(text).__name__}.")
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise ModelError(
                f"The {name} {place} contains half of a surrogate pair, which is not a character; "
                "decode it correctly."
            ) from None
