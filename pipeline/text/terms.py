r"""Terms of a glossary in a text: one protected token each, whose copy writes the translation.

A text carries them as `serving.term_markup` says. Inside of the tokenizer and the features a term
is `\0phrase\0translation\0`: no text contains NUL any more there. A term inside of a placeholder,
tag, URL or option is no term.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from pipeline.text.placeholders.protected_syntax import (
    BEGIN_MARK,
    END_MARK,
    ProtectedSyntax,
    compiled,
)
from pipeline.text.placeholders.syntax import SPACE
from pipeline.text.placeholders.syntax import TERM as TERM
from serving import term_markup

if TYPE_CHECKING:
    import tensorflow as tf

_PARTS = r"\x00([^\x00]+)\x00([^\x00]+)\x00"
# Marks where pieces of a text end; no text contains it.
_BREAK = "\x1f"
_WHITE_SPACE = rf"[{SPACE}]+|\x00"
_SENTENCE_END = r"\x{FFED}?[.!?…。！？¿¡]\x{FFED}?"


# In Python.


def mark(text: str, syntax: ProtectedSyntax, *, pack: bool = False) -> str:
    """Returns a text with marks around its protected tokens, terms among them.

    Args:
        text: without control characters.
        syntax: what else is protected.
        pack: whether white space outside of terms becomes one blank.
    """
    pieces = _pieces(text, pack)
    marked = syntax.mark("".join(phrase for phrase, _ in pieces))
    if len(pieces) == 1:
        return marked
    # For each character of the plain text, where it stands in the marked one; and whether a
    # protected token holds it.
    places, inside, is_inside = [], [], False
    for place, character in enumerate(marked):
        if character in (BEGIN_MARK, END_MARK):
            is_inside = character == BEGIN_MARK
        else:
            places.append(place - (is_inside and place > 0 and marked[place - 1] == BEGIN_MARK))
            inside.append(is_inside)
    places.append(len(marked))
    parts, start = [], 0
    for phrase, translation in pieces:
        end = start + len(phrase)
        if translation and not any(inside[start:end]):
            parts.append(f"{BEGIN_MARK}\0{phrase}\0{translation}\0{END_MARK}")
        else:
            parts.append(marked[places[start] : places[end]] if phrase else "")
        start = end
    return "".join(parts)


def split(text: str) -> list[str]:
    """Returns the tokens of a text that is already tokenized; a term is one or several of them."""
    pieces = _pieces(text, False)
    parts = []
    for number, (phrase, translation) in enumerate(pieces):
        before = pieces[number - 1][0] if number else ""
        behind = pieces[number + 1][0] if number + 1 < len(pieces) else ""
        is_apart = (number < 2 and not before) or before[-1:].isspace()
        is_apart &= (number + 2 >= len(pieces) and not behind) or behind[:1].isspace()
        is_term = translation and is_apart
        parts.append(f"{_BREAK}\0{phrase}\0{translation}\0{_BREAK}" if is_term else phrase)
    pattern = rf"({TERM})|[{SPACE}]+"
    return [
        token
        for token in compiled(pattern).sub(rf"{_BREAK}\1{_BREAK}", "".join(parts)).split(_BREAK)
        if token
    ]


def outside_translations(text: str, change: Callable[[str], str]) -> str:
    """Returns a text that is changed everywhere but in the translations of its terms."""
    parts = compiled(term_markup.TERM).split(text)
    changed = [part if number % 3 == 2 else change(part) for number, part in enumerate(parts)]
    for number in range(1, len(parts), 3):
        changed[number : number + 2] = [term_markup.term(*changed[number : number + 2]), ""]
    return "".join(changed)


def phrase_of(token: str) -> str:
    """Returns the phrase of a token that is a term, else the token."""
    return token.split("\0")[1] if "\0" in token else token


def translations(tokens: Iterable[str]) -> list[str]:
    """Returns the translations of the terms among tokens."""
    return [token.split("\0")[2] for token in tokens if "\0" in token]


def _pieces(text: str, pack: bool) -> list[tuple[str, str]]:
    """Returns pairs of text and "", and of a term's phrase and translation, in turn."""
    parts = compiled(term_markup.TERM).split(text)
    pieces = []
    for number in range(0, len(parts), 3):
        plain = compiled(term_markup.ESCAPED).sub(r"\1", parts[number])
        pieces.append((compiled(_WHITE_SPACE).sub(" ", plain) if pack else plain, ""))
        if number + 2 < len(parts):
            pieces.append((parts[number + 1], parts[number + 2]))
    return pieces


