"""Raw pairs to ids in the extended space: the graph that both training and serving run.

`preprocessing_fn` is what TextTransform runs; the SavedModel that is served contains the very graph it traced, so
training and serving cannot drift apart. The features are listed in `docs/architecture.md`.
"""

import functools
import os

import tensorflow as tf

from pipeline import tokenization

SOURCE_VOCABULARY_FILE = "source_vocabulary.txt"
TARGET_VOCABULARY_FILE = "target_vocabulary.txt"
_TEXT = tokenization.Tokenizer()
FEATURES = (
    "source_tokens",
    "source_ids",
    "source_extended_ids",
    "source_feed_ids",
    "target_input_ids",
    "target_extended_ids",
)


def vocabulary_table(path):
    """Returns a lookup table from token to line number, -1 where the file lacks the token."""
    initializer = tf.lookup.TextFileInitializer(
        path, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER
    )
    return tf.lookup.StaticHashTable(initializer, default_value=-1)


def read_vocabulary(transform_output, name):
    """Returns the tokens of a vocabulary, in the order of their ids, from a Transform graph's own copy of the file.

    Args:
        transform_output: a `tft.TFTransformOutput`.
        name: `SOURCE_VOCABULARY_FILE` or `TARGET_VOCABULARY_FILE`.
    """
    with tf.io.gfile.GFile(os.path.join(transform_output.transform_savedmodel_dir, "assets", name)) as file:
        return file.read().splitlines()


def protected_class_ids(tokens):
    """Returns the class id of each protected token (`[PLACEHOLDER]`, …) and `[UNK]`'s id for all others."""
    ids = tf.fill(tf.shape(tokens), tf.constant(tokenization.UNK_ID, tf.int64))
    for name, pattern in reversed(tokenization.PROTECTED_PATTERNS):
        class_id = tf.constant(tokenization.SPECIAL_TOKENS.index(name), tf.int64)
        ids = tf.where(tf.strings.regex_full_match(tokens, pattern), class_id, ids)
    return ids


def is_protected(tokens):
    """Tells which tokens are placeholders, tags, URLs or options; bool like `tokens`."""
    return tf.not_equal(protected_class_ids(tokens), tokenization.UNK_ID)


def make_features(source, target, source_table, target_table, tokenizer=_TEXT):
    """Makes the id features of a batch of pairs.

    Args:
        source: string `[batch]`.
        target: string `[batch]`; empty when only the source is known, as in serving.
        source_table: lookup table of the source vocabulary, -1 for unknown tokens.
        target_table: the same for the target, of V entries.
        tokenizer: the recipe's `tokenization.Tokenizer`.

    Returns:
        Dict of ragged tensors `[batch, (length)]`, one for each name in `FEATURES`.
    """
    source_tokens = tokenizer.tokenize(source)
    target_tokens = tokenizer.tokenize(target)
    vocabulary_size = target_table.size()
    joiner_id = tf.constant(tokenization.SPECIAL_TOKENS.index(tokenization.JOINER), tf.int64)

    def ids_and_feed(tokens, table):
        known = table.lookup(tokens.flat_values)
        # A token that reads `[PAD]` is a word of the text (which only white space parts): it is unknown, hence copied.
        known = tf.where(known < joiner_id, tf.constant(-1, tf.int64), known)
        feed = tf.where(known >= 0, known, protected_class_ids(tokens.flat_values))
        return tokens.with_flat_values(known), tokens.with_flat_values(feed)

    _, source_ids = ids_and_feed(source_tokens, source_table)
    source_known, source_feed = ids_and_feed(source_tokens, target_table)
    target_known, target_feed = ids_and_feed(target_tokens, target_table)

    # A surface form's first position: tokens of all rows are numbered in one list, sources first, each form marked with its
    # row. That takes memory in proportion to the tokens; comparing every pair of positions would take it to the square.
    def forms(tokens):
        return tf.strings.join([tf.strings.as_string(tokens.value_rowids()), tokens.flat_values], separator=" ")

    number = tf.size(source_tokens.flat_values, out_type=tf.int64)
    unique, form = tf.unique(tf.concat([forms(source_tokens), forms(target_tokens)], axis=0))
    first = tf.math.unsorted_segment_min(tf.range(tf.size(form, out_type=tf.int64)), form, tf.size(unique))
    first = tf.gather(first, form)

    def copy_ids(tokens, first, absent):
        position = first - tf.gather(source_tokens.row_starts(), tokens.value_rowids())
        return tf.where(first < number, vocabulary_size + position, absent)

    source_extended = tf.where(
        source_known.flat_values >= 0,
        source_known.flat_values,
        copy_ids(source_tokens, first[:number], tf.constant(0, tf.int64)),
    )
    unknown = tf.constant(tokenization.UNK_ID, tf.int64)
    labels = tf.where(
        target_known.flat_values >= 0, target_known.flat_values, copy_ids(target_tokens, first[number:], unknown)
    )

    column = tf.ones([source_tokens.nrows(), 1], tf.int64)
    return {
        "source_tokens": source_tokens,
        "source_ids": source_ids,
        "source_extended_ids": source_tokens.with_flat_values(source_extended),
        "source_feed_ids": source_feed,
        "target_input_ids": tf.concat([column * tokenization.START_ID, target_feed], axis=1),
        "target_extended_ids": tf.concat(
            [target_tokens.with_flat_values(labels), column * tokenization.END_ID], axis=1
        ),
    }


def preprocessing_fn(inputs, custom_config):
    """TFX Transform's entry: raw features `source` and `target` to the features of `make_features`.

    Args:
        inputs: dict of string tensors `[batch, 1]`.
        custom_config: `vocabulary_uri`, the folder that the Vocabulary component wrote, and what `configs.text_settings`
            gives of the recipe.

    Returns:
        Dict of sparse tensors, which tf.Example stores as lists of any length.
    """
    import tensorflow_transform as tft

    uri = custom_config["vocabulary_uri"]
    tables = [
        tft.make_and_track_object(functools.partial(vocabulary_table, os.path.join(uri, name)), name=name)
        for name in (SOURCE_VOCABULARY_FILE, TARGET_VOCABULARY_FILE)
    ]
    source, target = (tf.reshape(inputs[name], [-1]) for name in ("source", "target"))
    tokenizer = tokenization.Tokenizer(**custom_config["tokenizer"])
    features = make_features(source, target, *tables, tokenizer=tokenizer)
    return {name: ragged.to_sparse() for name, ragged in features.items()}
