"""The flags of gettext entries: `c-format` means that an entry is a format string of C.

A served model does not know flags, so they do not change how a text is cut. They tell the reader
which translations break their entry's format, as `msgfmt -c` does.
"""

import collections
from collections.abc import Collection

import regex

from pipeline.text.placeholders import braces, printf

_PRINTF = ("c", "objc", "python", "java-printf", "php", "awk", "lua", "perl")
_BRACES = ("python-brace", "perl-brace", "csharp", "java")
_QT = ("qt", "kde")

_DIRECTIVE = regex.compile("|".join(printf.STRICT_PRINTF.patterns))
# The part before a directive's length: `%1$-10.2`, or a name in parentheses.
_BEFORE_LENGTH = regex.compile(r"%(?:[0-9]+\$)?[\-+#0'I, ]*[0-9]*(?:\.[0-9]*)?")
_FIELD = regex.compile(r"\{\{|\}\}|" + "|".join(f"(?:{one})" for one in braces.BRACES.patterns))
_FIELD_NAME = regex.compile(r"\{\s*([^{}!:,\s\[.]*)")
_QT_PLACE = regex.compile(r"%L?([1-9][0-9]?)")


def _directives(text: str) -> collections.Counter[str]:
    """Returns the directives of a format string, without position, flags and width."""
    kinds = (_BEFORE_LENGTH.sub("%", found) for found in _DIRECTIVE.findall(text) if found != "%%")
    # `%i` is `%d`.
    return collections.Counter(kind[:-1] + "d" if kind.endswith("i") else kind for kind in kinds)


def _fields(text: str) -> collections.Counter[str]:
    """Returns the names of the fields in braces; each counts once, those without a name each."""
    names = [
        match.group(1)
        for found in _FIELD.findall(text)
        if found not in ("{{", "}}") and (match := _FIELD_NAME.match(found))
    ]
    return collections.Counter([*{name for name in names if name}, *("" for n in names if not n)])


def _places(text: str) -> collections.Counter[str]:
    """Returns the numbers of Qt's places; each counts once."""
    return collections.Counter(set(_QT_PLACE.findall(text)))


_READERS = {
    **{f"{name}-format": _directives for name in _PRINTF},
    **{f"{name}-format": _fields for name in _BRACES},
    **{f"{name}-format": _places for name in _QT},
}


def breaks_format(
    flags: Collection[str], source: str, target: str, is_plural: bool = False
) -> bool:
    """Whether a translation has other format directives than its source.

    Args:
        flags: those of the entry; without a known flag nothing is broken.
        source, target: the texts.
        is_plural: whether they are forms of a plural, one of which may leave directives out.
    """
    for flag in flags:
        if read := _READERS.get(flag):
            expected, found = read(source), read(target)
            if found != expected and not (is_plural and found <= expected):
                return True
    return False
