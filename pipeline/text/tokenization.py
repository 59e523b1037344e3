"""Text to tokens and back, in a TensorFlow graph and, with the same patterns, in Python.

A text is cut into protected tokens (placeholders, tags, URLs, options: never cut further), words,
and single characters of punctuation. Where two tokens touch, a joiner marks it: on the punctuation,
or as a token of its own between two tokens that must stay clean because they may be copied:

    "Hello, %(name)s!"  ->  Hello ￭, %(name)s ￭!
    "%s%s"              ->  %s ￭ %s

Joining the tokens gives the text back, up to runs of white space. Two characters cannot be kept: a
joiner that stands in the text itself is read as `■`, which Unicode calls its equivalent, and NUL,
at which tf.text would end the text, as white space.

A text that is already tokenized is cut at white space alone and joined with one space, without
joiners (kind `whitespace`). Kind `characters` cuts into characters and drops the white space
between them, so that a model which must find words (`model.encoder = "segmenting"`) is not told
where they are. A recipe chooses one of the three kinds, as a `Tokenizer`; the functions are those
of the first.
"""

import dataclasses
import functools
from typing import TYPE_CHECKING

import regex

if TYPE_CHECKING:
    import tensorflow as tf

    from pipeline.recipes.sections import DataConfig

JOINER = "￭"
# What a joiner in the text becomes; as long in UTF-8.
JOINER_IN_TEXT = "■"

# Ids 0 to 3 are fixed by the design; the classes of protected tokens follow, then the joiner.
PAD, UNK, START, END = "[PAD]", "[UNK]", "[START]", "[END]"
PLACEHOLDER, TAG, URL, OPTION = "[PLACEHOLDER]", "[TAG]", "[URL]", "[OPTION]"
SPECIAL_TOKENS = (PAD, UNK, START, END, PLACEHOLDER, TAG, URL, OPTION, JOINER)
PAD_ID, UNK_ID, START_ID, END_ID = 0, 1, 2, 3

# White space as Python knows it, spelt out because `\s` is ASCII in RE2 and Unicode in `regex`. For
# use in brackets.
_SPACE = r"\t-\r\x1c-\x1f\x85\p{Z}"
# Quotation marks of all languages and the punctuation of Chinese and Japanese end a URL.
_NOT_IN_URL = rf"{_SPACE}<>\"'(){{}}%$#\p{{Pi}}\p{{Pf}}。、，！？；：「」『』（）【】…"
_ESCAPED_BYTE = "%[0-9A-Fa-f]{2}"

# One list for the graph (RE2) and for the metrics (`regex`): only syntax that both understand the
# same way. The order matters: the first pattern that matches at a position wins.
PROTECTED_PATTERNS = (
    (TAG, r"</?[A-Za-z][^<>]*>|&[A-Za-z]+;|&#[0-9]+;"),
    (
        URL,
        # `%`, `$` and `#` may begin a placeholder, at which a URL ends: `https://host/%(name)s`.
        rf"[A-Za-z][A-Za-z0-9+.\-]*://(?:[$#]*[^{_NOT_IN_URL}]|{_ESCAPED_BYTE})*"
        rf"(?:[$#]*[^{_NOT_IN_URL}.,;:!?]|{_ESCAPED_BYTE})"
        r"|[A-Za-z0-9_.+\-]+@[A-Za-z0-9\-]+(?:\.[A-Za-z0-9\-]+)+",
    ),
    (
        PLACEHOLDER,
        rf"\{{\{{[^{{}}]*\}}\}}|\{{%[^{{}}]*%\}}|[$#]?\{{[A-Za-z0-9_][^{{}}{_SPACE}]*\}}|\{{\}}"
        r"|%\([A-Za-z0-9_.\- ]+\)[#0\-+]*[0-9]*(?:\.[0-9]+)?[diouxXeEfFgGcrsa]"
        r"|%[0-9]+\$[diouxXeEfFgGcsa@]|%[0-9]*(?:\.[0-9]+)?[diuxXfgcrsa@]|%%|\$[A-Z_]{2,}",
    ),
    (OPTION, r"--[A-Za-z][A-Za-z0-9_\-]*"),
)

_NBSP = "[\u00a0\u202f]"
_WHITE_SPACE = f"[{_SPACE}]+"
# Words keep inner hyphens, dots, slashes, @ and colons, so that identifiers such as
# `plone.app.multilingual` or `fr-CA` are one token to copy.
_WORD = r"[\p{L}\p{N}_][\p{L}\p{M}\p{N}_]*(?:[.\-_/@:][\p{L}\p{N}_][\p{L}\p{M}\p{N}_]*)*"
# Elided French (and Italian) words: `d'utilisateur` is `d'￭ utilisateur`.
_ELISION = r"(?i:(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu|quoiqu)['’])"
# French high punctuation keeps its no-break space, so that typography survives the round trip.
_PUNCTUATION = rf"«{_NBSP}|{_NBSP}[»:;!?%]|[^{_SPACE}]"

