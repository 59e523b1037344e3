"""Transformed examples to padded batches of similar length."""

from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from pipeline.features import feature_names
from pipeline.training.epoch_order import EpochOrder, batch_size, buckets_of, count_batches
from pipeline.training.mixture import Draws, Mixture
from pipeline.training.sampled_units import SampledUnits
from pipeline.training.stored_pairs import StoredPairs
from pipeline.training.trainer_outputs import CorpusFacts
from pipeline.training.transformed_files import TrainingDataError, read_batches

LABELS = feature_names.LABELS
SURFACES = "source_tokens"


class TrainingBatches:
    """The batches of a training, epoch by epoch.

    Args:
        pairs: what is trained on.
        bucket_lengths: rising list of lengths; a pair that fits none is left out (`too_long`).
        batch_tokens: source and target tokens of a batch, padding included.
        seed: of the order; None keeps that of the pairs.
        mixture: how often each corpus is read, where the pairs have corpora.
        cutting: cuts the words of the pairs anew in each epoch; None reads them as they are.

    Attributes:
        too_long: how many pairs no bucket holds.
        steps: how many batches an epoch has.
        corpora: the facts of a mixture's corpora.
    """

    def __init__(
        self,
        pairs: StoredPairs,
        bucket_lengths: Sequence[int],
        batch_tokens: int,
        seed: int | None = None,
        mixture: Mixture | None = None,
        cutting: SampledUnits | None = None,
    ) -> None:
        self._stored = pairs
        self._cutting = cutting
        self._sizes = [batch_size(length, batch_tokens) for length in bucket_lengths]
        self._seed = seed
        self._buckets = buckets_of(pair_lengths(pairs), bucket_lengths)
        self._fitting = np.flatnonzero(self._buckets < len(bucket_lengths))
        self.too_long = len(pairs) - len(self._fitting)
        self.corpora: dict[str, CorpusFacts] = {}
        self._draws = None
        if mixture:
            assert pairs.corpora is not None and seed is not None, "read the corpora of pairs"
            self._draws = self._drawn(mixture, pairs.corpora[self._fitting], seed)
        self.steps = count_batches(self._buckets[self._chosen(0)], self._sizes)

    def _drawn(self, mixture: Mixture, corpora: NDArray[np.int32], seed: int) -> Draws | None:
        if not len(corpora):
            return None
        if corpora.min() < 0:
            raise TrainingDataError(
                "Some training pairs come from files that match no pattern of data.corpora: add a "
                "pattern for them."
            )
        counts = np.bincount(corpora, minlength=len(mixture.corpora))
        self.corpora = mixture.facts(counts)
        buckets = len(self._sizes)
        kinds = corpora.astype("int64") * buckets + self._buckets[self._fitting]
        reads = np.repeat(mixture.reads(counts), buckets)
        return Draws.of(self._fitting, kinds, reads, seed)

    def _chosen(self, epoch: int) -> NDArray[np.int64]:
        """Returns the numbers of an epoch's pairs, in no order."""
        return self._draws.epoch(epoch) if self._draws else self._fitting

    def order(self, epoch: int) -> EpochOrder:
        """Returns the batches of an epoch, which the seed and its number alone decide."""
        chosen = self._chosen(epoch)
        if self._seed is not None:
            draw = np.random.default_rng((self._seed % (1 << 63), epoch))
            chosen = draw.permutation(chosen)
        return EpochOrder.of(chosen, self._buckets[chosen], self._sizes)

    def epoch(self, number: int = 0, first: int = 0) -> tf.data.Dataset:
        """Returns the batches of an epoch from a first one, without reading those before it.

        Returns:
            tf.data.Dataset of `(inputs, labels)`: dict of int32 `[batch, length]`, and int32
            `[batch, target_length]`; padding is what `feature_names.PADDING` says, else 0.
        """
        order, names = self.order(number), self._stored.names
        if self._cutting:
            return _batches(self._cutting.reader(self._stored, order, number), order, first)

        def gather(batch: NDArray[np.int64]) -> list[NDArray[np.int32]]:
            made = self._stored.batch(order.batch(int(batch)))
            return [made[name] for name in names]

        def read(batch: tf.Tensor) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
            values = tf.numpy_function(gather, [batch], [tf.int32] * len(names))
            inputs = {
                name: tf.ensure_shape(value, [None, None]) for name, value in zip(names, values)
            }
            return inputs, inputs[LABELS]

        return _batches(read, order, first)


