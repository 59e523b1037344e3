r"""The roles of protected tokens: whether one opens, closes, or must keep its order among others.

A pattern for each role, in syntax that RE2 (the graph) and Python's `regex` (the metrics) read
alike. They are matched against whole tokens that are protected already, so they do not decide which
tokens are protected. A token has the first role whose pattern matches.

    structure   a statement or one half of a message: `{% if x %}`, `{{else}}`, `{n, plural, one {`;
                all protected tokens of its text keep their order
    closing     `</b>`, `</0>`, `</>`, `{{/list}}`, `[/b]`
    void        `<br>`, `<img src="a">`, `<1/>`, `<!-- a comment -->`, `<?xml?>`
    opening     `<b>`, `<a href="a">`, `<0>`, `<>`, `{{#list}}`, `[url=a]`
    date        `%Y`, `%M`: of a date, whose directives (`%d`, `%b`) take no arguments, so may move
    directive   `%s`, `%-10.*ld`, `%@`, `%<PRIu64>`, `{}`, `{:.2f}`: takes the next argument
    other       `%1$s`, `%(name)s`, `{0}`, `&amp;`, URLs, options, ...: may be anywhere
"""

import functools

import regex

OTHER, STRUCTURE, CLOSING, VOID, OPENING, DIRECTIVE, DATE = range(7)

_WHITE = r"\t-\r\x1c-\x20"
# Of a tag, what follows its name: a quoted value may hold anything.
_ATTRIBUTES = "(?:[^<>\"']|\"[^\"]*\"|'[^']*'|[\"'])*"
_NAME = rf"[^{_WHITE}<>/!?%=]+"
# Elements that HTML never closes.
_VOID_NAMES = (
    "area|base|basefont|bgsound|br|col|command|embed|frame|hr|img|input|keygen|link|meta|param"
    "|source|track|wbr"
)
_FLAGS = r"[\-+ #0'I,(_]*"
_WIDTH = r"(?:\*|[0-9]+)?(?:\.(?:\*|-?[0-9]+)?)?"
_LENGTH = r"(?:hh|h|ll|l|j|z|t|L|q|Z|I64|I32|w[0-9]+|wf[0-9]+)?"

#: From role to its pattern, in the order of precedence.
ROLE_PATTERNS = (
    (
        STRUCTURE,
        # One half of braces, statements of templates, and the text between their branches.
        r"[^}]*\{[^}]*|[^{]*\}(?:[^{]*|(?s:.*)\{[^}]*)"
        r"|(?s:\{%.*%\}|<%[^=\-#].*%>)"
        r"|\{\{[~]?[ ]*(?:else|\^)(?:[ ][^{}]*)?\}\}",
    ),
    (
        CLOSING,
        rf"</[{_WHITE}]*(?:{_NAME})?[{_WHITE}]*>|\{{\{{~?/[^{{}}]*\}}\}}|\[/[A-Za-z0-9_*\-]*\]",
    ),
    (
        VOID,
        rf"(?s:<!.*>|<\?.*>)|<(?:{_NAME})(?:[{_WHITE}]{_ATTRIBUTES})?/>"
        rf"|<(?i:{_VOID_NAMES})(?:[{_WHITE}]{_ATTRIBUTES})?>",
    ),
    (
        OPENING,
        rf"<(?:{_NAME})?(?:[{_WHITE}]{_ATTRIBUTES})?>|<{_NAME}={_ATTRIBUTES}>"
        r"|\{\{~?[#^][^{}]+\}\}|\[[A-Za-z][A-Za-z0-9_\-]*(?:=[^\[\]]*)?\]",
    ),
    (DATE, "%[EO_^#0-]?[YyMIjklVWwPRTZz]"),
    (
        DIRECTIVE,
        rf"%{_FLAGS}{_WIDTH}{_LENGTH}(?:[diouxXeEfFgGaAcCsSpnrbBhHUDO@]|[tT][A-Za-z])"
        rf"|%{_FLAGS}{_WIDTH}<[A-Za-z0-9]+>|%<[A-Za-z]{{1,2}}"
        r"|\{(?:![A-Za-z])?(?::[^{}]*)?\}",
    ),
)
#: What stands before and behind the name in a token that opens or closes, for replacing by "".
NAME_PREFIX = rf"^(?:</?[{_WHITE}]*|\{{\{{~?[#^/] *|\[/?)"
NAME_SUFFIX = rf"(?s:[{_WHITE}=~}}>\]].*)$"
#: A token that is not content of a pair of tags: it is invisible, white space (as tokens write it),
#: or a `<` or `>` of the text, which a reader may take for part of a tag.
BLANK = r"[<>\x{FFED}␠␉␊␋␌␍\t-\r\x1c-\x1f\x85\p{Z}\x{200B}\x{FEFF}]*"


@functools.cache
def _compiled(pattern: str) -> "regex.Pattern[str]":
    return regex.compile(regex.sub(r"\\x\{([0-9A-F]{4})\}", r"\\u\1", pattern))


@functools.lru_cache(maxsize=4096)
def role_of(token: str) -> int:
    """Returns the role of a protected token."""
    for role, pattern in ROLE_PATTERNS:
        if _compiled(pattern).fullmatch(token):
            return role
    return OTHER


def tag_name(token: str) -> str:
    """Returns the name by which a token that opens and one that closes belong together.

    Upper and lower case are one; of `{{#list}}` it is `{list`, so that no tag closes it.
    """
    family = token[0] if token[0] in "{[" else ""
    bare = _compiled(NAME_SUFFIX).sub("", _compiled(NAME_PREFIX).sub("", token))
    return (family + bare).lower()


def is_blank(token: str) -> bool:
    """Whether an unprotected token does not count as content of a pair of tags."""
    return _compiled(BLANK).fullmatch(token) is not None
