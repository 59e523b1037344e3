"""The reference of the components, as Markdown, made from their specs and docstrings.

python -m components.component_reference > docs/reference/components.md
"""

import inspect
import re
import textwrap
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tfx.types import BaseChannel, component_spec

from components.evaluator.component import Evaluator
from components.exporter.component import Exporter
from components.last_pushed_model.component import LastPushedModel
from components.lexicon.component import Lexicon
from components.pairs_from_examples.component import PairsFromExamples
from components.parallel_text_example_gen.component import ParallelTextExampleGen
from components.reporter.component import Reporter
from components.subwords.component import Subwords
from components.text_example_gen.component import TextExampleGen
from components.text_transform.component import TextTransform
from components.vocabulary.component import Vocabulary

#: In the order of a pipeline.
COMPONENTS: tuple[type[Any], ...] = (
    ParallelTextExampleGen,
    TextExampleGen,
    PairsFromExamples,
    Subwords,
    Vocabulary,
    Lexicon,
    TextTransform,
    Exporter,
    LastPushedModel,
    Evaluator,
    Reporter,
)
_OUTPUTS = "Component `outputs` contains:"
_ABOUT = """\
# Components

Verbatim's TFX components, with the types of their inputs, outputs and execution properties. The
types of artifacts are TFX's own: those of `tfx.types.standard_artifacts`, and `File` of
`tfx.types.experimental.simple_artifacts`, which is a folder here.
[Components in your own pipeline](../guides/own_component.md) shows how to use them.

This page is made by `python -m components.component_reference`."""


def markdown() -> str:
    """Returns the page."""
    return "\n\n".join([_ABOUT, *(_section(component) for component in COMPONENTS)]) + "\n"


def _section(component: type[Any]) -> str:
    spec, parent = component.SPEC_CLASS, _parent(component)
    about, _, outputs = inspect.cleandoc(component.__doc__ or "").partition(_OUTPUTS)
    parts = [
        f"## {component.__name__}",
        f"`from {component.__module__} import {component.__name__}`",
        about.strip(),
    ]
    properties: Iterable[tuple[str, component_spec.ExecutionParameter]] = spec.PARAMETERS.items()
    if "__init__" in vars(component):
        parts.append(_table("argument", ("type", "default", "meaning"), _arguments(component)))
        meanings = dict(_described(outputs))
        arguments = inspect.signature(component.__init__).parameters
    else:
        parts.append(f"The arguments are those of TFX's `{component.__name__}`.")
        meanings = {}
        arguments = inspect.signature(parent.__init__).parameters
    if parent:
        # What only TFX's own component writes and reads is of its version.
        inherited = parent.SPEC_CLASS.PARAMETERS
        properties = [item for item in properties if item[0] not in inherited]
        parts.append(f"It also has the execution properties of TFX's `{parent.__name__}`.")
    parts += [
        _table(
            "input",
            ("type", "required"),
            (
                _with_need(item)
                for item in _channels(spec.INPUTS)
                if not parent or item[0] in arguments
            ),
        ),
        _table(
            "output",
            ("type", "content"),
            (
                (name, f"`{kind}`", meanings.get(name, "as TFX's component"))
                for name, kind, _ in _channels(spec.OUTPUTS)
                if name in meanings or not meanings
            ),
        ),
        _table(
            "execution property",
            ("type", "required"),
            (
                _with_need((name, parameter.type.__name__, bool(parameter.optional)))
                for name, parameter in properties
            ),
        ),
    ]
    return "\n\n".join(part for part in parts if part)


def _parent(component: type[Any]) -> Any:
    """Returns the component of TFX's that one of ours is made of; None if there is none."""
    for base in component.__mro__[1:]:
        if base.__module__.startswith("tfx.components."):
            return base
    return None


def _channels(
    channels: Mapping[str, component_spec.ChannelParameter],
) -> Iterator[tuple[str, str, bool]]:
    """Yields the name, the type, and whether it may be left out."""
    for name, channel in channels.items():
        yield name, channel.type.__name__, bool(channel.optional)


def _with_need(item: tuple[str, str, bool]) -> tuple[str, str, str]:
    name, kind, optional = item
    return name, f"`{kind}`", "no" if optional else "yes"


def _arguments(component: type[Any]) -> Iterator[tuple[str, ...]]:
    """Yields the name, type, default and meaning of each argument."""
    init: Any = component.__init__
    hints = typing.get_type_hints(init)
    text = inspect.cleandoc(init.__doc__ or "").partition("Args:\n")[2]
    meanings = dict(_described(textwrap.dedent(text.partition("\n\n")[0])))
    for name, parameter in inspect.signature(init).parameters.items():
        if name != "self":
            default = "" if parameter.default is parameter.empty else f"`{parameter.default!r}`"
            yield name, _type_name(hints[name]), default, meanings[name]


def _described(text: str) -> Iterator[tuple[str, str]]:
    """Yields the names and meanings of a docstring's list, whose items may go over lines."""
    for match in re.finditer(
        r"^ ?(?:- )?`?(\w+)`?: (.*(?:\n {2,}.*)*)", textwrap.dedent(text), flags=re.MULTILINE
    ):
        # The type stands in a column of its own.
        meaning = re.sub(r"^`[\w.]+`,? ", "", " ".join(match[2].split()))
        yield match[1], meaning.removesuffix(".")


def _type_name(hint: Any) -> str:
    arguments = typing.get_args(hint)
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return " or ".join(_type_name(one) for one in arguments if one is not type(None))
    if arguments:
        return f"list of {_type_name(arguments[0])}"
    return "channel" if hint is BaseChannel else f"`{hint.__name__}`"


def _table(first: str, others: Iterable[str], rows: Iterable[tuple[str, ...]]) -> str:
    """Returns a table whose first column is of names; "" if there are no rows."""
    header = (first, *others)
    lines = [f"| {' | '.join(header)} |", "|---" * len(header) + "|"]
    cells = [(f"`{name}`", *more) for name, *more in rows]
    lines += [
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in cells
    ]
    return "\n".join(lines) if cells else ""


if __name__ == "__main__":
    print(markdown(), end="")
