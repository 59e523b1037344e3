"""Some pairs of a split, drawn by what they hold."""

from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from pipeline.training.row_digests import row_digests
from pipeline.training.stored_pairs import interleaved
from pipeline.training.training_data import SURFACES
from pipeline.training.transformed_files import read_batches


def draw_pairs(
    files: Sequence[str],
    names: Sequence[str],
    count: int | None,
    fits: Callable[[dict[str, tf.RaggedTensor]], NDArray[np.bool_]],
) -> list[dict[str, tf.Tensor]]:
    """Draws pairs, the same ones in whatever order their files were written.

    Args:
        files: patterns of files of transformed examples.
        names: features of ids to read; `SURFACES` is read besides.
        count: how many; None for all.
        fits: function of some rows to which of them may be drawn, bool `[rows]`.

    Returns:
        List of dicts of `[length]` tensors.

    Raises:
        TrainingDataError: a file is damaged.
    """
    features = {**dict.fromkeys(names, tf.int64), SURFACES: tf.string}
    chosen: list[tuple[int, dict[str, tf.Tensor]]] = []
    for parsed in read_batches(files, features):
        digests = row_digests(*interleaved(parsed, names))
        fitting = np.flatnonzero(fits(parsed))
        for row in fitting[np.argsort(digests[fitting], kind="stable")][:count].tolist():
            chosen.append((int(digests[row]), {name: parsed[name][row] for name in features}))
        chosen = sorted(chosen, key=lambda pair: pair[0])[:count]
    return [pair for _, pair in chosen]
