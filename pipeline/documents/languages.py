"""Languages and their plural categories, by the rules of CLDR."""

import functools
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pipeline.readers.inline_text import InlineText

if TYPE_CHECKING:
    import babel
    from babel.plural import PluralRule

#: All categories, in the order in which files list them.
CATEGORIES = ("zero", "one", "two", "few", "many", "other")

#: Why a plural cannot be translated.
UNKNOWN = (
    "the plural forms of the translations' language are unknown: name it with --target-language"
)

# `values-pt-rBR` and `values-b+sr+Latn` of Android, `pt-BR.lproj` of Apple.
_FOLDER = re.compile(r"values-(?P<android>.+)|(?P<apple>.+)\.lproj")
_REGION = re.compile(r"-r(?=[A-Z]{2}\b)")
# The end of a name: `messages_fr.json`, `Resources.fr-CA.resx`, `fr.yml`.
_END_OF_NAME = re.compile(r"(?:^|[._-])([A-Za-z]{2,3}(?:[_-][A-Za-z0-9]{2,8})*)$")
_TAG = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8})*")
# Numbers that show what a category is for; the rules use remainders of 100 at most, and of a
# million.
_NUMBERS = (*range(201), 1000, 1_000_000)


def normalize(tag: str) -> str:
    """Returns a language's tag as in BCP 47, or "" if there is no such language.

    Example:
        >>> from pipeline.documents import languages
        >>> languages.normalize("pt-rBR"), languages.normalize("zh_hant"), languages.normalize("?")
        ('pt-BR', 'zh-Hant', '')
    """
    tag = _REGION.sub("-", tag).removeprefix("b+").replace("+", "-").replace("_", "-")
    locale = _locale(tag)
    if locale is None:
        return ""
    first, *others = tag.split("-")
    named = {4: str.title, 2: str.upper}
    return "-".join([first.lower(), *(named.get(len(part), str)(part) for part in others)])


def language_of_path(path: str) -> str:
    """Returns the language that a path names by its folder or its file's name, or ""."""
    folder, name = os.path.split(path)
    folder = os.path.basename(folder)
    if match := _FOLDER.fullmatch(folder):
        return normalize(match["android"] or match["apple"])
    match = _END_OF_NAME.search(name.rsplit(".", 1)[0])
    return (normalize(match[1]) if match else "") or normalize(folder)


@functools.cache
def _locale(tag: str) -> "babel.Locale | None":
    # Imported here, because most commands need no language.
    import babel

    if not _TAG.fullmatch(tag):
        return None
    # A variant that CLDR lacks has its language's rules.
    for end in range(len(parts := tag.split("-")), 0, -1):
        try:
            return babel.Locale.parse("-".join(parts[:end]), sep="-")
        except (ValueError, babel.UnknownLocaleError):
            continue
    return None


def categories(language: str, ordinal: bool = False) -> tuple[str, ...]:
    """Returns the plural categories of a language in the order of `CATEGORIES`.

    Args:
        language: its tag; an unknown one has none.
        ordinal: whether the numbers are ordinal (1st, 2nd).
    """
    rule = _rule(language, ordinal)
    return tuple(one for one in CATEGORIES if rule and (one in rule.tags or one == "other"))


def _rule(language: str, ordinal: bool) -> "PluralRule | None":
    locale = _locale(language)
    if locale is None:
        return None
    return locale.ordinal_form if ordinal else locale.plural_form


@functools.cache
def _serves_one(language: str, category: str, ordinal: bool) -> tuple[bool, bool]:
    """Returns whether a category serves the number 1, and whether it serves no other number."""
    rule = _rule(language, ordinal)
    assert rule
    numbers = [number for number in _NUMBERS if rule(number) == category]
    return 1 in numbers, numbers == [1]


def source_category(
    category: str, texts: Mapping[str, InlineText], language: str, ordinal: bool = False
) -> str:
    """Returns the form of the source that a category of the target's language translates.

    Args:
        category: a category of the language.
        texts: category of the source's language to text; there is `other`.
        language: that of the target.
        ordinal: whether the numbers are ordinal.
    """
    if category == "other" or category not in categories(language, ordinal):
        return category
    serves_one, only_one = _serves_one(language, category, ordinal)
    if "one" in texts and serves_one:
        # "One file" must not stand for 21 files.
        names_number = texts["one"].placeholders >= texts["other"].placeholders
        return "one" if only_one or names_number else "other"
    return category if category in texts and category != "one" else "other"
