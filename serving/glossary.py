"""A glossary: how phrases of the source are translated, and where they stand in a text.

    Glossary({"homepage": "page d'accueil"}).mark("Open the homepage.")

See `docs/explanation/glossaries.md` for the rules of matching.
"""

from __future__ import annotations

import bisect
import functools
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from serving import term_markup
from serving.errors import RequestError

# The tokenizer cannot keep these: its joiner, and the pictures of white space.
_NOT_KEPT = "\uffed\u2420\u2409\u240a\u240b\u240c\u240d"
#: Between two letters these do not end a word: `e-mail`, `plone.app`, `fr_CA`.
INSIDE_WORDS = ".-_/@:"
#: First and last characters of blocks whose scripts put no blanks between words, by script.
UNSPACED = (
    (0x0E00, 0x0E7F, "Thai"),
    (0x0E80, 0x0EFF, "Lao"),
    (0x1000, 0x109F, "Myanmar"),
    (0x1780, 0x17FF, "Khmer"),
    (0x3005, 0x3007, "Han"),
    (0x3041, 0x309F, "Hiragana"),
    (0x30A1, 0x30FF, "Katakana"),
    (0x31F0, 0x31FF, "Katakana"),
    (0x3400, 0x4DBF, "Han"),
    (0x4E00, 0x9FFF, "Han"),
    (0xAC00, 0xD7A3, "Hangul"),
    (0xF900, 0xFAFF, "Han"),
    (0xFF66, 0xFF9F, "Katakana"),
    (0x20000, 0x3FFFF, "Han"),
)
#: Between words of Katakana; no letter, though of that block.
MIDDLE_DOT = "\u30fb"
ZERO_WIDTH_JOINER = "\u200d"
_STARTS = [first for first, _, _ in UNSPACED]


class Match(NamedTuple):
    """A term in a text.

    Attributes:
        start, end: where it stands.
        phrase: as the text writes it.
        translation: what the output must contain.
    """

    start: int
    end: int
    phrase: str
    translation: str


class Glossary:
    """Translations of phrases. Checked once; use one object for many calls.

    Args:
        terms: a dict from phrase to translation, or pairs of both.

    Raises:
        RequestError: there are no terms, one is blank, has a character that cannot be kept, or two
            translations; one sentence.
    """

    def __init__(self, terms: Mapping[str, str] | Iterable[tuple[str, str]]) -> None:
        self.terms: dict[str, str] = {}
        pairs = terms.items() if isinstance(terms, Mapping) else terms
        for source, target in pairs:
            phrase = _checked("phrase", source, source)
            translation = _checked("translation", target, source)
            phrase = " ".join(phrase.split())
            if self.terms.setdefault(phrase, translation) != translation:
                raise RequestError(
                    f'The glossary translates "{phrase}" as "{self.terms[phrase]}" and as '
                    f'"{translation}": give one translation.'
                )
        if not self.terms:
            raise RequestError("The glossary is empty: give at least one term, or no glossary.")
        self._lengths = sorted({len(phrase) for phrase in self.terms}, reverse=True)

    @classmethod
    def of(cls, terms: GlossaryLike) -> Glossary:
        """Returns a caller's argument as a `Glossary`.

        Raises:
            RequestError: as for `Glossary`.
        """
        if isinstance(terms, Glossary):
            return terms
        if not isinstance(terms, Mapping):
            raise RequestError(
                f"glossary must be a dict from phrases to translations; got {type(terms).__name__}."
            )
        return cls(terms)

    def matches(self, text: str) -> Iterator[Match]:
        """Yields the terms of a text from left to right: at each place the longest."""
        lower = "".join(map(_lower, text))
        ends = [end for end in range(1, len(text) + 1) if _ends_word(text, end)]
        position = 0
        while position < len(text):
            match = None
            if _begins_word(text, position):
                match = self._longest(text, lower, position, ends)
            if match:
                yield match
            position = match.end if match else position + 1

    def mark(self, text: str) -> str:
        """Returns a text with the markup of its terms, to be sent to a served model."""
        parts, end = [], 0
        for match in self.matches(text):
            parts.append(term_markup.escape(text[end : match.start]))
            parts.append(term_markup.term(match.phrase, match.translation))
            end = match.end
        if not parts:
            return term_markup.plain(text)
        return "".join(parts) + term_markup.escape(text[end:])

    def _longest(self, text: str, lower: str, start: int, ends: list[int]) -> Match | None:
        for length in self._lengths:
            end = start + length
            place = bisect.bisect_left(ends, end)
            if place == len(ends) or ends[place] != end:
                continue
            phrase = text[start:end]
            translation = self.terms.get(phrase)
            if translation is None:
                # A phrase with capitals is never equal to one in lower case.
                translation = self.terms.get(lower[start:end])
                if translation is not None and _is_in_capitals(phrase):
                    translation = translation.upper()
            if translation is not None:
                return Match(start, end, phrase, translation)
        return None


