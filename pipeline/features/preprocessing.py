"""Raw pairs to ids in the extended space: the graph that both training and serving run.

TextTransform runs `preprocessing_fn`. The served SavedModel contains the graph that was traced
then, so training and serving cannot drift apart. The features are listed in
`docs/explanation/tokens_and_ids.md`.
"""

import functools
import os
from collections.abc import Callable, Mapping, Sequence

import tensorflow as tf

from pipeline.features import feature_names, vocabulary_files
from pipeline.features.pair_preprocessor import PairPreprocessor
from pipeline.features.table import Table
from pipeline.readers import DataError
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

    tokenizers = {side: tokenizer_of(side) for side in vocabulary_files.SIDES}
    preprocessor = PairPreprocessor.of(custom_config, tokenizers, load)
    if custom_config.get("words"):
        # For the training, which draws other cuts, among the graph's assets.
        for side in vocabulary_files.SIDES:
            if units.cuts(custom_config, side):
                path = os.path.join(custom_config["subwords_uri"], units.MODEL_FILES[side])
                tft.make_and_track_object(functools.partial(_File, path), name=f"{side} model")
    columns = custom_config.get("source_features", [])
    source, target, *tags = (_text(inputs, name) for name in ("source", "target", *columns))
    is_training = None
    if custom_config.get("term_share"):
        # A served text is of no file.
        is_training = _text(inputs, "file") != ""
    features = preprocessor.features(source, target, dict(zip(columns, tags)), is_training)
    if custom_config.get("corpora"):
        files = _text(inputs, "file")
        features[feature_names.CORPUS] = corpus_numbers(files, custom_config["corpora"])
    return {name: ragged.to_sparse() for name, ragged in features.items()}


def _text(inputs: Mapping[str, tf.Tensor], name: str) -> tf.Tensor:
    """Returns the text `[batch]` of a feature.

    Raises:
        DataError: the schema says that examples have none, more than one, or a number.
    """
    text = inputs.get(name)
    if not isinstance(text, tf.Tensor) or text.dtype != tf.string:
        raise DataError(
            f"According to the schema, not every example has exactly one text '{name}': convert "
            "examples of other components with PairsFromExamples, and give SchemaGen "
            "infer_feature_shape=True."
        )
    return tf.reshape(text, [-1])


class _File(tf.Module):
    """A file that a graph keeps beside itself."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.asset = tf.saved_model.Asset(path)


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
