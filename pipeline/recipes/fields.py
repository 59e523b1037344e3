"""The fields of a recipe with their choices and limits, and the check of every key and value."""

import dataclasses
import difflib
import math
import types
import typing
from collections.abc import Callable, Iterable
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
    # A dict has no hash. Without it equal recipes still have equal hashes.
    return dataclasses.field(default_factory=dict, hash=False, metadata={"read": function})


def build(cls: type[_Section], tree: Any, prefix: str) -> _Section:
    """Builds a section, or a whole recipe, from nested dicts.

    Args:
        cls: its dataclass.
        tree: what the recipe says, a dict from key to value.
        prefix: the keys that lead to it, each with a dot, for messages.

    Raises:
        RecipeError: an unknown key or impossible value; the sentence names the key.
    """
    if not isinstance(tree, dict):
        raise RecipeError(
            f"The recipe key '{prefix.rstrip('.')}' must be a section with keys of its own."
        )
    fields = {field.name: field for field in dataclasses.fields(typing.cast(Any, cls))}
    hints = typing.get_type_hints(cls)
    values: dict[str, Any] = {}
    for key, value in tree.items():
        if key not in fields:
            raise RecipeError(
                f"The recipe has an unknown key '{prefix}{key}'{suggestion(key, fields)}"
            )
        if dataclasses.is_dataclass(hints[key]):
            values[key] = build(hints[key], value, f"{prefix}{key}.")
        elif "read" in fields[key].metadata:
            values[key] = fields[key].metadata["read"](f"{prefix}{key}", value)
        else:
            values[key] = check_value(f"{prefix}{key}", value, hints[key], fields[key].metadata)
    if "name" in fields and not values.get("name"):
        raise RecipeError("The recipe needs a 'name'.")
    return cls(**values)


def check_value(key: str, value: Any, hint: Any, metadata: types.MappingProxyType[Any, Any]) -> Any:
    """Returns a key's value, checked, as its dataclass has it.

    Args:
        key: its name, for messages.
        value: what the recipe says.
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


def suggestion(word: str, known: Iterable[str]) -> str:
    """Returns the end of a sentence about an unknown word: the most similar known one, if any."""
    close = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean '{close[0]}'?" if close else "."
