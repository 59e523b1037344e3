"""A dialect of placeholders: patterns of protected tokens, and prose that looks like them.

Every pattern is valid for RE2 (the TensorFlow graph) and for `regex` (Python), which read it alike.
"""

import dataclasses

#: The classes of protected tokens, as the vocabulary names them.
PLACEHOLDER, TAG, URL, OPTION = "[PLACEHOLDER]", "[TAG]", "[URL]", "[OPTION]"
#: The class of a glossary's terms, where the training had terms; else they are placeholders.
TERM_CLASS = "[TERM]"
#: A term as a token (see `pipeline.text.terms`): phrase and translation.
TERM = r"\x00[^\x00]+\x00[^\x00]+\x00"

# Ranges instead of Unicode's categories: RE2 makes hundreds of instructions of each `\p{L}`, and
# runs out of memory for patterns with many.

#: White space as Python knows it, for use in brackets.
SPACE = "\\t-\\r\\x1c- \\x85\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
# Letters, marks and digits, approximately: of scripts with blanks between words (Latin to Arabic),
# and of all others.
ALPHABETS = "A-Za-z0-9_\u00aa\u00b5\u00ba\u00c0-\u07ff"
_OTHERS = (
    "\u0800-\u167f\u1681-\u1fff\u2c00-\u2dff\u3005-\u3007\u3041-\ud7ff\uf900-\ufdff"
    "\ufe70-\ufefc\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\uff66-\uffdc"
    "\U00010000-\U0001efff\U00020000-\U0003ffff"
)
#: Both.
LETTERS = ALPHABETS + _OTHERS
#: A word, approximately. It may hold `.`, `-`, `/`, `@` and `:` inside, where blanks separate
#: words.
ROUGH_WORD = rf"(?:[{ALPHABETS}]+(?:[.\-/@:][{ALPHABETS}]+)*|[{_OTHERS}]+)"


@dataclasses.dataclass(frozen=True)
class Dialect:
    """The placeholders of a language or framework.

    Attributes:
        patterns: the first that matches counts.
        prose: patterns of text that looks like one of them in a sentence, with its neighbours,
            which neither RE2 nor a single token can see. Text that matches is cut as text.
        token_class: the class of these tokens.
    """

    patterns: tuple[str, ...]
    prose: tuple[str, ...] = ()
    token_class: str = PLACEHOLDER
