"""Texts of HTML: what a model reads of them, and what is written back.

Tags stay as they are: models protect them. Character references that stand for a letter or a sign
(`&eacute;`, `&#8217;`) are read as that character. Those that HTML needs (`&amp;`, `&lt;`, `&gt;`,
`&nbsp;`) stay as they are, as tags do.
"""

import html
import re
from collections.abc import Callable

_REFERENCE = re.compile(r"&(?:#\d+|#[xX][0-9a-fA-F]+|[A-Za-z][A-Za-z0-9]*);")
_KEPT = frozenset("&<>\u00a0")
# A tag, a comment or a declaration.
_TAG = re.compile(r"<(?:!--.*?--|[A-Za-z/!?](?:[^<>\"']|\"[^\"]*\"|'[^']*')*)>", re.DOTALL)
_BARE_AMPERSAND = re.compile(rf"&(?!{_REFERENCE.pattern[1:]})")


def read(text: str) -> str:
    """Returns a text of HTML as a model reads it."""
    return _outside_tags(text, lambda part: _REFERENCE.sub(_character, part))


def write(text: str) -> str:
    """Returns a model's answer as HTML: what is no tag and no reference is escaped."""
    return _outside_tags(text, _escaped)


def _outside_tags(text: str, change: Callable[[str], str]) -> str:
    parts, end = [], 0
    for tag in _TAG.finditer(text):
        parts += [change(text[end : tag.start()]), tag[0]]
        end = tag.end()
    return "".join([*parts, change(text[end:])])


def _character(reference: re.Match[str]) -> str:
    character = html.unescape(reference[0])
    return reference[0] if character in _KEPT or character == reference[0] else character


def _escaped(text: str) -> str:
    return _BARE_AMPERSAND.sub("&amp;", text).replace("<", "&lt;").replace(">", "&gt;")
