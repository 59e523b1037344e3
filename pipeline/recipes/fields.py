"""The fields of a recipe with their choices and limits, and the check of every key and value."""

import dataclasses
import difflib
import math
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from pipeline.common.errors import VerbatimError

_Section = TypeVar("_Section")
_Value = TypeVar("_Value")
_Number = TypeVar("_Number", int, float, float | None)


class RecipeError(VerbatimError, ValueError):
    """A recipe that cannot be used; its message is one sentence for the user."""


def choice(*values: str, default: str) -> str:
    """Returns a dataclass field that takes one of the values."""
    return dataclasses.field(default=default, metadata={"choices": values})


def number(default: _Number, low: float | None = None, high: float | None = None) -> _Number:
    """Returns a dataclass field that takes a number from `low` to `high`; None is no limit."""
    return dataclasses.field(default=default, metadata={"low": low, "high": high})


def read_by(function: Callable[[str, Any], dict[str, _Value]]) -> dict[str, _Value]:
    """Returns a dataclass field for a dict, made by a function of the recipe's key and value."""
    # A dict has no hash. Equal recipes still have equal hashes without it.
    return dataclasses.field(default_factory=dict, hash=False, metadata={"read": function})


def build(
    cls: type[_Section], tree: Any, prefix: str, known: Sequence[str] | None = None
) -> _Section:
    """Builds a section, or a whole recipe, from nested dicts.

    Args:
        cls: its dataclass.
        tree: what the recipe says, a dict from key to value.
        prefix: the keys that lead to it, each with a dot, for messages.
        known: the dotted keys of the whole recipe, to suggest one for an unknown key; None for
            those of `cls`.

    Raises:
        RecipeError: an unknown key or impossible value; the sentence names the key.
    """
    if not isinstance(tree, dict):
        raise RecipeError(
            f"The recipe key '{prefix.rstrip('.')}' must be a section with keys of its own."
        )
    fields = {field.name: field for field in dataclasses.fields(typing.cast(Any, cls))}
    hints = typing.get_type_hints(cls)
    if known is None:
        known = list(dotted_keys(cls, prefix))
    values: dict[str, Any] = {}
    for key, value in tree.items():
        if key not in fields:
            raise RecipeError(
                f"The recipe has an unknown key '{prefix}{key}'"
                f"{_key_suggestion(key, value, prefix, fields, known)}"
            )
        if dataclasses.is_dataclass(hints[key]):
            values[key] = build(hints[key], value, f"{prefix}{key}.", known)
        elif "read" in fields[key].metadata:
            values[key] = fields[key].metadata["read"](f"{prefix}{key}", value)
        else:
            values[key] = check_value(f"{prefix}{key}", value, hints[key], fields[key].metadata)
    if "name" in fields and not values.get("name"):
        raise RecipeError("The recipe needs a 'name'.")
    return cls(**values)


def dotted_keys(cls: type[Any], prefix: str = "") -> Iterator[str]:
    """Yields the keys of a recipe's dataclass as `--set` has them, those of its sections too."""
    hints = typing.get_type_hints(cls)
    for field in dataclasses.fields(cls):
        if dataclasses.is_dataclass(hint := hints[field.name]):
            yield from dotted_keys(typing.cast(type[Any], hint), f"{prefix}{field.name}.")
        else:
            yield f"{prefix}{field.name}"


def _key_suggestion(
    key: str, value: Any, prefix: str, fields: Iterable[str], known: Sequence[str]
) -> str:
    """Returns the end of a sentence about an unknown key: the keys that it may have meant.

    A similar key of the same section comes first, unless another section has just this key.
    """
    similar = suggestion(key, fields)
    is_section = isinstance(value, dict)
    if is_section and similar != ".":
        return similar
    # For a section unlike any other, list its keys instead of its name.
    for name in [*value, key] if is_section else [key]:
        if same := [other for other in known if other.rpartition(".")[2] == name]:
            return _any_of(same)
    if similar != ".":
        return similar
    last = {other.rpartition(".")[2]: other for other in known}
    close = difflib.get_close_matches(key, list(last), n=1)
    return _any_of([other for other in known if other.rpartition(".")[2] in close])


def _any_of(keys: Sequence[str]) -> str:
    return f"; did you mean {' or '.join(map(repr, keys))}?" if keys else "."


def check_value(key: str, value: Any, hint: Any, metadata: types.MappingProxyType[Any, Any]) -> Any:
    """Returns a key's value, checked, as its dataclass has it.

    Args:
        key: its name, for messages.
        value: the recipe's value.
        hint: its type in the dataclass.
        metadata: the field's, as `choice` and `number` make it.

    Raises:
        RecipeError: an impossible value; the sentence names the key.
    """
    if hint == tuple[str, ...]:
        if not isinstance(value, (list, tuple)) or not all(
            isinstance(item, str) and item.strip() for item in value
        ):
            raise RecipeError(
                f"The recipe key '{key}' must be a list of texts, such as [\"a\"]; got {value!r}."
            )
        if len(set(value)) < len(value):
            raise RecipeError(f"The recipe key '{key}' names something twice: {value!r}.")
        return tuple(value)
    if hint == float | None:
        if value is None:
            return None
        hint = float
    if hint == tuple[float, ...]:
        return _check_numbers(key, value)
    if typing.get_origin(hint) is tuple:
        are_numbers = isinstance(value, (list, tuple)) and all(
            isinstance(item, int) and not isinstance(item, bool) and item > 0 for item in value
        )
        if not are_numbers or not value or list(value) != sorted(set(value)):
            raise RecipeError(
                f"The recipe key '{key}' must be a rising list of positive whole numbers; got "
                f"{value!r}."
            )
        return tuple(value)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value) if abs(value) < 1e300 else math.inf
    if not isinstance(value, hint) or (hint is not bool and isinstance(value, bool)):
        name = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}[
            hint
        ]
        raise RecipeError(f"The recipe key '{key}' must be {name}; got {value!r}.")
    choices = metadata.get("choices")
    if choices and value not in choices:
        names = ", ".join(repr(choice) for choice in choices)
        raise RecipeError(f"The recipe key '{key}' must be one of {names}; got {value!r}.")
    low, high = metadata.get("low"), metadata.get("high")
    if hint is float and not math.isfinite(value):
        raise RecipeError(f"The recipe key '{key}' must be a finite number; got {value!r}.")
    if (low is not None and value < low) or (high is not None and value > high):
        limits = f"at least {low}" if high is None else f"between {low} and {high}"
        raise RecipeError(f"The recipe key '{key}' must be {limits}; got {value!r}.")
    return value


def _check_numbers(key: str, value: Any) -> tuple[float, ...]:
    if not isinstance(value, (list, tuple)) or not all(
        isinstance(item, (int, float)) and not isinstance(item, bool) and 0 <= item < math.inf
        for item in value
    ):
        raise RecipeError(
            f"The recipe key '{key}' must be a list of numbers, 0 or above; got {value!r}."
        )
    return tuple(map(float, value))


def suggestion(word: str, known: Iterable[str]) -> str:
    """Returns the end of a sentence about an unknown word: the most similar known one, if any."""
    close = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean '{close[0]}'?" if close else "."
