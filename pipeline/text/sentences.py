r"""Texts cut into sentences, in a TensorFlow graph; joined, they are the text again.

A sentence ends behind `.`, `!`, `?` or their kin in other scripts, with the quotation marks and
brackets that close there, if white space follows (in Chinese and Japanese also without), and at a
line break. It does not end

- inside of a protected token or a glossary's term,
- if the next letter is a small one: `e.g. this`, a line that goes on,
- behind an abbreviation, an initial or the number of an item: `Dr. Smith`, `J. Smith`, `1. Open`.

It is a graph because a served model takes raw texts wherever it runs; the libraries for this task
(pysbd, sentencex) are Python's.
"""

from typing import TYPE_CHECKING

from pipeline.text.character_cut import BREAK, CONTROL, MARKS
from pipeline.text.placeholders.protected_syntax import (
    BEGIN_MARK,
    END_MARK,
    MARKED,
    ProtectedSyntax,
)
from pipeline.text.placeholders.syntax import SPACE
from serving import term_markup

if TYPE_CHECKING:
    import tensorflow as tf

# Marks where a pattern matched what is not an end; no text contains it.
_NO_END = "\x1e"
_BLANKS = "[ \t\u00a0\u202f]"
# White space without the marks of protected tokens.
_SPACE = f"[{SPACE.replace('x1c- ', 'x20')}]"
_CLOSING = "[\"'”’»›)\\]}*_」』）】》]"
_ENDS = "[.!?…‼⁇⁈⁉؟۔।॥።፧։՞᙮។៕၊။]"
_FULL_WIDTH_ENDS = "[。！？｡．]"
_CLOSING_TAG = f"{BEGIN_MARK}</[^{END_MARK}]*{END_MARK}"
# Abbreviations before names, numbers and examples, in European languages.
_ABBREVIATIONS = (
    "Mr|Mrs|Ms|Dr|Prof|Sr|Jr|St|vs|cf|e\\.g|i\\.e|No|Nos|Nr|Fig|Eq|Sec|Vol|vol|pp?|Art|art|ca"
    "|Mme|Mlle|MM|Me|Mgr|av|z\\.B|d\\.h|u\\.a|bzw|Hr|Fr|Abs|Nr|Sig|Dott|Sra|Dra|pág|núm|Rev|Gen|Col"
)
_TERM = rf"{term_markup.ANCHOR}[^{term_markup.TERMINATOR}]*{term_markup.TERMINATOR}"
_NO_ENDS = "|".join(
    (
        _TERM,
        MARKED,
        rf"(?m:^)[0-9]{{1,3}}[.)]{_BLANKS}+",
        rf"\b(?:{_ABBREVIATIONS}|[A-Z])\.",
        rf"{_ENDS}+(?:{_CLOSING}|{_CLOSING_TAG})*{_BLANKS}+\p{{Ll}}",
        rf"{_BLANKS}*\r?\n{_BLANKS}*\p{{Ll}}",
    )
)
_ENDED = "|".join(
    (
        rf"{_FULL_WIDTH_ENDS}+{_CLOSING}*{_SPACE}*",
        rf"{_ENDS}+(?:{_BLANKS}?{_CLOSING}|{_CLOSING_TAG})*{_SPACE}+",
        rf"{_SPACE}*[\n\v\f\r]{_SPACE}*",
    )
)


def split_in_graph(texts: "tf.Tensor", syntax: ProtectedSyntax) -> "tf.RaggedTensor":
    """Cuts texts into sentences, each with the white space behind it.

    Args:
        texts: string `[N]`, without white space at their ends; with the markup of terms.
        syntax: what is protected.

    Returns:
        Ragged string `[N, (sentences)]`, at least one of each text.
    """
    import tensorflow as tf

    marked = syntax.mark_in_graph(tf.strings.regex_replace(texts, CONTROL, " "))
    cut = tf.strings.regex_replace(marked, f"({_NO_ENDS})|({_ENDED})", rf"\1{_NO_END}\2{BREAK}")
    cut = tf.strings.regex_replace(cut, f"{_NO_END}{BREAK}", "")
    cut = tf.strings.regex_replace(cut, f"{_NO_END}|{MARKS}|{BREAK}\\z", "")
    return tf.strings.split(cut, BREAK)
