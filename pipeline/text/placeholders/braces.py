"""Placeholders in braces: Python, C#, Java, ICU messages, Fluent, JavaScript, and templates.

In prose braces hold several words: `{not a placeholder}`.
"""

from pipeline.text.placeholders.syntax import LETTERS, ROUGH_WORD, SPACE, Dialect

_NAME = rf"[{LETTERS}][{LETTERS}.\-]*"
_BLANKS = rf"[{SPACE}]*"
_NOT_BRACE = r"[^{}]"

# A field of Python's or C#'s, with attributes, conversion and format: `{0.a[b]!r:>10}`. A format
# holds blanks and further fields where no name or a number is before it: `{0:yyyy-MM-dd HH:mm}`.
_NESTED = rf"(?:{_NOT_BRACE}|\{{[^{{}}{SPACE}]*\}})*"
#: `{}`, `{0}`, `{name}`, `{ name }`, `{:.2f}`, `{!r}`, `{0:N2}`, `{x:>{width}}`.
BRACES = Dialect(
    (
        rf"\{{[0-9]*(?:,-?[0-9]+)?(?:![a-z])?(?::{_NESTED})?\}}",
        rf"\{{[{LETTERS}][^{{}}{SPACE}]*(?:\{{[^{{}}{SPACE}]*\}}[^{{}}{SPACE}]*)*\}}",
        rf"\{{[{SPACE}]+{_NAME}{_BLANKS}\}}|\{{{_NAME}[{SPACE}]+\}}",
        rf"\{{{_NAME}(?:\[[^\[\]{{}}]*\])+[^{{}}{SPACE}]*\}}",
    ),
)

#: `${name}`, `#{name}`, `@{name}`, `{$name}`, `{$user->name}`, `$(name)`.
INTERPOLATION = Dialect(
    (
        rf"[$#]\{{{_NESTED}\}}",
        rf"@\{{[^{{}}{SPACE}]+\}}",
        rf"\{{\$[A-Za-z_][^{{}}{SPACE}]*\}}",
        r"\$\([A-Za-z_][A-Za-z0-9_.]*\)",
    )
)

_KEY = rf"(?:=[0-9]+|[{LETTERS}][{LETTERS}.\-]*)"
_KINDS = "(?:plural|selectordinal|select)"
_HEAD = rf"\{{{_BLANKS}{_NAME}{_BLANKS},{_BLANKS}{_KINDS}{_BLANKS},{_BLANKS}"
_SIMPLE = "(?:number|date|time|spellout|ordinal|duration|list|choice)"
#: `{count, number}`, `{0, date, short}`; of messages with branches the structure: `{n, plural, one
#: {`, `} other {`, `}}`.
ICU = Dialect(
    (
        rf"{_HEAD}(?:offset:{_BLANKS}[0-9]+{_BLANKS})?{_KEY}{_BLANKS}\{{",
        rf"\{{{_BLANKS}{_NAME}{_BLANKS},{_BLANKS}{_SIMPLE}{_BLANKS}(?:,[^{{}}]*)?\}}",
        rf"\}}{_BLANKS}{_KEY}{_BLANKS}\{{",
        rf"\}}{_BLANKS}\}}",
    )
)
#: The number of a plural's branch. In `C#` and `#5` it is a letter's or a number's.
ICU_NUMBER = Dialect(
    ("#",),
    (rf"{ROUGH_WORD}#(?:[{SPACE}{LETTERS}.,;:!?)\]\"'’”»]|\z)", f"#[{LETTERS}]"),
)

#: `{ $name }`, `{ -brand }`, `{ -brand(case: "x") }`, `{ NUMBER($n) }`, `{ "text" }`; of messages
#: with variants the structure: `{ $n ->`, `*[other]`.
FLUENT = Dialect(
    (
        rf"\{{{_BLANKS}[$\-]{_NAME}{_BLANKS}(?:\([^(){{}}]*\){_BLANKS})?\}}",
        rf"\{{{_BLANKS}[A-Z][A-Z0-9_\-]*\([^(){{}}]*\){_BLANKS}\}}",
        rf"\{{{_BLANKS}\"[^\"{{}}]*\"{_BLANKS}\}}|\{{{_BLANKS}\"[{{}}]\"{_BLANKS}\}}",
        rf"\{{{_BLANKS}\$?[A-Za-z_][^{{}}]*->",
        r"\*\[[A-Za-z0-9_.\-]+\]|\[(?:zero|one|two|few|many)\]",
    )
)

#: Jinja, Django, Handlebars, Vue, Angular, ERB, EJS, PHP: `{{ x }}`, `{{{ x }}}`, `{% if x %}`,
#: `{# note #}`, `<%= x %>`, `<?php echo $x ?>`.
TEMPLATES = Dialect(
    (
        rf"\{{\{{\{{{_NOT_BRACE}*\}}\}}\}}",
        r"\{%[^{}]*%\}|\{#[^{}]*#\}",
        rf"\{{\{{(?:{_NOT_BRACE}|\{{{_NOT_BRACE}*\}})*\}}\}}",
        "<%(?s:.*?)%>",
        r"<\?(?:php|=|xml)(?s:.*?)\?>",
    )
)