# In a TensorFlow graph.


def mark_in_graph(
    texts: "tf.Tensor", syntax: ProtectedSyntax, *, pack: bool = False
) -> "tf.Tensor":
    """Returns what `mark` does, of string `[batch]`."""
    import tensorflow as tf

    pieces, phrases, are_terms = _pieces_in_graph(texts)
    if pack:
        phrases = tf.where(are_terms, phrases, tf.strings.regex_replace(phrases, _WHITE_SPACE, " "))
    plain = tf.strings.reduce_join(pieces.with_flat_values(phrases), axis=-1)
    marked = tf.strings.reduce_join(syntax.mark_in_graph(plain))
    # Offsets in bytes, of all texts concatenated.
    limits = tf.cumsum(tf.cast(tf.strings.length(phrases), tf.int64))
    starts = limits - tf.cast(tf.strings.length(phrases), tf.int64)
    begins, ends = (_offsets(marked, mark) for mark in (BEGIN_MARK, END_MARK))
    last = tf.searchsorted(begins, limits) - 1
    ends_of_last = tf.gather(tf.concat([[0], ends], axis=0), last + 1)
    are_terms &= ends_of_last <= starts

    def place(offsets: "tf.Tensor") -> "tf.Tensor":
        """Where the text of a piece begins in the marked text: with a mark that begins there, and
        behind one that ends there.
        """
        marks = tf.searchsorted(begins, offsets) + tf.searchsorted(ends, offsets, side="right")
        return offsets + tf.cast(marks, tf.int64)

    parts = tf.strings.substr(marked, place(starts), place(limits) - place(starts))
    own = BEGIN_MARK + _token(pieces.flat_values) + END_MARK
    return tf.strings.reduce_join(pieces.with_flat_values(tf.where(are_terms, own, parts)), axis=-1)


def split_in_graph(texts: "tf.Tensor") -> "tf.RaggedTensor":
    """Returns what `split` does, of string `[batch]`: ragged string `[batch, (tokens)]`."""
    import tensorflow as tf

    pieces, phrases, are_terms = _pieces_in_graph(texts)
    spaces = f"[{SPACE}]"
    begins = tf.strings.regex_full_match(phrases, rf"(?s){spaces}.*")
    ends = tf.strings.regex_full_match(phrases, rf"(?s).*{spaces}")
    rows = pieces.value_rowids()
    places = tf.range(tf.size(rows, tf.int64))
    is_empty = phrases == ""
    at_begin = is_empty & (places == tf.gather(pieces.row_starts(), rows))
    at_end = is_empty & (places == tf.gather(pieces.row_limits(), rows) - 1)
    none = tf.zeros([tf.minimum(tf.size(rows), 1)], tf.bool)
    apart_before = tf.concat([none, (at_begin | ends)[:-1]], axis=0)
    apart_behind = tf.concat([(at_end | begins)[1:], none], axis=0)
    are_terms &= apart_before & apart_behind
    own = _BREAK + _token(pieces.flat_values) + _BREAK
    joined = tf.strings.reduce_join(
        pieces.with_flat_values(tf.where(are_terms, own, phrases)), axis=-1
    )
    cut = tf.strings.regex_replace(joined, rf"({TERM})|{spaces}+", rf"{_BREAK}\1{_BREAK}")
    tokens = tf.strings.split(cut, _BREAK)
    return tf.ragged.boolean_mask(tokens, tokens != "")


def outside_translations_in_graph(
    texts: "tf.Tensor", change: "Callable[[tf.Tensor], tf.Tensor]"
) -> "tf.Tensor":
    """Returns what `outside_translations` does, of string `[batch]`."""
    import tensorflow as tf

    pieces = _cut(texts)
    flat = pieces.flat_values
    markup = f"^{term_markup.TERM}$"
    translations = tf.strings.regex_replace(flat, markup, r"\2")
    phrases = change(tf.strings.regex_replace(flat, markup, r"\1"))
    own = term_markup.ANCHOR + phrases + term_markup.SEPARATOR + translations
    changed = tf.where(_is_markup(flat), own + term_markup.TERMINATOR, phrases)
    return tf.strings.reduce_join(pieces.with_flat_values(changed), axis=-1)


def is_term(tokens: "tf.Tensor") -> "tf.Tensor":
    """Returns which tokens are terms; bool like `tokens`."""
    import tensorflow as tf

    return tf.strings.regex_full_match(tokens, TERM)


