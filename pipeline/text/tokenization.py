"""Text to tokens and back, in a TensorFlow graph and, with the same patterns, in Python.

A text is cut into protected tokens (placeholders, tags, URLs, options: never cut further), words,
single characters of punctuation, and white space that is more than one blank (see `white_space`).
Where two tokens touch, a joiner marks it: on the punctuation, or as a token of its own between two
tokens that must stay clean because they may be copied:

    "Hello, %(name)s!"  ->  Hello ￭, %(name)s ￭!
    "%s%s"              ->  %s ￭ %s

Joining the tokens gives the text back. A few characters cannot be kept: a joiner in the text itself
is read as `■`, its Unicode equivalent, and the pictures of white space as `␣` and `␤`; NUL and the
separators U+001C to U+001F, which mark tokens on the way, as blanks.

A text that is already tokenized is cut at white space alone and joined with one space, without
joiners (kind `whitespace`). Kind `characters` cuts into characters and drops the white space
between them, so that a model that must find words (`model.encoder = "segmenting"`) does not see
where they are. A recipe chooses one of the three kinds, as a `Tokenizer`, and what is protected
(see `placeholders`); the functions are those of the first, with the default.
"""

import dataclasses
import functools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pipeline.common.traced_once import TracedOnce
from pipeline.recipes.choices import DEFAULT_PLACEHOLDERS
from pipeline.text import character_cut, normalization, terms, white_space
from pipeline.text.character_cut import BREAK, CONTROL, MARKS
from pipeline.text.character_cut import CHARACTER as CHARACTER
from pipeline.text.character_cut import split_characters as split_characters
from pipeline.text.placeholders import syntax_of
from pipeline.text.placeholders.protected_syntax import (
    BEGIN_MARK,
    END_MARK,
    MARKED,
    ProtectedSyntax,
    compiled,
)
from pipeline.text.placeholders.syntax import (
    OPTION,
    PLACEHOLDER,
    TAG,
    TERM_CLASS,
    URL,
)
from pipeline.text.word_patterns import BY_RARE_WORDS, PLAIN, WordPatterns

if TYPE_CHECKING:
    import tensorflow as tf

    from pipeline.recipes.sections import DataConfig

JOINER = "￭"
# The replacement of a joiner in the text; equally long in UTF-8.
JOINER_IN_TEXT = "■"

# Ids 0 to 3 are fixed by the design; the classes of protected tokens follow, then the joiner.
PAD, UNK, START, END = "[PAD]", "[UNK]", "[START]", "[END]"
SPECIAL_TOKENS = (PAD, UNK, START, END, PLACEHOLDER, TAG, URL, OPTION, JOINER)
#: Those, and the one behind them in vocabularies of a training with terms.
CLASS_TOKENS = (*SPECIAL_TOKENS, TERM_CLASS)
PAD_ID, UNK_ID, START_ID, END_ID = 0, 1, 2, 3

_NBSP = "[\u00a0\u202f]"
# French high punctuation keeps its no-break space, so that typography survives the round trip.
_PUNCTUATION = rf"«{_NBSP}|{_NBSP}[»:;!?%]|[^\t-\r \x1c-\x1f]"
# What stands between white space and protected tokens.
_PART = f"{MARKED}|[^{BEGIN_MARK}{END_MARK}\t-\r \x1c-\x1f]+|{white_space.PATTERN}"


def _token_pattern(patterns: WordPatterns) -> str:
    """Returns the pattern of the tokens of a marked text."""
    return f"{MARKED}|{patterns.tokens}|{_PUNCTUATION}|{white_space.PATTERN}"


class Piece(NamedTuple):
    """A token of a text, in Python.

    Attributes:
        token: without joiners.
        touches: whether it touches the token before it.
        is_protected: whether it is a placeholder, tag, URL or option.
        is_clean: whether it may be copied, so never carries a joiner: protected tokens and words.
    """

    token: str
    touches: bool
    is_protected: bool
    is_clean: bool


