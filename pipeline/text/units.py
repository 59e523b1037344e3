"""Tokens cut into smaller units: characters, or subwords of a unigram language model.

A character that the model does not know is cut into bytes.

A model of sentencepiece (Kudo 2018) cuts each word by itself. A unit that continues a word touches
what is before it, so it carries the joiner as punctuation does: `Zanzibar` may become `Zan ￭zi
￭bar`, and joining the units gives the text back. Placeholders, tags, URLs, options and white space
are never cut. A copied unit keeps its joiner, so a copied word is spelled as in the source.
"""

import hashlib
import os
from typing import TYPE_CHECKING, TypeAlias

import regex

from pipeline.recipes.settings import TextSettings
from pipeline.text import tokenization, white_space
from pipeline.text.keeping_apart import keep_apart

if TYPE_CHECKING:
    import tensorflow as tf

# In the Subwords artifact, one per side.
MODEL_FILES = {"source": "source.model", "target": "target.model"}
_BYTES = [f"<0x{number:02X}>" for number in range(256)]
# A token may touch its neighbours on both sides.
_MARKS = [
    (before, behind) for before in ("", tokenization.JOINER) for behind in ("", tokenization.JOINER)
]


def model_type(units: str) -> str:
    """Returns sentencepiece's name for a recipe's units."""
    return {"characters": "char", "subwords": "unigram"}[units]


def split_marks(token: str) -> tuple[str, str, str]:
    """Returns (joiner before or "", the bare token, joiner behind or "").

    A lone joiner is a bare token.
    """
    joiner = tokenization.JOINER
    if token == joiner:
        return "", token, ""
    before = joiner if token.startswith(joiner) else ""
    behind = joiner if token.endswith(joiner) else ""
    return before, token[len(before) : len(token) - len(behind)], behind


def read_model(folder: str, side: str) -> bytes:
    """Returns the model of a side, as bytes."""
    from tfx.dsl.io import fileio

    with fileio.open(os.path.join(folder, MODEL_FILES[side]), "rb") as file:
        model: bytes = file.read()
    return model


def possible_units(model: bytes, touching: bool = True) -> list[str]:
    """Returns all units of words: every piece, at a word's beginning and after it.

    A byte may also touch the next token, and so may a piece that ends like punctuation.

    Args:
        model: the bytes of a sentencepiece model.
        touching: whether punctuation is cut off words, which it then touches: not in texts that are
            already tokenized.
    """
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    joiner = tokenization.JOINER
    pieces = [processor.id_to_piece(number) for number in range(processor.get_piece_size())]
    pieces = [piece for number, piece in enumerate(pieces) if not processor.is_unknown(number)]
    bare = [piece for piece in pieces if not regex.fullmatch("<0x[0-9A-F]{2}>", piece)]
    ends = [piece for piece in bare if touching and regex.search(r"[^\p{L}\p{N}_]$", piece)]
    return [
        *(before + piece for before in ("", joiner) for piece in bare),
        *(before + piece + joiner for before in ("", joiner) for piece in ends),
        *(before + name + behind for before, behind in _MARKS for name in _BYTES),
    ]


def word_tokenizer(settings: TextSettings, side: str) -> tokenization.Tokenizer:
    """Returns the tokenizer that cuts a side's texts into words."""
    own = settings.get("source_tokenizer") if side == "source" else None
    return tokenization.Tokenizer(**(own or settings["tokenizer"]))


def cuts(settings: TextSettings, side: str) -> bool:
    """Whether a side's words are cut into units."""
    return bool(settings.get("units")) and not (
        side == "source" and settings.get("source_units") == "words"
    )


def tokenizer_of(settings: TextSettings, folder: str | None, side: str) -> "GraphTokenizer":
    """Returns the tokenizer of a side's texts: a `SegmentingTokenizer`, or the side's own
    tokenizer.

    Args:
        settings: those of the recipe's texts.
        folder: the Subwords artifact; None if the units are words.
        side: `"source"` or `"target"`.
    """
    tokenizer = word_tokenizer(settings, side)
    if not cuts(settings, side):
        return tokenizer
    if folder is None:
        raise ValueError("Units other than words need the folder of the Subwords artifact.")
    return SegmentingTokenizer(tokenizer, read_model(folder, side))