def phrases(tokens: "tf.Tensor") -> "tf.Tensor":
    """Returns the phrase of each token that is a term, else the token; string like `tokens`."""
    import tensorflow as tf

    return tf.strings.regex_replace(tokens, f"^{_PARTS}$", r"\1")


def translations_of(tokens: "tf.Tensor") -> "tf.Tensor":
    """Returns the translation of each token that is a term, else the token; like `tokens`."""
    import tensorflow as tf

    return tf.strings.regex_replace(tokens, f"^{_PARTS}$", r"\2")


def written(tokens: "tf.Tensor") -> "tf.Tensor":
    """Returns what is written for each token: the translation for a term.

    A translation that begins a sentence has a capital if the phrase has one.

    Args:
        tokens: string `[..., length]`, the tokens of outputs.
    """
    import tensorflow as tf

    translations = translations_of(tokens)
    before = tf.concat([tf.fill(tf.shape(tokens[..., :1]), "."), tokens[..., :-1]], axis=-1)
    is_first = tf.strings.regex_full_match(before, _SENTENCE_END)
    has_capital = tf.strings.regex_full_match(phrases(tokens), r"(?s)\p{Lu}.*")
    letter = tf.strings.regex_replace(translations, r"(?s)^(.).*$", r"\1")
    capital = tf.strings.upper(letter, encoding="utf-8")
    begun = capital + tf.strings.regex_replace(translations, r"(?s)^.", "")
    return tf.where(is_term(tokens) & is_first & has_capital, begun, translations)


def with_markup(tokens: "tf.Tensor") -> "tf.Tensor":
    """Returns tokens with terms as the markup of a text has them."""
    import tensorflow as tf

    return tf.strings.regex_replace(tokens, _PARTS, term_markup.term(r"\1", r"\2"))


def has_markup(texts: "tf.Tensor") -> "tf.Tensor":
    """Returns which texts have a marked term, or a character of the markup that is escaped."""
    import tensorflow as tf

    marked = f"(?s).*(?:{term_markup.TERM}|{term_markup.ESCAPED}).*"
    return tf.strings.regex_full_match(texts, marked)


def without_markup(texts: "tf.Tensor") -> "tf.Tensor":
    """Returns texts as they were before terms were marked."""
    import tensorflow as tf

    return tf.strings.regex_replace(
        tf.strings.regex_replace(texts, term_markup.TERM, r"\1"), term_markup.ESCAPED, r"\1"
    )


def _token(pieces: "tf.Tensor") -> "tf.Tensor":
    """Returns the tokens of pieces that are the markup of a term."""
    import tensorflow as tf

    return tf.strings.regex_replace(pieces, f"^{term_markup.TERM}$", "\0\\1\0\\2\0")


def _cut(texts: "tf.Tensor") -> "tf.RaggedTensor":
    """Returns the pieces of texts: plain text, and the markup of a term, in turn."""
    import tensorflow as tf

    cut = tf.strings.regex_replace(texts, term_markup.TERM, rf"{_BREAK}\0{_BREAK}")
    return tf.strings.split(cut, _BREAK)


def _is_markup(pieces: "tf.Tensor") -> "tf.Tensor":
    import tensorflow as tf

    return tf.strings.regex_full_match(pieces, term_markup.TERM)


def _pieces_in_graph(texts: "tf.Tensor") -> tuple["tf.RaggedTensor", "tf.Tensor", "tf.Tensor"]:
    """Returns the pieces of texts, the text or phrase of each, and which are terms."""
    import tensorflow as tf

    pieces = _cut(texts)
    is_markup = _is_markup(pieces.flat_values)
    phrases = tf.strings.regex_replace(pieces.flat_values, f"^{term_markup.TERM}$", r"\1")
    plain = tf.strings.regex_replace(pieces.flat_values, term_markup.ESCAPED, r"\1")
    return pieces, tf.where(is_markup, phrases, plain), is_markup


def _offsets(marked: "tf.Tensor", mark: str) -> "tf.Tensor":
    """Returns the places of a mark in a text, in bytes, without counting marks."""
    import tensorflow as tf

    others = "".join({BEGIN_MARK, END_MARK} - {mark})
    parts = tf.strings.split(tf.strings.regex_replace(marked, f"[{others}]", ""), mark)
    return tf.cumsum(tf.cast(tf.strings.length(parts), tf.int64))[:-1]
