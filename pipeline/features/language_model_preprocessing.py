"""Plain text to ids: the graph that training, evaluation and serving of a language model run.

A text is a stream: its words are separated by white space, and each line feed is the token `[END]`,
the end of a sentence. Nothing is added at its beginning or end.
"""

import functools
import os

import tensorflow as tf

from pipeline.features.lookup_tables import vocabulary_table
from pipeline.features.table import Table
from pipeline.features.vocabulary_files import TARGET_VOCABULARY_FILE
from pipeline.recipes.settings import TransformConfig
from pipeline.text import tokenization

VOCABULARY_FILE = TARGET_VOCABULARY_FILE
FEATURES = ("tokens", "ids", "extended_ids")


def tokenize(texts: tf.Tensor, tokenizer: tokenization.Tokenizer) -> tf.RaggedTensor:
    """Returns the tokens of texts, line by line, with `[END]` for each line feed.

    Args:
        texts: string `[batch]`.
        tokenizer: cuts a line.

    Returns:
        Ragged `[batch, (tokens)]`.
    """
    lines = tf.strings.split(texts, "\n")
    tokens = tokenizer.tokenize(lines.flat_values)
    # The last line of a text has no line feed.
    last = tf.scatter_nd(
        tf.expand_dims(lines.row_limits() - 1, 1),
        tf.ones_like(lines.row_limits()),
        [tf.size(lines.flat_values, tf.int64)],
    )
    ends = tf.RaggedTensor.from_row_lengths(
        tf.fill([tf.reduce_sum(1 - last)], tokenization.END), tf.cast(1 - last, tf.int64)
    )
    return lines.with_flat_values(tf.concat([tokens, ends], axis=1)).merge_dims(1, 2)


def detokenize(tokens: tf.RaggedTensor) -> tf.Tensor:
    """Returns the texts of tokens: words separated by blanks, a line feed for each `[END]`."""
    words = tf.where(tokens.flat_values == tokenization.END, "\n", tokens.flat_values)
    joined = tf.strings.reduce_join(tokens.with_flat_values(words), axis=-1, separator=" ")
    return tf.strings.regex_replace(joined, " ?\n ?", "\n")


def make_features(
    texts: tf.Tensor, table: Table, tokenizer: tokenization.Tokenizer, unknown_word: str
) -> dict[str, tf.RaggedTensor]:
    """Makes the id features of a batch of texts.

    Args:
        texts: string `[batch]`.
        table: lookup table of the vocabulary, of V entries, -1 for unknown words.
        tokenizer: the recipe's.
        unknown_word: the text's own word for unknown words; `[UNK]` if the vocabulary lacks it.

    Returns:
        Dict of ragged `[batch, (tokens)]`: `tokens`; int64 `ids`, below V; int64 `extended_ids`, V
        + first position for words that have no id.
    """
    tokens = tokenize(texts, tokenizer)
    words = tokens.flat_values
    # The joiner may be a word.
    first_word = tf.constant(len(tokenization.SPECIAL_TOKENS) - 1, tf.int64)
    known = table.lookup(words)
    # A word that reads `[PAD]` is an unknown word of the text; but `[END]` means a line feed, which
    # no word contains.
    known = tf.where(known < first_word, tf.constant(-1, tf.int64), known)
    known = tf.where(words == tokenization.END, tf.constant(tokenization.END_ID, tf.int64), known)
    unknown = table.lookup(tf.constant(unknown_word))
    unknown = tf.where(unknown < first_word, tf.constant(tokenization.UNK_ID, tf.int64), unknown)

    rows = tokens.value_rowids()
    unique, form = tf.unique(tf.strings.join([tf.strings.as_string(rows), words], separator=" "))
    first = tf.math.unsorted_segment_min(
        tf.range(tf.size(form, out_type=tf.int64)), form, tf.size(unique)
    )
    position = tf.gather(first, form) - tf.gather(tokens.row_starts(), rows)
    return {
        "tokens": tokens,
        "ids": tokens.with_flat_values(tf.where(known >= 0, known, unknown)),
        "extended_ids": tokens.with_flat_values(
            tf.where(known >= 0, known, table.size() + position)
        ),
    }


def preprocessing_fn(
    inputs: dict[str, tf.Tensor], custom_config: TransformConfig
) -> dict[str, tf.Tensor | tf.SparseTensor]:
    """TFX Transform's entry: raw `text`, `context` and `order` to id features.

    Args:
        inputs: dict of tensors `[batch, 1]`.
        custom_config: the recipe's settings, and the folder of the vocabulary.

    Returns:
        The features of `make_features` as sparse tensors, and the two numbers, int64 `[batch, 1]`.
    """
    import tensorflow_transform as tft

    path = os.path.join(custom_config["vocabulary_uri"], VOCABULARY_FILE)
    table = tft.make_and_track_object(
        functools.partial(vocabulary_table, path), name=VOCABULARY_FILE
    )
    tokenizer = tokenization.Tokenizer(**custom_config["tokenizer"])
    features = make_features(
        tf.reshape(inputs["text"], [-1]), table, tokenizer, custom_config["unknown_word"]
    )
    # Identities, because Transform refuses an input among its outputs.
    numbers = {name: tf.identity(inputs[name]) for name in ("context", "order")}
    return {**{name: ragged.to_sparse() for name, ragged in features.items()}, **numbers}