class SegmentingTokenizer:
    """A `tokenization.Tokenizer` whose words are cut into units, in a TensorFlow graph.

    Args:
        tokenizer: cuts texts into words.
        model: the bytes of a sentencepiece model.

    Attributes:
        syntax: what is protected, hence never cut.
    """

    def __init__(self, tokenizer: tokenization.Tokenizer, model: bytes) -> None:
        import tensorflow_text as tf_text

        self._tokenizer = tokenizer
        self.syntax = tokenizer.syntax
        # Once a graph is saved and loaded, the model is found by the name of its node among all
        # loaded graphs of a process. Without a name of its own, the model that was loaded first
        # would be used by all of them.
        name = f"sentencepiece_{hashlib.sha256(model).hexdigest()[:32]}"
        self._pieces = tf_text.SentencepieceTokenizer(model=model, out_type="string", name=name)

    def words(self, texts: "tf.Tensor") -> "tf.RaggedTensor":
        """Returns the tokens of string `[batch]` before they are cut, ragged string."""
        import tensorflow as tf

        if self._tokenizer.kind != "text":
            # A joiner of the text itself; kind `text` replaces it itself.
            texts = tf.strings.regex_replace(
                texts, tokenization.JOINER, tokenization.JOINER_IN_TEXT
            )
        return self._tokenizer.tokenize(texts)

    def tokenize(self, texts: "tf.Tensor") -> "tf.RaggedTensor":
        """Returns the units of string `[batch]`, ragged string `[batch, (units)]`."""
        import tensorflow as tf

        tokens = self.words(texts)
        units = self._cut(tokens.flat_values)
        splits = tf.gather(units.row_splits, tokens.row_splits)
        return tf.RaggedTensor.from_row_splits(units.flat_values, splits, validate=False)

    def _cut(self, tokens: "tf.Tensor") -> "tf.RaggedTensor":
        """string `[tokens]` to ragged string `[tokens, (units)]`."""
        import tensorflow as tf

        joiner = tokenization.JOINER
        alone = tf.equal(tokens, joiner)
        before = tf.strings.regex_full_match(tokens, f"{joiner}(?s:.*)") & ~alone
        behind = tf.strings.regex_full_match(tokens, f"(?s:.*){joiner}") & ~alone
        bare = tf.strings.regex_replace(tokens, f"^{joiner}|{joiner}$", "")
        protected = tf.strings.regex_full_match(tokens, self.syntax.pattern)
        protected |= white_space.is_white_space_in_graph(tokens)
        pieces = self._pieces.tokenize(tf.where(protected | alone, "", bare))
        # A token that sentencepiece cuts into nothing stays as it is.
        whole = pieces.row_lengths() == 0
        unchanged = tf.RaggedTensor.from_row_lengths(
            tf.boolean_mask(tf.where(alone | protected, tokens, bare), whole),
            tf.cast(whole, tf.int64),
            validate=False,
        )
        units = tf.concat([unchanged, pieces], axis=1)
        rows = units.value_rowids()
        places = tf.range(tf.size(rows, tf.int64))
        first = places == tf.gather(units.row_starts(), rows)
        last = places == tf.gather(units.row_limits(), rows) - 1
        flat = units.flat_values
        flat = tf.where(~first | tf.gather(before, rows), joiner + flat, flat)
        flat = tf.where(last & tf.gather(behind, rows), flat + joiner, flat)
        return units.with_flat_values(flat)


#: A tokenizer in a TensorFlow graph.
GraphTokenizer: TypeAlias = tokenization.Tokenizer | SegmentingTokenizer


def words_of(tokenizer: GraphTokenizer, texts: "tf.Tensor") -> "tf.RaggedTensor":
    """Returns the tokens of texts before any of them is cut into units."""
    if isinstance(tokenizer, SegmentingTokenizer):
        return tokenizer.words(texts)
    return tokenizer.tokenize(texts)


def byte_table() -> "tf.lookup.StaticHashTable":
    """Returns the lookup table from units such as `<0xE3>`, with their joiners, to the byte.

    Other units give "". An exported function that joins units must keep the table, as SavedModels
    demand.
    """
    import tensorflow as tf

    marked = [before + name + behind for before, behind in _MARKS for name in _BYTES]
    raw = [
        before.encode() + bytes([number]) + behind.encode()
        for before, behind in _MARKS
        for number in range(256)
    ]
    initializer = tf.lookup.KeyValueTensorInitializer(tf.constant(marked), tf.constant(raw))
    return tf.lookup.StaticHashTable(initializer, default_value="")


def detokenize(
    tokens: "tf.RaggedTensor",
    table: "tf.lookup.StaticHashTable",
    tokenizer: tokenization.Tokenizer | None = None,
) -> "tf.Tensor":
    """Returns the texts of ragged units, string `[batch]`; it needs no model.

    Invalid bytes, which a model may output, become U+FFFD.

    Args:
        tokens: ragged string `[batch, (units)]`.
        table: what `byte_table` gives.
        tokenizer: cuts texts into words. With it, no units make a protected token where they touch;
            see `keeping_apart`.
    """
    import tensorflow as tf

    units = tokens.flat_values
    in_bytes = table.lookup(units)
    tokens = tokens.with_flat_values(tf.where(in_bytes == "", units, in_bytes))
    texts = tokenization.detokenize(keep_apart(tokens, tokenizer) if tokenizer else tokens)
    return tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="replace")