def _batches(
    read: Callable[[tf.Tensor], tuple[dict[str, tf.Tensor], tf.Tensor]],
    order: EpochOrder,
    first: int,
) -> tf.data.Dataset:
    """Returns the batches of an epoch from a first one, read by their numbers."""
    options = tf.data.Options()
    # Ending an iterator waits for the autotuner's thread, which sleeps up to a minute between
    # two looks (TensorFlow 2.16): with two iterators an epoch, training stood still for longer
    # than it ran.
    options.autotune.enabled = False
    numbers = tf.data.Dataset.range(first, len(order))
    return numbers.map(read).prefetch(8).with_options(options)


def pair_lengths(pairs: StoredPairs) -> NDArray[np.int32]:
    """Returns the longer of source and target length of each pair."""
    sides = pairs.column("source_ids"), pairs.column(LABELS)
    return pairs.lengths[:, sides].max(axis=1, initial=0)


def check_head(head: str, file_patterns: Sequence[str], split: str) -> None:
    """Checks before a training that the head can output the targets.

    Args:
        head: name of the head.
        file_patterns: list of glob patterns of gzipped TFRecord files.
        split: what the pairs are called in messages.

    Raises:
        TrainingDataError: head `pointer_network` and a target with a word that does not stand in
            its source; or a head that copies, and not a single source.
    """
    if head == "softmax":
        return
    points = head == "pointer_network"
    features = {name: tf.int64 for name in ("source_ids", "source_extended_ids", LABELS)}
    if points:
        features[SURFACES] = tf.string
    pairs, has_source = 0, False
    # In no order and only as far as need be: nothing of it is trained on.
    for parsed in read_batches(file_patterns, features):
        pairs += int(parsed[LABELS].nrows())
        has_source = has_source or len(parsed["source_ids"].values) > 0
        if points:
            _check_pointers(parsed, split)
        elif has_source:
            return
    if pairs and not has_source:
        raise TrainingDataError(
            f"None of the {split} pairs has a source, so head {head} has nothing to copy: set "
            "model.head=softmax."
        )


def _check_pointers(parsed: dict[str, tf.RaggedTensor], split: str) -> None:
    """Checks that each word of a target, its end aside, stands in its source."""
    places, labels = (parsed[name] for name in ("source_extended_ids", LABELS))
    stands = np.isin(_with_rows(labels), _with_rows(places))
    # The last label of a row is its end.
    stands[labels.row_limits().numpy()[labels.row_lengths().numpy() > 0] - 1] = True
    if stands.all():
        return
    number = int(np.argmin(stands))
    row = int(labels.value_rowids()[number])
    place = number - int(labels.row_starts()[row])
    text = b" ".join(parsed[SURFACES][row].numpy()).decode("utf-8", errors="replace")
    raise TrainingDataError(
        f"Head pointer_network only outputs words of the source, but in the {split} pair "
        f"with the source {text[:200]!r}, word {place + 1} of the target does not occur there: "
        "correct the data, or choose a head with a vocabulary, such as joint_copy."
    )


def _with_rows(ids: tf.RaggedTensor) -> NDArray[np.int64]:
    """Returns the ids of all rows, each as a number of its own for its row."""
    rows = ids.value_rowids().numpy().astype("int64")
    flat: NDArray[np.int64] = (rows << 32) + ids.values.numpy()
    return flat
