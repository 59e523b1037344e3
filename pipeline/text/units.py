"""Tokens cut into smaller units: characters, or subwords of a unigram language model.

A character that the model does not know is cut into bytes.

A model of sentencepiece (Kudo 2018) cuts each word by itself. A unit that continues a word touches
what is before it, so it carries the joiner as punctuation does: `Zanzibar` may become `Zan ￭zi
￭bar`, and joining the units gives the text back. Placeholders, tags, URLs, options and white space
are never cut. A copied unit keeps its joiner, so a copied word is spelled as in the source.
"""

import os
from typing import TYPE_CHECKING, TypeAlias

import regex

from pipeline.recipes.settings import TextSettings
from pipeline.text import preset_tokenizers, tokenization
from pipeline.text.character_cut import BREAK
from pipeline.text.keeping_apart import keep_apart
from pipeline.text.placeholders.protected_syntax import writable_bytes
from pipeline.text.segmenting_tokenizer import SegmentingTokenizer as SegmentingTokenizer

if TYPE_CHECKING:
    import tensorflow as tf

# In the Subwords artifact, one per side.
MODEL_FILES = {"source": "source.model", "target": "target.model"}
_BYTES = [f"<0x{number:02X}>" for number in range(256)]
# A unit that continues the word before it: it touches it, and begins with a letter, a mark or a
# digit, or with a byte of one. Punctuation touches, too. The bytes C2, E2, EF and F0 begin mostly
# punctuation, symbols and emoji.
_CONTINUES = (
    f"{tokenization.JOINER}("
    r"[\p{L}\p{M}\p{N}_]"
    "|<0x(3[0-9]|[46][1-9A-F]|[57][0-9A]|5F|[89AB][0-9A-F]|C[0-13-9A-F]|D[0-9A-F]|E[013-9A-E])>"
    ")"
)
_LETTERS = f"{tokenization.JOINER}[\\p{{L}}\\p{{M}}]+"
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


def continues_word(tokens: "tf.Tensor") -> "tf.Tensor":
    """Returns which units continue the word of the unit before them; bool like `tokens`."""
    import tensorflow as tf

    return tf.strings.regex_full_match(tokens, f"{_CONTINUES}(?s:.*)")


def continues_with_letters(tokens: "tf.Tensor") -> "tf.Tensor":
    """Returns which units continue a word and have only letters and their marks."""
    import tensorflow as tf

    return tf.strings.regex_full_match(tokens, _LETTERS)


def continues(token: str) -> bool:
    """Whether a unit continues the word of the unit before it."""
    return bool(regex.match(_CONTINUES, token))


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
    if settings["units"] == "preset":
        return preset_tokenizers.make(tokenizer, read_model(folder, side))
    return SegmentingTokenizer(tokenizer, read_model(folder, side))


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
        before.encode() + writable_bytes([number]) + behind.encode()
        for before, behind in _MARKS
        for number in range(256)
    ]
    initializer = tf.lookup.KeyValueTensorInitializer(tf.constant(marked), tf.constant(raw))
    return tf.lookup.StaticHashTable(initializer, default_value="")


def detokenize(
    tokens: "tf.RaggedTensor",
    table: "tf.lookup.StaticHashTable",
    tokenizer: tokenization.Tokenizer | None = None,
    fixed: "tf.Tensor | None" = None,
) -> "tf.Tensor":
    """Returns the texts of ragged units, string `[batch]`; it needs no model.

    Invalid bytes, which a model may output, become U+FFFD; so do the marks of `writable_bytes`.

    Args:
        tokens: ragged string `[batch, (units)]`.
        table: what `byte_table` gives.
        tokenizer: cuts texts into words. With it, no units make a protected token where they touch;
            see `keeping_apart`.
        fixed: as for `keep_apart`.
    """
    import tensorflow as tf

    units = tokens.flat_values
    # Byte pairs may be several bytes, which are no whole character.
    parts = tf.strings.split(tf.strings.regex_replace(units, "><0x", f">{BREAK}<0x"), BREAK)
    raw = table.lookup(parts.flat_values)
    whole = tf.reduce_all(parts.with_flat_values(raw != ""), axis=1)
    in_bytes = tf.where(whole, tf.strings.reduce_join(parts.with_flat_values(raw), axis=1), "")
    if fixed is not None:
        in_bytes = tf.where(fixed, "", in_bytes)
    tokens = tokens.with_flat_values(tf.where(in_bytes == "", units, in_bytes))
    if tokenizer:
        tokens = keep_apart(tokens, tokenizer, fixed)
    texts = tokenization.detokenize(tokens)
    return tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="replace")
