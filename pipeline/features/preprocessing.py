"""Raw pairs to ids in the extended space: the graph that both training and serving run.

TextTransform runs `preprocessing_fn`. The served SavedModel contains the graph that was traced
then, so training and serving cannot drift apart. The features are listed in
`docs/explanation/tokens_and_ids.md`.
"""

import functools
import os
from collections.abc import Callable, Sequence

import tensorflow as tf

from pipeline.features import feature_names
from pipeline.features.lookup_tables import load_tables, vocabulary_table
from pipeline.features.pair_preprocessor import PairPreprocessor
from pipeline.features.table import Table
from pipeline.features.vocabulary_files import SOURCE_VOCABULARY_FILE, TARGET_VOCABULARY_FILE
from pipeline.recipes import corpora
from pipeline.recipes.settings import TransformConfig
from pipeline.text import units


def preprocessing_fn(
    inputs: dict[str, tf.Tensor], custom_config: TransformConfig
) -> dict[str, tf.SparseTensor]:
    """TFX Transform's entry: raw features `source`, `target` and columns of tags to id features.

    Args:
        inputs: dict of string tensors `[batch, 1]`.
        custom_config: the recipe's settings, and the folders of artifacts.

    Returns:
        Dict of sparse tensors, which tf.Example stores as lists of any length: those of
        `PairPreprocessor`.
    """
    import tensorflow_transform as tft

    def load(path: str, make: Callable[[str], Table]) -> Table:
        table: Table = tft.make_and_track_object(
            functools.partial(make, path), name=os.path.basename(path)
        )
        return table

    def tokenizer_of(side: str) -> units.GraphTokenizer:
        make = functools.partial(
            units.tokenizer_of, custom_config, custom_config.get("subwords_uri"), side
        )
        if not units.cuts(custom_config, side):
            return make()
        tokenizer: units.GraphTokenizer = tft.make_and_track_object(make, name=f"{side} units")
        return tokenizer

    folder = custom_config["vocabulary_uri"]
    preprocessor = PairPreprocessor(
        source_table=load(os.path.join(folder, SOURCE_VOCABULARY_FILE), vocabulary_table),
        target_table=load(os.path.join(folder, TARGET_VOCABULARY_FILE), vocabulary_table),
        tokenizer=tokenizer_of("source"),
        target_tokenizer=tokenizer_of("target"),
        settings=custom_config,
        tables=load_tables(folder, custom_config, load),
    )
    columns = custom_config.get("source_features", [])
    source, target, *tags = (
        tf.reshape(inputs[name], [-1]) for name in ("source", "target", *columns)
    )
    is_training = None
    if custom_config.get("term_share"):
        # A served text is of no file.
        is_training = tf.reshape(inputs["file"], [-1]) != ""
    features = preprocessor.features(source, target, dict(zip(columns, tags)), is_training)
    if custom_config.get("corpora"):
        files = tf.reshape(inputs["file"], [-1])
        features[feature_names.CORPUS] = corpus_numbers(files, custom_config["corpora"])
    return {name: ragged.to_sparse() for name, ragged in features.items()}


def corpus_numbers(files: tf.Tensor, patterns: Sequence[str]) -> tf.RaggedTensor:
    """Returns the number of the first corpus that each file belongs to, -1 for none.

    Args:
        files: string `[batch]`, the names of files.
        patterns: those of `data.corpora`.

    Returns:
        int64 `[batch, 1]`.
    """
    numbers = tf.fill(tf.shape(files), tf.constant(-1, tf.int64))
    for number, pattern in reversed(list(enumerate(patterns))):
        matches = tf.strings.regex_full_match(files, corpora.expression_of(pattern))
        numbers = tf.where(matches, tf.constant(number, tf.int64), numbers)
    return tf.RaggedTensor.from_tensor(numbers[:, tf.newaxis])
