"""What a protected token does in its text: whether it opens or closes, and whether order counts.

    <b> opens, </b> closes, <br> and <x/> do neither; `%s` stands in order, `%1$s` may move.

The same patterns serve Python (`role_of`) and a TensorFlow graph (`roles`).
"""

import enum
import functools
from typing import TYPE_CHECKING

import regex

if TYPE_CHECKING:
    import tensorflow as tf


class Role(enum.IntEnum):
    """What a protected token does.

    Attributes:
        OTHER: it may stand anywhere: `{name}`, `%1$s`, `&nbsp;`, `https://…`, `--option`.
        OPENING: a tag that its closing tag must follow: `<b>`, `<0>`, `<>`.
        CLOSING: the end of the tag that was opened last: `</b>`, `</0>`, `</>`.
        EMPTY: a tag without content: `<br>`, `<img src="x">`, `<x id="1"/>`, `<1/>`.
        ORDERED: it must stand in the source's order among its like. It takes the next argument, as
            an unnumbered directive (`%s`, `%d`, `{}`) does, or it is a part of a message with
            branches (`{n, plural, one {`, `} other {`, `}}`).
    """

    OTHER = 0
    OPENING = 1
    CLOSING = 2
    EMPTY = 3
    ORDERED = 4


# Elements of HTML that have no closing tag.
_VOID = "area|base|br|col|embed|hr|img|input|link|meta|param|source|track|wbr"
_SPACE = r"[\t-\r ]"
_NAME = r"(?:[A-Za-z_][A-Za-z0-9_:.\-]*|[0-9]+)"
_INSIDE = rf"(?:{_SPACE}(?s:.*))?"

# The name of a tag is the pattern's only group.
CLOSING = rf"</{_SPACE}*({_NAME}|){_SPACE}*>"
EMPTY = rf"<(?:(?i:{_VOID}){_INSIDE}|{_NAME}{_INSIDE}/)>"
OPENING = rf"<({_NAME}|){_INSIDE}>"
_TAG_NAME = rf"(?s)^</?{_SPACE}*({_NAME}|).*$"

# Flags, width, precision and length of a directive without a position or a name.
_DIRECTIVE = (
    r"%[\-+ #0'I,(]*(?:[0-9]+|\*)?(?:\.(?:[0-9]+|\*)?)?(?:hh|h|ll|l|j|z|t|L|q|Z|I64|I32)?"
    r"(?:[diouxXeEfFgGaAcCsSprbBhHDOU@]|[tT][A-Za-z]|<(?:PRI|SCN)[A-Za-z0-9]+>)"
)
_EMPTY_FIELD = r"\{(?:![a-z])?(?::(?s:.*))?\}"
_BRANCHES = rf"\{{(?s:.*)\{{|\}}{_SPACE}*[=\p{{L}}\p{{N}}_](?s:.*)\{{|\}}{_SPACE}*\}}"
ORDERED = f"{_DIRECTIVE}|{_EMPTY_FIELD}|{_BRANCHES}"

# The first that matches counts.
_PATTERNS = (
    (Role.CLOSING, CLOSING),
    (Role.EMPTY, EMPTY),
    (Role.OPENING, OPENING),
    (Role.ORDERED, ORDERED),
)


@functools.cache
def _compiled(pattern: str) -> "regex.Pattern[str]":
    return regex.compile(pattern)


def role_of(token: str) -> tuple[Role, str]:
    """Returns what a protected token does, and its name in lower case where it is a tag.

    Fragments (`<>`, `</>`) and all that are no tags have the name "".
    """
    for role, pattern in _PATTERNS:
        if _compiled(pattern).fullmatch(token):
            if role is Role.ORDERED:
                return role, ""
            return role, _compiled(_TAG_NAME).sub(r"\1", token).lower()
    return Role.OTHER, ""


def roles(tokens: "tf.Tensor") -> tuple["tf.Tensor", "tf.Tensor"]:
    """Returns what `role_of` does, in a TensorFlow graph.

    Args:
        tokens: strings of any shape; a token that is not protected must be masked by the caller.

    Returns:
        int32 like `tokens` (a `Role`), and string like `tokens` (the names of tags).
    """
    import tensorflow as tf

    role = tf.zeros(tf.shape(tokens), tf.int32)
    for value, pattern in reversed(_PATTERNS):
        role = tf.where(tf.strings.regex_full_match(tokens, pattern), int(value), role)
    is_tag = (role > Role.OTHER) & (role < Role.ORDERED)
    names = tf.strings.lower(tf.strings.regex_replace(tokens, _TAG_NAME, r"\1"))
    return role, tf.where(is_tag, names, "")
