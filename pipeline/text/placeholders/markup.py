"""Tags, comments and entities of HTML, XML and React; URLs and mail addresses; options.

In prose `<` is a sign of comparison: `x<y or z>w` holds no tag. A tag's attributes have values,
hyphens, colons or names that HTML knows without a value.
"""

from pipeline.text.placeholders.syntax import (
    ALPHABETS,
    OPTION,
    ROUGH_WORD,
    SPACE,
    TAG,
    URL,
    Dialect,
)

_NAME = r"[A-Za-z_][A-Za-z0-9_:.\-]*"
_BLANK = rf"[{SPACE}]"
# Attributes that HTML knows without a value.
_BARE = (
    "allowfullscreen|async|autofocus|autoplay|checked|compact|controls|declare|default|defer|"
    "disabled|download|formnovalidate|hidden|inert|ismap|itemscope|loop|multiple|muted|nohref|"
    "nomodule|noresize|noshade|novalidate|nowrap|open|playsinline|readonly|required|reversed|"
    "selected|translate"
)
_TEMPLATE = r"\{\{[^{}]*\}\}|\{%[^{}]*%\}|\{[^{}]*\}|%\([^()]*\)[a-z]|%[0-9$]*[a-z]"
_VALUE = rf"(?:\"[^\"]*\"|'[^']*'|(?:{_TEMPLATE}|[^{SPACE}\"'=<>`{{}}])+)"
_ATTRIBUTE_NAME = rf"[^{SPACE}\"'<>/={{}}%]+"
_ATTRIBUTE = (
    rf"(?:{_ATTRIBUTE_NAME}{_BLANK}*={_BLANK}*{_VALUE}|(?i:{_BARE})|[A-Za-z]+[:\-][A-Za-z0-9_:.\-]+"
    rf"|[@#*:\[(][^{SPACE}\"'<>/=]+|{_TEMPLATE})"
)
_ATTRIBUTES = rf"(?:{_BLANK}+{_ATTRIBUTE})*"

#: Tags, comments, character references.
HTML = Dialect(
    (
        rf"<{_NAME}{_ATTRIBUTES}{_BLANK}*/?>",
        rf"</{_NAME}{_BLANK}*>",
        "<!--(?s:.*?)-->",
        r"<!\[CDATA\[|\]\]>|<!DOCTYPE[^<>]*>",
        "&[A-Za-z][A-Za-z0-9]+;|&#[0-9]+;|&#[xX][0-9A-Fa-f]+;",
    ),
    token_class=TAG,
)
#: `<0>text</0>`, `<1/>`, `<>text</>`.
REACT = Dialect(
    (rf"</?[0-9]+>|<[0-9]+{_BLANK}*/>|<>|</>",),
    (rf"{ROUGH_WORD}[{SPACE}]*<>", rf"<>[{SPACE}]"),
    token_class=TAG,
)

_QUOTES = (
    "«»\u2018\u2019\u201b-\u201d\u201f\u2039\u203a"
    "\u2e02-\u2e05\u2e09\u2e0a\u2e0c\u2e0d\u2e1c\u2e1d\u2e20\u2e21"
)
# Quotation marks of all languages and the punctuation of Chinese and Japanese end a URL.
_NOT_IN_URL = rf"{SPACE}<>\"'(){{}}%$#{_QUOTES}。、，！？；：「」『』（）【】…"
_ESCAPED_BYTE = "%[0-9A-Fa-f]{2}"
#: URLs and mail addresses. `%`, `$` and `#` may begin a placeholder, at which a URL ends:
#: `https://host/%(name)s`.
URLS = Dialect(
    (
        rf"[A-Za-z][A-Za-z0-9+.\-]*://(?:[$#]*[^{_NOT_IN_URL}]|{_ESCAPED_BYTE})*"
        rf"(?:[$#]*[^{_NOT_IN_URL}.,;:!?]|{_ESCAPED_BYTE})",
        r"[A-Za-z0-9_.+\-]+@[A-Za-z0-9\-]+(?:\.[A-Za-z0-9\-]+)+",
    ),
    token_class=URL,
)

#: `--option`. Two hyphens behind a word are a dash.
OPTIONS = Dialect(
    ("--[A-Za-z][A-Za-z0-9_\\-]*",),
    (
        rf"[{ALPHABETS}]+(?:[.\-][{ALPHABETS}]+)*--",
        r"[.,;:!?)\]]--",
    ),
    token_class=OPTION,
)
