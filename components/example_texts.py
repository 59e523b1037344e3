"""The texts of serialized examples."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pipeline.readers import DataError

if TYPE_CHECKING:
    import tensorflow as tf


def parse_texts(serialized: Sequence[bytes], names: Iterable[str]) -> "dict[str, tf.Tensor]":
    """Returns the texts of a batch of tf.Examples, a string tensor `[batch]` for each feature.

    Raises:
        DataError: an example lacks one of them, or it is no text.
    """
    import tensorflow as tf

    features = {name: tf.io.FixedLenFeature([], tf.string) for name in names}
    try:
        parsed: dict[str, tf.Tensor] = tf.io.parse_example(tf.constant(serialized), features)
    except tf.errors.InvalidArgumentError as error:
        raise DataError(
            f"Each example must have one text in {' and '.join(features)} "
            f"({error.message.rpartition('}} ')[2]}): PairsFromExamples makes such examples of "
            "those of other components."
        ) from None
    return parsed
