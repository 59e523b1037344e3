"""Counts of the words in training, a file beside an exported model.

With it metrics of rare and unseen words can be measured anywhere.
"""

import collections
import gzip
import json
import os
from collections.abc import Mapping

from pipeline.common.whole_files import is_remote

FILE = os.path.join("assets.extra", "training_counts.json.gz")


def write(model_directory: str, counts: Mapping[str, int]) -> None:
    """Writes counts of words into an exported model's folder."""
    import tensorflow as tf

    path = os.path.join(model_directory, FILE)
    tf.io.gfile.makedirs(os.path.dirname(path))
    with tf.io.gfile.GFile(path, "wb") as file:
        # Without the time of day, so that the same counts are the same bytes.
        file.write(gzip.compress(json.dumps(counts, ensure_ascii=False).encode("utf-8"), mtime=0))


def read(model_directory: str) -> collections.Counter[str] | None:
    """Returns the counts that `write` wrote; None if the model has none."""
    path = os.path.join(model_directory, FILE)
    if not is_remote(path):
        # Without TensorFlow: the command line reads it before anything slow.
        if not os.path.isfile(path):
            return None
        with open(path, "rb") as file:
            packed = file.read()
    else:
        import tensorflow as tf

        if not tf.io.gfile.exists(path):
            return None
        with tf.io.gfile.GFile(path, "rb") as file:
            packed = file.read()
    return collections.Counter(json.loads(gzip.decompress(packed)))
