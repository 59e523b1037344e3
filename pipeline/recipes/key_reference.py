"""The reference of the recipe's keys, as Markdown, made from their dataclasses."""

import ast
import dataclasses
import inspect
import itertools
import json
import textwrap
import typing
from collections.abc import Iterator
from typing import Any, NamedTuple

from pipeline.recipes.recipe_keys import RecipeKeys


class Key(NamedTuple):
    """A key of a recipe, for people.

    Attributes:
        name: as `--set` has it.
        kind: what it takes: a type, or a list of values.
        default: as TOML has it; "" for a key that every recipe sets.
        limits: the numbers or values that are allowed; "" for any.
        meaning: what it decides.
    """

    name: str
    kind: str
    default: str
    limits: str
    meaning: str


def keys_of(cls: type[Any] = RecipeKeys, prefix: str = "") -> Iterator[Key]:
    """Yields the keys of a recipe's dataclass, and of its sections, in their order."""
    hints, meanings = typing.get_type_hints(cls), _comments(cls)
    for field in dataclasses.fields(cls):
        name, hint = f"{prefix}{field.name}", hints[field.name]
        if dataclasses.is_dataclass(hint):
            yield from keys_of(typing.cast(type[Any], hint), f"{name}.")
            continue
        yield Key(
            name,
            _kind(hint),
            _default(field),
            _limits(field.metadata),
            meanings.get(field.name, ""),
        )


def markdown() -> str:
    """Returns the page: a table for each section, with what the section is for."""
    lines = [
        "# Recipe keys",
        "",
        "A recipe is a TOML file. Each key below has a default; `--set section.key=value` changes",
        "one. An unknown key or an impossible value is an error that names the key.",
        "",
    ]
    for section, keys in itertools.groupby(keys_of(), lambda key: key.name.rpartition(".")[0]):
        lines += [f"## {section or 'The recipe itself'}", "", *_about(section), ""]
        if section.endswith("thresholds"):
            # A key for each metric, none of which has a value by default.
            names = (f"`{key.name.rpartition('.')[2]}`" for key in keys)
            lines += [f"Each key is a number, and none is set by default: {', '.join(names)}.", ""]
            continue
        lines += ["| key | type | default | allowed | meaning |", "|---|---|---|---|---|"]
        for key in keys:
            cells = (f"`{key.name}`", key.kind, _code(key.default), key.limits, key.meaning)
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        lines.append("")
    return "\n".join(lines)


def _about(section: str) -> list[str]:
    """Returns the docstring of a section's dataclass."""
    cls: Any = RecipeKeys
    for part in section.split(".") if section else ():
        cls = typing.get_type_hints(cls)[part]
    text = inspect.cleandoc(cls.__doc__) if section else ""
    # What follows the paragraphs is for programmers.
    return text.partition("\n\nAttributes:")[0].partition("\n\nRaises:")[0].splitlines()


def _comments(cls: type[Any]) -> dict[str, str]:
    """Returns the comment above each field of a dataclass."""
    try:
        lines = textwrap.dedent(inspect.getsource(cls)).splitlines()
    except (OSError, TypeError):
        return {}
    (tree,) = ast.parse("\n".join(lines)).body
    found: dict[str, str] = {}
    last_end = 0
    for node in getattr(tree, "body", ()):
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            last_end = node.end_lineno or 0
            continue
        above: list[str] = []
        number = node.lineno - 2
        while number >= last_end and lines[number].strip().startswith("#"):
            above.insert(0, lines[number].strip().lstrip("#:").strip())
            number -= 1
        found[node.target.id] = " ".join(above)
        last_end = node.end_lineno or 0
    return found


def _kind(hint: Any) -> str:
    names = {str: "text", int: "whole number", float: "number", bool: "true or false"}
    if hint in names:
        return names[hint]
    if typing.get_origin(hint) is tuple:
        return f"list of {_kind(typing.get_args(hint)[0])}s"
    if typing.get_origin(hint) is dict:
        return "section"
    arguments = [argument for argument in typing.get_args(hint) if argument is not type(None)]
    return _kind(arguments[0]) if arguments else str(hint)


def _default(field: Any) -> str:
    if field.default_factory is not dataclasses.MISSING:
        return json.dumps(field.default_factory())
    if field.default is dataclasses.MISSING:
        return ""
    if field.default is None:
        return "none"
    return json.dumps(field.default, ensure_ascii=False)


def _limits(metadata: Any) -> str:
    if "choices" in metadata:
        return ", ".join(f'`"{value}"`' for value in metadata["choices"])
    low, high = metadata.get("low"), metadata.get("high")
    if low is not None and high is not None:
        return f"{low:,} to {high:,}"
    if low is not None:
        return f"at least {low:,}"
    return f"at most {high:,}" if high is not None else ""


def _code(text: str) -> str:
    return f"`{text}`" if text and text != "none" else text
