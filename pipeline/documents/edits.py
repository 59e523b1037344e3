"""Replacements in a text."""

from collections.abc import Iterable
from typing import TypeAlias

#: Begin and end in a text, counted in characters.
Place: TypeAlias = tuple[int, int]
#: Begin, end, and what stands there instead.
Edit: TypeAlias = tuple[int, int, str]


def edited(text: str, edits: Iterable[Edit], place: Place | None = None) -> str:
    """Returns a text, or what is at a place of it, with edits that do not overlap."""
    begin, end = place or (0, len(text))
    parts: list[str] = []
    for edit_begin, edit_end, replacement in sorted(edits):
        parts += text[begin:edit_begin], replacement
        begin = edit_end
    return "".join(parts) + text[begin:end]
