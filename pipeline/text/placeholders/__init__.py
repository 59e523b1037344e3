"""Placeholders and other protected tokens, by dialect, as one list for the graph, constrained
decoding and metrics.

A recipe chooses dialects of placeholders (`data.placeholders`) and adds patterns of its own
(`data.placeholder_patterns`). Tags, URLs, mail addresses and options are protected whatever it
chooses.
"""

import functools

from pipeline.recipes.choices import DEFAULT_PLACEHOLDERS
from pipeline.recipes.own_patterns import portable_pattern
from pipeline.text.placeholders import braces, markup, printf, sigils
from pipeline.text.placeholders.protected_syntax import ProtectedSyntax
from pipeline.text.placeholders.syntax import PLACEHOLDER, TERM, Dialect

#: The dialects by the names that a recipe gives them, in the order in which they are tried. Several
#: may share a syntax: it counts once.
DIALECTS: dict[str, tuple[Dialect, ...]] = {
    "template": (braces.TEMPLATES,),
    "icu": (braces.ICU, braces.ICU_NUMBER, braces.BRACES),
    "fluent": (braces.FLUENT,),
    "javascript": (braces.INTERPOLATION,),
    "python-brace": (braces.BRACES,),
    "csharp": (braces.BRACES,),
    "ruby": (printf.RUBY, printf.PRINTF, braces.INTERPOLATION),
    "symfony": (printf.SYMFONY,),
    "drupal": (sigils.DRUPAL, sigils.AT),
    "c": (printf.PRINTF,),
    "objc": (printf.PRINTF,),
    "java": (printf.PRINTF,),
    "python": (printf.PRINTF,),
    "php": (printf.PRINTF, braces.INTERPOLATION),
    "qt": (printf.QT,),
    "strftime": (printf.STRFTIME,),
    "laravel": (sigils.LARAVEL,),
    "at": (sigils.AT,),
    "i18next": (sigils.I18NEXT, braces.TEMPLATES),
    "react": (markup.REACT,),
    "shell": (sigils.DOLLAR,),
    "variables": (sigils.VARIABLES,),
    "mediawiki": (sigils.POSITIONS,),
}
# A pattern that is a prefix of a longer placeholder is tried after it.
_ORDER = (
    markup.HTML,
    markup.REACT,
    markup.URLS,
    braces.TEMPLATES,
    braces.ICU,
    braces.INTERPOLATION,
    braces.FLUENT,
    braces.BRACES,
    braces.ICU_NUMBER,
    printf.RUBY,
    printf.SYMFONY,
    sigils.DRUPAL,
    printf.STRICT_PRINTF,
    printf.PRINTF,
    printf.QT,
    printf.STRFTIME,
    sigils.I18NEXT,
    sigils.LARAVEL,
    sigils.AT,
    sigils.DOLLAR,
    sigils.POSITIONS,
    sigils.VARIABLES,
    sigils.MASKS,
    markup.OPTIONS,
)
_ALWAYS = (markup.HTML, markup.URLS, sigils.MASKS, markup.OPTIONS)


@functools.cache
def syntax_of(
    dialects: tuple[str, ...] = DEFAULT_PLACEHOLDERS,
    own_patterns: tuple[str, ...] = (),
    term_class: str = PLACEHOLDER,
) -> ProtectedSyntax:
    """Returns the patterns of a recipe's protected tokens.

    Args:
        dialects: names from `DIALECTS`.
        own_patterns: further patterns of placeholders, which are tried first.
        term_class: the class of a glossary's terms: `TERM_CLASS`, or they are placeholders.
    """
    chosen = {part for name in dialects for part in DIALECTS[name]} | set(_ALWAYS)
    parts = tuple(part for part in _ORDER if part in chosen)
    return _joined((Dialect((TERM,), token_class=term_class), _own(own_patterns), *parts))


def _own(patterns: tuple[str, ...]) -> Dialect:
    return Dialect(tuple(map(portable_pattern, patterns)))


def _joined(parts: tuple[Dialect, ...]) -> ProtectedSyntax:
    classes: list[tuple[str, str]] = []
    for part in parts:
        if part.patterns:
            pattern = "|".join(f"(?:{one})" for one in part.patterns)
            if classes and classes[-1][0] == part.token_class:
                pattern = f"{classes.pop()[1]}|{pattern}"
            classes.append((part.token_class, pattern))
    prose = tuple(pattern for part in parts for pattern in part.prose)
    return ProtectedSyntax(tuple(classes), prose)


__all__ = ["DIALECTS", "PLACEHOLDER", "ProtectedSyntax", "syntax_of"]
