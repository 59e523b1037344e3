"""Hides annotations from Beam."""

from collections.abc import Callable
from typing import Any, TypeVar

from apache_beam.typehints.decorators import no_annotations

_F = TypeVar("_F", bound=Callable[..., Any])


def untyped_in_beam(function: _F) -> _F:
    """Marks a function whose annotations are only for people and type checkers.

    Beam would choose coders by them, and its version decides which annotations it understands.
    """
    marked: _F = no_annotations(function)
    return marked