#: A glossary as callers give it: a `Glossary`, or a dict from phrase to translation.
GlossaryLike = Glossary | Mapping[str, str]


def count_in(text: str, translation: str) -> int:
    """Returns how often a text holds a translation, in whatever case, as whole words.

    Where a script puts no blanks between words, whatever stands beside it counts.
    """
    lower, phrase = "".join(map(_lower, text)), "".join(map(_lower, translation))
    number, start = 0, lower.find(phrase)
    while start >= 0:
        end = start + len(phrase)
        begins = start == 0 or not _is_spaced_word(text[start - 1], text[start])
        if begins and (end == len(text) or not _is_spaced_word(text[end - 1], text[end])):
            number, start = number + 1, lower.find(phrase, end)
        else:
            start = lower.find(phrase, start + 1)
    return number


def _checked(what: str, value: object, source: object) -> str:
    """Returns a phrase or a translation without the white space around it.

    Raises:
        RequestError: it cannot be used.
    """
    if not isinstance(value, str):
        raise RequestError(
            f"The {what} of the glossary's term {source!r} must be a str; got "
            f"{type(value).__name__}."
        )
    text = value.strip()
    if not text:
        raise RequestError(f"The {what} of the glossary's term {source!r} is blank.")
    for character in text:
        is_kept = unicodedata.category(character) not in ("Cc", "Cs", "Zl", "Zp")
        if not is_kept or character in term_markup.MARKS + _NOT_KEPT:
            raise RequestError(
                f"The {what} of the glossary's term {source!r} contains U+{ord(character):04X}, "
                "which a term cannot have: remove it."
            )
    return text


def _lower(character: str) -> str:
    lower = character.lower()
    # As many characters as the text has.
    return lower if len(lower) == 1 else character


def _is_in_capitals(phrase: str) -> bool:
    return phrase.isupper() and sum(map(str.isalpha, phrase)) > 1


@functools.lru_cache(maxsize=4096)
def _script(character: str) -> str:
    """Returns a script that puts no blanks between words, "word" for others, "" for no letter."""
    place = bisect.bisect_right(_STARTS, ord(character)) - 1
    if place >= 0 and ord(character) <= UNSPACED[place][1] and character != MIDDLE_DOT:
        return UNSPACED[place][2]
    is_word = character == "_" or unicodedata.category(character)[0] in "LNM"
    return "word" if is_word else ""


def _parts(before: str, behind: str, *, ends: bool) -> bool:
    """Whether a word may end, or begin, between two neighbours.

    Args:
        before, behind: the characters.
        ends: whether a term ends here; else it begins.
    """
    if unicodedata.category(behind)[0] == "M" or ZERO_WIDTH_JOINER in (before, behind):
        # A mark belongs to its letter.
        return False
    first, second = _script(before), _script(behind)
    if not first or not second or first != second:
        return True
    # Particles follow a Korean word without a blank.
    return first not in ("word", "Katakana") and (first != "Hangul" or ends)


def _begins_word(text: str, place: int) -> bool:
    if place == 0:
        return True
    before = text[place - 1]
    if before in INSIDE_WORDS and place > 1 and _is_spaced_word(text[place - 2], text[place]):
        return False
    return _parts(before, text[place], ends=False)


def _ends_word(text: str, place: int) -> bool:
    if place == len(text):
        return True
    behind = text[place]
    if behind in INSIDE_WORDS and place + 1 < len(text):
        if _is_spaced_word(text[place - 1], text[place + 1]):
            return False
    return _parts(text[place - 1], behind, ends=True)


def _is_spaced_word(*neighbours: str) -> bool:
    return all(_script(character) == "word" for character in neighbours)