def _pieces(text: str, syntax: ProtectedSyntax, patterns: WordPatterns) -> Iterator[Piece]:
    """Yields the tokens of a text."""
    text = white_space.replace_pictures(text.replace(JOINER, JOINER_IN_TEXT))
    marked = terms.mark(compiled(CONTROL).sub(" ", text), syntax)
    word = compiled(patterns.word)
    end = -1
    for match in compiled(_token_pattern(patterns)).finditer(marked):
        token = match.group()
        if token[0] in "\t\n\v\f\r ":
            yield Piece(white_space.to_token(token), False, False, False)
            end = -1
            continue
        is_protected = token[0] == BEGIN_MARK
        is_clean = is_protected or word.fullmatch(token) is not None
        token = token[1:-1] if is_protected else token
        yield Piece(token, match.start() == end, is_protected, is_clean)
        end = match.end()


def _split(text: str) -> list[str]:
    """Python's counterpart of `_split_at_white_space`."""
    return terms.split(compiled(CONTROL).sub(" ", text))


def count_tokens(text: str) -> int:
    """Returns how many tokens `tokenize` makes of a text, single joiners among them.

    Example:
        >>> from pipeline.text.tokenization import count_tokens
        >>> count_tokens("Hello, %(name)s!"), count_tokens("%s%s")
        (4, 3)
    """
    return Tokenizer().count(text)


def words(text: str) -> list[str]:
    """Returns what `tokenize` makes of a text, without punctuation, white space and joiners.

    Example:
        >>> from pipeline.text.tokenization import words
        >>> words("Hello, %(name)s! See plone.app.multilingual.")
        ['Hello', '%(name)s', 'See', 'plone.app.multilingual']
    """
    return Tokenizer().words(text)


def protected_tokens(text: str) -> list[str]:
    """Returns the placeholders, tags, URLs and options of a text in order.

    Example:
        >>> from pipeline.text.tokenization import protected_tokens
        >>> protected_tokens("<b>%d</b> files; see --help or https://example.org/")
        ['<b>', '%d', '</b>', '--help', 'https://example.org/']
    """
    return Tokenizer().protected_tokens(text)


def placeholders(text: str) -> list[str]:
    """Returns the placeholders of a text in order.

    Example:
        >>> from pipeline.text.tokenization import placeholders
        >>> placeholders("<b>%(name)s</b> of {0}: {{ user.name }} has ${amount}")
        ['%(name)s', '{0}', '{{ user.name }}', '${amount}']
    """
    return Tokenizer().placeholders(text)


def tokenize(
    texts: "tf.Tensor",
    syntax: ProtectedSyntax | None = None,
    patterns: WordPatterns = PLAIN,
    chunks: bool = False,
) -> "tf.RaggedTensor":
    """Cuts texts into tokens, in a TensorFlow graph.

    Args:
        texts: string tensor `[batch]`.
        syntax: what is protected, by default what recipes protect by default.
        patterns: what is a word.
        chunks: cuts at white space and protected tokens alone; joiners stand before parts only.

    Returns:
        Ragged string tensor `[batch, (tokens)]`; touching tokens carry the joiner.
    """
    import tensorflow as tf

    texts = tf.strings.regex_replace(texts, JOINER, JOINER_IN_TEXT)
    texts = white_space.replace_pictures_in_graph(texts)
    texts = tf.strings.regex_replace(texts, CONTROL, " ")
    marked = terms.mark_in_graph(texts, syntax or syntax_of())
    pattern = _PART if chunks else _token_pattern(patterns)
    cut = tf.strings.regex_replace(marked, f"({pattern})", rf"\1{BREAK}")
    pieces = tf.strings.split(cut, BREAK)[:, :-1]
    piece = pieces.flat_values
    count = tf.shape(piece)[0]
    row = tf.cast(pieces.value_rowids(), tf.int32)
    is_space = white_space.is_run_in_graph(piece)
    # The single blank between two tokens is the beginning of the second.
    is_apart = tf.strings.regex_full_match(piece, "(?s) .*") | is_space
    token = tf.strings.regex_replace(piece, r"\A ", "")
    is_protected = tf.strings.regex_full_match(token, MARKED)
    clean = is_protected
    if not chunks:
        clean |= tf.strings.regex_full_match(token, patterns.word)
    token = tf.strings.regex_replace(token, MARKS, "")
    spaces = white_space.to_tokens_in_graph(tf.where(is_space, piece, ""))
    token = tf.where(is_space, spaces, token)

    none = tf.zeros([tf.minimum(count, 1)], tf.bool)
    touches = tf.concat([none, (row[1:] == row[:-1]) & ~is_space[:-1]], axis=0) & ~is_apart
    clean_before = tf.concat([none, tf.ones_like(clean[:-1]) if chunks else clean[:-1]], axis=0)
    prefix = touches & ~clean
    suffix_before = touches & clean & ~clean_before
    suffix = tf.concat([suffix_before[1:], none], axis=0)
    token = tf.where(prefix, JOINER + token, token)
    token = tf.where(suffix, token + JOINER, token)
    # Between two clean tokens the joiner is a token: repeat the position, then write the joiner
    # over the first.
    alone = touches & clean & clean_before
    repeats = 1 + tf.cast(alone, tf.int32)
    index = tf.repeat(tf.range(count), repeats)
    first = tf.concat([~none, index[1:] != index[:-1]], axis=0)
    values = tf.where(first & tf.gather(alone, index), JOINER, tf.gather(token, index))
    return tf.RaggedTensor.from_value_rowids(
        values, tf.cast(tf.gather(row, index), tf.int64), nrows=pieces.nrows(), validate=False
    )