_PROTECTED = "|".join(pattern for _, pattern in PROTECTED_PATTERNS)
# Tokens that may be copied, so never carry a joiner.
_CLEAN = f"{_PROTECTED}|{_WORD}"
_TOKEN = f"{_PROTECTED}|{_ELISION}|{_WORD}|{_PUNCTUATION}"

# A character as a reader takes it: a letter with the marks that belong to it, whatever the script
# (a grapheme cluster, as far as Unicode's categories tell: marks follow their base, and what a
# zero-width joiner joins is one).
CHARACTER = r"\P{M}(?:\p{M}|\x{200D}\P{M})*|\p{M}+"
# White space, which no token holds.
_BREAK = "\x1f"


@functools.cache
def _compiled(pattern: str) -> "regex.Pattern[str]":
    return regex.compile(pattern)


def _cut(text: str) -> list[str]:
    tokens: list[str] = _compiled(_TOKEN).findall(
        text.replace(JOINER, JOINER_IN_TEXT).replace("\0", " ")
    )
    return tokens


def count_tokens(text: str) -> int:
    """Returns how many tokens `tokenize` makes of a text, single joiners among them."""
    text = text.replace(JOINER, JOINER_IN_TEXT).replace("\0", " ")
    clean = _compiled(_CLEAN)
    count, end, clean_before = 0, -1, False
    for match in _compiled(_TOKEN).finditer(text):
        is_clean = clean.fullmatch(match.group()) is not None
        count += 2 if match.start() == end and is_clean and clean_before else 1
        end, clean_before = match.end(), is_clean
    return count


def _split(text: str) -> list[str]:
    """Python's counterpart of `_split_at_white_space`."""
    return text.replace("\0", " ").split()


def words(text: str) -> list[str]:
    """Returns what `tokenize` makes of a text, without punctuation and joiners."""
    clean = _compiled(_CLEAN)
    return [token for token in _cut(text) if clean.fullmatch(token)]


def protected_tokens(text: str) -> list[str]:
    """Returns the placeholders, tags, URLs and options of a text in order."""
    protected = _compiled(_PROTECTED)
    return [token for token in _cut(text) if protected.fullmatch(token)]


def protected_pattern() -> str:
    """Returns the pattern of all protected tokens, valid for RE2 and for `regex`."""
    return _PROTECTED


def is_protected(token: str) -> bool:
    """Whether a token is a placeholder, tag, URL or option."""
    return _compiled(_PROTECTED).fullmatch(token) is not None


def placeholders(text: str) -> list[str]:
    """Returns the placeholders of a text in order: `%(name)s`, `%s`, `{0}`, `{{ x }}`, `${x}`, …"""
    return Tokenizer().placeholders(text)


def tokenize(texts: "tf.Tensor") -> "tf.RaggedTensor":
    """Cuts texts into tokens, in a TensorFlow graph.

    Args:
        texts: string tensor `[batch]`.

    Returns:
        Ragged string tensor `[batch, (tokens)]`; touching tokens carry the joiner.
    """
    import tensorflow as tf
    import tensorflow_text as tf_text

    pieces, begins, ends = tf_text.regex_split_with_offsets(
        tf.strings.regex_replace(
            tf.strings.regex_replace(texts, JOINER, JOINER_IN_TEXT), r"\x00", " "
        ),
        delim_regex_pattern=f"{_TOKEN}|{_WHITE_SPACE}",
        keep_delim_regex_pattern=_TOKEN,
    )
    token = pieces.flat_values
    begin, end = begins.flat_values, ends.flat_values
    count = tf.shape(token)[0]
    row = tf.cast(pieces.value_rowids(), tf.int32)
    same_row = row[1:] == row[:-1]
    touches = tf.concat(
        [tf.zeros([tf.minimum(count, 1)], tf.bool), same_row & (begin[1:] == end[:-1])], axis=0
    )
    clean = tf.strings.regex_full_match(token, _CLEAN)
    clean_before = tf.concat([tf.zeros([tf.minimum(count, 1)], tf.bool), clean[:-1]], axis=0)
    prefix = touches & ~clean
    suffix_before = touches & clean & ~clean_before
    suffix = tf.concat([suffix_before[1:], tf.zeros([tf.minimum(count, 1)], tf.bool)], axis=0)
    marked = tf.where(prefix, JOINER + token, token)
    marked = tf.where(suffix, marked + JOINER, marked)
    # Between two clean tokens the joiner is a token: repeat the position, then write the joiner
    # over the first.
    alone = touches & clean & clean_before
    repeats = 1 + tf.cast(alone, tf.int32)
    index = tf.repeat(tf.range(count), repeats)
    first = tf.concat([tf.ones([tf.minimum(count, 1)], tf.bool), index[1:] != index[:-1]], axis=0)
    values = tf.where(first & tf.gather(alone, index), JOINER, tf.gather(marked, index))
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
    return tf.strings.regex_replace(joined, f" ?{JOINER} ?", "")


