"""Annotations that Beam does not read."""

from collections.abc import Callable
from typing import Any, TypeVar

from apache_beam.typehints.decorators import no_annotations

_F = TypeVar("_F", bound=Callable[..., Any])


def untyped_in_beam(function: _F) -> _F:
    """Marks a function whose annotations are for people and type checkers alone.

    Beam would choose coders by them, and which annotations it understands depends on its version.
    """
    marked: _F = no_annotations(function)
    return marked
