r"""The patterns of words, valid for RE2 and `regex`, by the recipe key `data.rare_words`.

`"cut"` keeps names with inner dots, hyphens, slashes, @ and colons whole. `"parts"` cuts them too,
and `"letters"` also at `_`.

`"whole"` makes one token, which a copy carries over at once, of

    numbers     1,234.56  1'234.56  1 234,56 (no-break spaces)  -5  .5  1,5e-10
    names       O'Brien  N'Djamena  AT&T  R&D  C++  C#  .NET  std::vector  об'єкт  צה״ל  col·lecció
    paths       /usr/bin/x  ~/x  ../x  C:\x  \\server\share
    handles     #tag  @user
    joined      words with ZWJ, ZWNJ, soft hyphens, word joiners, no-break hyphens
    emoji       a sequence of code points that is one picture: 👩‍👩‍👧  👍🏽  🇫🇷  1️⃣

Neither RE2 nor a single token can look ahead, so a pattern says only what it takes: elision stays
cut (`d'utilisateur`, `L'Europe`), and so do English endings (`user's`), Turkish ones
(`İzmir'de`) and keys behind `&` in lower case (`E&xit`).
"""

import dataclasses

from pipeline.text.placeholders.syntax import ALPHABETS, LETTERS


@dataclasses.dataclass(frozen=True)
class WordPatterns:
    """What is a word.

    Attributes:
        words: alternatives of words, which may be copied, and never carry a joiner.
        others: alternatives that are tried before words, of tokens that carry joiners.
        first: alternatives of words that are tried before `others`.
    """

    words: tuple[str, ...]
    others: tuple[str, ...]
    first: tuple[str, ...] = ()

    @property
    def word(self) -> str:
        """The pattern that matches a whole word."""
        return "|".join(f"(?:{pattern})" for pattern in (*self.first, *self.words))

    @property
    def tokens(self) -> str:
        """The pattern of the tokens of a text; punctuation and white space follow it."""
        return "|".join(f"(?:{pattern})" for pattern in (*self.first, *self.others, *self.words))


# Words keep inner hyphens, dots, slashes, @ and colons, so that identifiers such as
# `plone.app.multilingual` or `fr-CA` are one token to copy.
_WORD = r"[\p{L}\p{N}_][\p{L}\p{M}\p{N}_]*(?:[.\-_/@:][\p{L}\p{N}_][\p{L}\p{M}\p{N}_]*)*"
# Elided French (and Italian) words: `d'utilisateur` is `d'￭ utilisateur`.
_ELISION = r"(?i:(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu|quoiqu)['’])"

#: Words alone.
PLAIN = WordPatterns((_WORD,), (_ELISION,))
#: Only letters, marks, digits and `_` are inside a word.
PARTS = WordPatterns((r"[\p{L}\p{N}_][\p{L}\p{M}\p{N}_]*",), ())
#: Only letters, marks and digits are.
WITHOUT_UNDERSCORES = WordPatterns((r"[\p{L}\p{N}][\p{L}\p{M}\p{N}]*",), ())

_DIGIT = r"\p{Nd}"
_NO_BREAK = "\u00a0\u202f"
# The joiner and the non-joiner of zero width.
_ZERO_WIDTH = "\u200c\u200d"
# Digits with commas and groups of three. They begin with a digit that is part of the word anyway.
_GROUPS = rf"{_DIGIT}(?:[,٫٬]{_DIGIT}|['’{_NO_BREAK}]{_DIGIT}{{3}})+"
# Apostrophes and gershayim inside the words of other scripts than Latin.
_INNER = (
    r"\p{Cyrillic}['’]\p{Cyrillic}"
    "|\\p{Hebrew}['\"’\u05f3\u05f4]\\p{Hebrew}"
)
# What joins the parts of a word: as in `_WORD`, and middle dots, hyphens, invisible characters.
_SEPARATOR = "(?:[.\\-_/@:·\u2010\u2011\u00ad\u2060]|::)"
_START = r"[A-Z]#|[oO]['’]\p{L}|\p{Lu}['’]\p{Lu}|[\p{L}\p{N}_]"
_REST = (
    rf"(?:{_GROUPS}|{_INNER}|[\p{{L}}\p{{M}}\p{{N}}_{_ZERO_WIDTH}]"
    rf"|{_SEPARATOR}[\p{{L}}\p{{N}}_]|&\p{{Lu}}|['’]n['’]\p{{L}}|\+\+)*"
)
_RARE_WORD = rf"(?:[#@.]?(?:{_GROUPS}|{_INNER}|{_START})|[+\-−](?:{_GROUPS}|{_DIGIT})){_REST}"
# Before consonants nothing is elided: `N'Djamena`.
_NAME = rf"[A-Z]['’][B-DFGJ-NP-TV-XZ][{LETTERS}]*"

# A part of a path; a dot behind it ends a sentence.
_PART = rf"[{LETTERS}.\-+~@=]*[{LETTERS}]"
_PATHS = (
    rf"[A-Za-z]:[\\/](?:{_PART}[\\/])*(?:{_PART})?",
    rf"(?:\\\\{_PART}|\.\.?\\{_PART})(?:\\{_PART})*\\?",
    rf"(?:~[{ALPHABETS}]*|\.\.?)?//?{_PART}(?:/{_PART})*/?",
)
# Symbols of the blocks of emoji. Below U+1F000 they are pictures only as part of a sequence.
_LOW = (
    "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u27bf\u2900-\u297f\u2b00-\u2bff"
    "\u3030\u303d\u3297\u3299]"
)
_HIGH = "[\U0001f000-\U0001f1e5\U0001f200-\U0001f3fa\U0001f400-\U0001faff]"
# Variation selectors, skin tones, and the tags of a flag such as Scotland's.
_CHANGES = "(?:[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff\u20e3]|[\U000e0020-\U000e007f]+)"
_JOINED = f"(?:\u200d(?:{_LOW}|{_HIGH}){_CHANGES}*)"
_EMOJI = (
    "[\U0001f1e6-\U0001f1ff]{2}",
    "[0-9#*]\ufe0f?\u20e3",
    f"{_HIGH}{_CHANGES}*{_JOINED}*",
    f"{_LOW}(?:{_CHANGES}+{_JOINED}*|{_JOINED}+)",
)

#: Rare words are whole. Dots that follow each other are one token: they begin no name.
WHOLE = WordPatterns((_RARE_WORD,), (r"\.\.+", _ELISION), (*_PATHS, *_EMOJI, _NAME))

#: The patterns of each value of `data.rare_words`.
BY_RARE_WORDS = {"cut": PLAIN, "whole": WHOLE, "parts": PARTS, "letters": WITHOUT_UNDERSCORES}