def split_characters(text: str) -> list[str]:
    """Returns the characters of a text."""
    characters: list[str] = _compiled(CHARACTER.replace(r"\x{200D}", "\u200d")).findall(text)
    return characters


def _split_into_characters(texts: "tf.Tensor") -> "tf.RaggedTensor":
    """Protected tokens and characters of string `[batch]`, without white space."""
    import tensorflow as tf

    packed = tf.strings.regex_replace(texts, rf"{_WHITE_SPACE}|\x00", " ")
    # White space separates protected tokens; behind them it is dropped.
    marked = tf.strings.regex_replace(packed, f"({_PROTECTED}|{CHARACTER})", rf"\1{_BREAK}")
    pieces = tf.strings.split(marked, _BREAK)
    return tf.ragged.boolean_mask(pieces, (pieces != " ") & (pieces != ""))


def _cut_into_characters(text: str) -> list[str]:
    """Python's counterpart of `_split_into_characters`."""
    pattern = f"{_PROTECTED}|{CHARACTER}".replace(r"\x{200D}", "\u200d")
    return [piece for piece in _compiled(pattern).findall(" ".join(_split(text))) if piece != " "]


def _split_at_white_space(texts: "tf.Tensor") -> "tf.RaggedTensor":
    import tensorflow as tf

    # tf.strings.split knows the white space of ASCII alone.
    return tf.strings.split(tf.strings.regex_replace(texts, rf"{_WHITE_SPACE}|\x00", " "))


@dataclasses.dataclass(frozen=True)
class Tokenizer:
    """How the texts of a recipe are cut and joined, in a graph and in Python.

    Attributes:
        kind: `text` (words, punctuation and protected tokens, marked with joiners), `whitespace`
            (the text is already tokenized) or `characters` (characters and protected tokens, white
            space forgotten).
        lowercase: whether texts are lower-cased first, by Unicode's rules; protected tokens too.
    """

    kind: str = "text"
    lowercase: bool = False

    @classmethod
    def of(cls, data_config: "DataConfig", side: str = "target") -> "Tokenizer":
        """Returns the tokenizer that a recipe's data section asks for, on that side."""
        kind = data_config.source_tokenization if side == "source" else ""
        return cls(kind or data_config.tokenization, data_config.lowercase)

    # In a TensorFlow graph.

    def tokenize(self, texts: "tf.Tensor") -> "tf.RaggedTensor":
        """Returns the tokens of string `[batch]`, ragged string `[batch, (tokens)]`."""
        import tensorflow as tf

        if self.lowercase:
            # ASCII first: by Unicode alone, a machine whose language is Turkish would make another
            # letter of `I`.
            texts = tf.strings.lower(tf.strings.lower(texts), encoding="utf-8")
        cut = {
            "text": tokenize,
            "whitespace": _split_at_white_space,
            "characters": _split_into_characters,
        }
        return cut[self.kind](texts)

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

    # In Python, of texts in their final case (`normalize`).

    def normalize(self, text: str) -> str:
        """Returns a text as the graph reads it: in lower case where that is asked for."""
        return text.lower() if self.lowercase else text

    def count(self, text: str) -> int:
        """Returns how many tokens `tokenize` makes of a text."""
        return count_tokens(text) if self.kind == "text" else len(self.tokens(text))

    def tokens(self, text: str) -> list[str]:
        """Returns the tokens of a text, without joiners."""
        cut = {"text": _cut, "whitespace": _split, "characters": _cut_into_characters}
        return cut[self.kind](text)

    def words(self, text: str) -> list[str]:
        """Returns the tokens that may be copied whole, without joiners.

        They are all tokens except for kind `text`.
        """
        return words(text) if self.kind == "text" else self.tokens(text)

    def protected_tokens(self, text: str) -> list[str]:
        """Returns the placeholders, tags, URLs and options among a text's tokens, in order."""
        if self.kind == "text":
            return protected_tokens(text)
        protected = _compiled(_PROTECTED)
        return [token for token in self.tokens(text) if protected.fullmatch(token)]

    def placeholders(self, text: str) -> list[str]:
        """Returns the placeholders among a text's tokens, in order."""
        placeholder = _compiled(dict(PROTECTED_PATTERNS)[PLACEHOLDER])
        return [token for token in self.protected_tokens(text) if placeholder.fullmatch(token)]
