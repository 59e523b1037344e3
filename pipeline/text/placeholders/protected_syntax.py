"""The list of protected tokens that the graph, constrained decoding and metrics share."""

import dataclasses
import functools
from collections.abc import Iterable
from typing import TYPE_CHECKING

import regex

from pipeline.text.placeholders.syntax import PLACEHOLDER, ROUGH_WORD, SPACE, TAG

if TYPE_CHECKING:
    import tensorflow as tf

# The marks before and after a protected token, and the mark of a text without any. Texts hold none
# of these: `tokenization` reads them as white space.
BEGIN_MARK, END_MARK, _TEXT = "\x1d", "\x1c", "\x1e"
_UNKNOWN_CHARACTER = "\ufffd".encode()
#: A protected token with its marks.
MARKED = f"{BEGIN_MARK}[^{END_MARK}]*{END_MARK}"
# Several words in braces, without protected tokens: their braces are text.
_PROSE_IN_BRACES = r"\{[^{}%<>$@#&:!\-/|,=\"']*\}"
# A per cent sign behind a number, which a tag may follow: `50%<b>discount</b>`.
_PER_CENT = rf"[0-9]+(?:[.,][0-9]+)*[{SPACE}]?%"
_REWRITE = rf"{_TEXT}\1\3\5{BEGIN_MARK}\2\4{END_MARK}"
_EMPTY_MARKS = f"{_TEXT}|{BEGIN_MARK}{END_MARK}"


def writable_bytes(numbers: Iterable[int]) -> bytes:
    """Returns the bytes that a model spells; marks, which no output may hold, become U+FFFD."""
    marks = f"{BEGIN_MARK}{END_MARK}{_TEXT}".encode()
    return b"".join(
        _UNKNOWN_CHARACTER if number in marks else bytes([number]) for number in numbers
    )


@functools.cache
def compiled(pattern: str) -> "regex.Pattern[str]":
    """Returns a pattern of RE2's for Python."""
    # The only assertions are those of ASCII, as in RE2.
    return regex.compile(pattern.replace(r"\B", r"(?a:\B)").replace(r"\z", r"\Z"))


@dataclasses.dataclass(frozen=True)
class ProtectedSyntax:
    """The patterns of protected tokens, for RE2 and for `regex`.

    Attributes:
        classes: (class, pattern); the first that matches counts.
        prose: patterns of text that looks like a protected token.
    """

    classes: tuple[tuple[str, str], ...]
    prose: tuple[str, ...] = ()

    @functools.cached_property
    def pattern(self) -> str:
        """The pattern of all protected tokens."""
        return "|".join(pattern for _, pattern in self.classes)

    @functools.cached_property
    def _parts(self) -> str:
        tags = "|".join(pattern for name, pattern in self.classes if name == TAG)
        return (
            f"({_PER_CENT})({tags})|({'|'.join(self.prose)})|({self.pattern})"
            f"|({ROUGH_WORD}|{_PROSE_IN_BRACES})"
        )

    def mark(self, text: str) -> str:
        """Returns a text with `BEGIN_MARK` and `END_MARK` around its protected tokens."""
        marked = compiled(self._parts).sub(_REWRITE, text)
        return compiled(_EMPTY_MARKS).sub("", marked)

    def mark_in_graph(self, texts: "tf.Tensor") -> "tf.Tensor":
        """Returns what `mark` does, of string tensors."""
        import tensorflow as tf

        marked = tf.strings.regex_replace(texts, self._parts, _REWRITE)
        return tf.strings.regex_replace(marked, _EMPTY_MARKS, "")

    def is_protected(self, token: str) -> bool:
        """Whether a token is protected."""
        return compiled(self.pattern).fullmatch(token) is not None

    def class_of(self, token: str) -> str:
        """Returns the class of a token; "" if it is not protected."""
        return next(
            (name for name, pattern in self.classes if compiled(pattern).fullmatch(token)), ""
        )

    def is_placeholder(self, token: str) -> bool:
        """Whether a token is a placeholder, not a tag, URL or option."""
        return self.class_of(token) == PLACEHOLDER