def detokenize(tokens: "tf.RaggedTensor") -> "tf.Tensor":
    """Joins tokens into texts: the inverse of `tokenize`, in a TensorFlow graph.

    Args:
        tokens: ragged string tensor `[batch, (tokens)]`.

    Returns:
        String tensor `[batch]`.
    """
    import tensorflow as tf

    joined = tf.strings.reduce_join(tokens, axis=-1, separator=" ")
    return white_space.to_texts_in_graph(tf.strings.regex_replace(joined, f" ?{JOINER} ?", ""))


def _split_at_white_space(texts: "tf.Tensor") -> "tf.RaggedTensor":
    import tensorflow as tf

    return terms.split_in_graph(tf.strings.regex_replace(texts, CONTROL, " "))


@dataclasses.dataclass(frozen=True)
class Tokenizer:
    """How the texts of a recipe are cut and joined, in a graph and in Python.

    Attributes:
        kind: `text` (words, punctuation and protected tokens, marked with joiners), `whitespace`
            (the text is already tokenized) or `characters` (characters and protected tokens, white
            space forgotten).
        lowercase: whether texts are lowercased first, by Unicode's rules; protected tokens too.
        dialects: names of the dialects of placeholders, from `placeholders.DIALECTS`.
        own_patterns: further patterns of placeholders.
        terms: whether terms of a glossary are a class of their own, and no placeholders.
        rare_words: where words end, as in `data.rare_words`: one of `BY_RARE_WORDS`.
        nfc: whether texts are brought into Unicode's normal form C first, protected tokens and
            translations of terms aside.
    """

    kind: str = "text"
    lowercase: bool = False
    dialects: Sequence[str] = DEFAULT_PLACEHOLDERS
    own_patterns: Sequence[str] = ()
    terms: bool = False
    rare_words: str = "cut"
    nfc: bool = False

    def __post_init__(self) -> None:
        # JSON has lists.
        object.__setattr__(self, "dialects", tuple(self.dialects))
        object.__setattr__(self, "own_patterns", tuple(self.own_patterns))

    @classmethod
    def of(cls, data_config: "DataConfig", side: str = "target") -> "Tokenizer":
        """Returns the tokenizer that a recipe's data section asks for, on that side."""
        kind = data_config.source_tokenization if side == "source" else ""
        return cls(
            kind or data_config.tokenization,
            data_config.lowercase,
            data_config.placeholders,
            data_config.placeholder_patterns,
            data_config.term_share > 0,
            data_config.rare_words,
            data_config.unicode_form == "nfc",
        )

    @functools.cached_property
    def syntax(self) -> ProtectedSyntax:
        """What is protected."""
        term_class = TERM_CLASS if self.terms else PLACEHOLDER
        return syntax_of(tuple(self.dialects), tuple(self.own_patterns), term_class)

    @property
    def patterns(self) -> WordPatterns:
        """What is a word; of kind `text`."""
        return BY_RARE_WORDS[self.rare_words]

    # In a TensorFlow graph.

    def _normalized(self, texts: "tf.Tensor") -> "tf.Tensor":
        """Returns what `normalize` does, of string tensors."""
        return normalization.normalize_in_graph(texts, self.lowercase, self.nfc, self.syntax)

    def tokenize(self, texts: "tf.Tensor") -> "tf.RaggedTensor":
        """Returns the tokens of string `[batch]`, ragged string `[batch, (tokens)]`."""
        import tensorflow as tf

        # All traced functions share one graph: Transform alone traces its own eight times.
        return _cut_once(self)(texts) if tf.inside_function() else self._cut(texts)

    def _cut(self, texts: "tf.Tensor") -> "tf.RaggedTensor":
        texts = self._normalized(texts)
        if self.kind == "whitespace":
            return _split_at_white_space(texts)
        if self.kind == "characters":
            return character_cut.cut_in_graph(texts, self.syntax)
        return tokenize(texts, self.syntax, self.patterns)

    def chunks(self, texts: "tf.Tensor") -> "tf.RaggedTensor":
        """Returns what stands between white space and protected tokens, and these; likewise."""
        if self.kind != "text":
            return self.tokenize(texts)
        return tokenize(self._normalized(texts), self.syntax, chunks=True)

    def detokenize(self, tokens: "tf.RaggedTensor") -> "tf.Tensor":
        """Returns the texts of ragged tokens, string `[batch]`.

        It is the inverse of `tokenize`, case aside.
        """
        import tensorflow as tf

        if self.kind == "text":
            return detokenize(tokens)
        return tf.strings.reduce_join(
            tokens, axis=-1, separator=" " if self.kind == "whitespace" else ""
        )

    # In Python, of texts that `normalize` returned.

    def normalize(self, text: str) -> str:
        """Returns a text as the graph reads it: in the case and the form that the recipe asks
        for."""
        return normalization.normalize(text, self.lowercase, self.nfc, self.syntax)

    def pieces(self, text: str) -> Iterator[Piece]:
        """Yields the tokens of a text of kind `text`, and where they touch."""
        return _pieces(text, self.syntax, self.patterns)

    def count(self, text: str) -> int:
        """Returns how many tokens `tokenize` makes of a text, single joiners among them."""
        if self.kind != "text":
            return len(self.tokens(text))
        count, clean_before = 0, False
        for piece in self.pieces(text):
            count += 2 if piece.touches and piece.is_clean and clean_before else 1
            clean_before = piece.is_clean
        return count

    def tokens(self, text: str) -> list[str]:
        """Returns the tokens of a text, without joiners."""
        if self.kind == "whitespace":
            return _split(text)
        if self.kind == "characters":
            return [token for token, _ in character_cut.cut(text, self.syntax)]
        return [piece.token for piece in self.pieces(text)]

    def words(self, text: str) -> list[str]:
        """Returns the tokens that may be copied whole, without joiners.

        They are all tokens except for kind `text`.
        """
        if self.kind != "text":
            return self.tokens(text)
        return [piece.token for piece in self.pieces(text) if piece.is_clean]

    def protected_tokens(self, text: str) -> list[str]:
        """Returns the placeholders, tags, URLs and options among a text's tokens, in order."""
        if self.kind == "whitespace":
            return [token for token in _split(text) if self.syntax.is_protected(token)]
        if self.kind == "characters":
            return [token for token, kept in character_cut.cut(text, self.syntax) if kept]
        return [piece.token for piece in self.pieces(text) if piece.is_protected]

    def marked_tokens(self, text: str) -> list[tuple[str, bool]]:
        """Returns the tokens of a text, without joiners, and whether each is protected."""
        if self.kind == "whitespace":
            return [(token, self.syntax.is_protected(token)) for token in _split(text)]
        if self.kind == "characters":
            return list(character_cut.cut(text, self.syntax))
        return [(piece.token, piece.is_protected) for piece in self.pieces(text)]

    def placeholders(self, text: str) -> list[str]:
        """Returns the placeholders among a text's tokens, in order."""
        return [token for token in self.protected_tokens(text) if self.syntax.is_placeholder(token)]


@functools.cache
def _cut_once(tokenizer: Tokenizer) -> "TracedOnce[tf.RaggedTensor]":
    return TracedOnce(tokenizer._cut)
