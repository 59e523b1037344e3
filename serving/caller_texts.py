"""Checks of a caller's arguments, before anything is sent."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping
from typing import Any

from serving import term_markup
from serving.errors import RequestError
from serving.glossary import Glossary, GlossaryLike

#: A text, or any number of them.
Texts = str | Iterable[str]
#: Column of tags to as many texts.
Features = Mapping[str, Texts]


def as_list(texts: Texts, name: str = "texts") -> list[str]:
    """Returns texts as a list.

    Args:
        texts: a text, or any number of them.
        name: their name in a sentence.

    Raises:
        RequestError: they are not texts.
    """
    if isinstance(texts, str):
        return [texts]
    # Bytes and dicts can be iterated over too.
    if isinstance(texts, (bytes, bytearray, memoryview, Mapping)) or not isinstance(
        texts, Iterable
    ):
        raise RequestError(
            f"{name} must be a str or several, such as a list of str; got {_type(texts)}"
            f"{_hint(texts)}."
        )
    listed = list(texts)
    for index, text in enumerate(listed):
        if not isinstance(text, str):
            raise RequestError(
                f"{name}[{index}] must be a str; got {_type(text)}{_hint(text)}.", index=index
            )
    return listed


def inputs(
    texts: Texts, features: Features | None, glossary: GlossaryLike | None = None
) -> dict[str, list[str]]:
    """Returns the inputs of a request: the sources, and their tags by column.

    Args:
        texts: the sources.
        features: their tags by column; or None.
        glossary: terms to mark in the sources; or None.

    Raises:
        RequestError: they are not texts, a column has another number of tags than there are texts,
            or the glossary cannot be used.
    """
    if glossary is not None and features:
        raise RequestError("A model that takes tags of tokens takes no glossary: leave it out.")
    mark = term_markup.plain if glossary is None else Glossary.of(glossary).mark
    listed = {"source": list(map(mark, as_list(texts)))}
    count = len(listed["source"])
    if features is not None and not isinstance(features, Mapping):
        raise RequestError(f"features must be a dict from columns to texts; got {_type(features)}.")
    for name, tags in (features or {}).items():
        check_name("the name of a column of features", name)
        listed[name] = as_list(tags, f'features["{name}"]')
        if len(listed[name]) != count:
            raise RequestError(
                f'There must be as many texts of "{name}" as sources; got {len(listed[name])} and '
                f"{count}."
            )
    return listed


def pairs(sources: Texts, targets: Texts, features: Features | None) -> dict[str, list[str]]:
    """Returns the inputs of a request that scores targets.

    Raises:
        RequestError: as for `inputs`, or the numbers of targets and sources differ.
    """
    listed = inputs(as_list(sources, "sources"), features)
    asked = list(map(term_markup.plain, as_list(targets, "targets")))
    if len(listed["source"]) != len(asked):
        raise RequestError(
            f"There must be as many targets as sources; got {len(listed['source'])} sources and "
            f"{len(asked)} targets."
        )
    return {"target": asked, **listed}


def check_name(what: str, name: object) -> None:
    """Refuses a name that cannot be sent.

    Raises:
        RequestError: one sentence.
    """
    if not isinstance(name, str):
        raise RequestError(f"{what} must be a str; got {_type(name)}.")
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        raise RequestError(
            f"{what} holds half a surrogate pair and cannot be sent as UTF-8."
        ) from None


def check_whole_number(name: str, number: object, least: int, most: int | None = None) -> None:
    """Refuses a value that is not a whole number of a range.

    Raises:
        RequestError: one sentence.
    """
    if isinstance(number, bool) or not isinstance(number, numbers.Integral):
        raise RequestError(f"{name} must be a whole number; got {number!r}.")
    if int(number) < least or (most is not None and int(number) > most):
        bounds = f"{least} or more" if most is None else f"{least} to {most}"
        raise RequestError(f"{name} must be {bounds}; got {number}.")


def check_seconds(name: str, seconds: object) -> None:
    """Refuses an impossible timeout; None means no limit.

    Raises:
        RequestError: one sentence.
    """
    if seconds is None:
        return
    real = isinstance(seconds, numbers.Real) and not isinstance(seconds, bool)
    if not (real and 0 < float(seconds) < math.inf):  # type: ignore[arg-type]
        raise RequestError(f"{name} must be a number of seconds above 0, or None; got {seconds!r}.")


def _type(value: Any) -> str:
    return "None" if value is None else type(value).__name__


def _hint(value: object) -> str:
    return ", to be decoded first" if isinstance(value, (bytes, bytearray, memoryview)) else ""
