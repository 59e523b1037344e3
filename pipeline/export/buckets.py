"""Padding to a fixed list of sizes, so that the number of compilations is known."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import tensorflow as tf

from pipeline.features.smallest_bucket import smallest_bucket
from pipeline.recipes.sections import DecodingConfig


@dataclasses.dataclass(frozen=True)
class Buckets:
    """The sizes that rows are padded to, rising.

    Attributes:
        batch: numbers of rows; more rows than the last are done in chunks of it.
        length: lengths of rows; longer rows are cut.
    """

    batch: Sequence[int]
    length: Sequence[int]

    @classmethod
    def of(cls, config: DecodingConfig) -> "Buckets":
        """Returns those of a recipe."""
        return cls(config.batch_buckets, config.length_buckets)


@dataclasses.dataclass(frozen=True)
class OutputSpec:
    """The outputs of a function of padded rows.

    Attributes:
        types: from output name to dtype.
        sequences: names of the outputs whose last axis goes with the length of the chunk; they are
            padded with zeros.
        length_of: function from a length bucket to the last axis of `sequences`; by default it is
            that length.
    """

    types: Mapping[str, tf.DType]
    sequences: Sequence[str] = ()
    length_of: Callable[[tf.Tensor], tf.Tensor] | None = None


def map_in_buckets(
    function: Callable[..., Mapping[str, tf.Tensor]],
    ragged: Sequence[tf.RaggedTensor],
    buckets: Buckets,
    outputs: OutputSpec,
    widths: Sequence[int] | None = None,
) -> dict[str, tf.Tensor]:
    """Calls a function of dense tensors on ragged ones, padded to buckets and chunk by chunk.

    Rows of similar length share a chunk, so that short ones are not padded to the longest of all.

    Args:
        function: of one `[batch, length]` tensor for each of `ragged`, and int32 `[batch]` lengths
            (0 for rows that are padding); returns a dict of tensors `[batch, ...]`.
        ragged: list of ragged tensors `[N, (length)]`, int or bool, of the same row lengths; in all
            but the first a row may be a whole number of times as long, its width, and is padded to
            that many times the bucket.
        buckets: the sizes to pad to.
        outputs: what the function returns.
        widths: list of the widths of `ragged`; by default all are 1.

    Returns:
        The function's outputs for the N rows; the last axis of sequences is that of the longest
        row's bucket.
    """
    length_of = outputs.length_of or (lambda length: length)
    lengths = tf.cast(ragged[0].row_lengths(), tf.int32)
    number = tf.size(lengths)
    batch = smallest_bucket(number, buckets.batch)
    chunks = (number + batch - 1) // batch
    order = tf.argsort(lengths, stable=True)
    longest = smallest_bucket(tf.reduce_max(lengths), buckets.length)

    def of_chunk(chunk: tf.Tensor) -> dict[str, tf.Tensor]:
        rows = order[chunk * batch : (chunk + 1) * batch]
        padding = batch - tf.size(rows)
        own = tf.gather(lengths, rows)
        length = smallest_bucket(tf.reduce_max(own), buckets.length)
        padded = []
        for values, width in zip(ragged, widths or [1] * len(ragged), strict=True):
            # A text beyond the last bucket fails its check; cut here so that it is not compiled in
            # the meantime.
            dense = tf.gather(values, rows)[:, : length * width].to_tensor()
            dense = tf.pad(dense, [[0, padding], [0, length * width - tf.shape(dense)[1]]])
            padded.append(tf.reshape(dense, [batch, length * width]))
        made = function(*padded, tf.pad(tf.minimum(own, length), [[0, padding]]))
        missing = length_of(longest) - length_of(length)
        return {
            name: _pad_last(value, missing) if name in outputs.sequences else value
            for name, value in made.items()
        }

    chunked = tf.map_fn(
        of_chunk, tf.range(chunks), fn_output_signature=dict(outputs.types), parallel_iterations=1
    )
    place = tf.math.invert_permutation(order)
    return {
        name: tf.gather(
            tf.reshape(value, tf.concat([[chunks * batch], tf.shape(value)[2:]], axis=0)), place
        )
        for name, value in chunked.items()
    }


def _pad_last(value: tf.Tensor, missing: tf.Tensor) -> tf.Tensor:
    return tf.pad(value, [[0, 0]] * (value.shape.rank - 1) + [[0, missing]])


def scatter_rows(
    outputs: Mapping[str, tf.Tensor],
    rows: tf.Tensor,
    new: Mapping[str, tf.Tensor],
    sequences: Sequence[str] = (),
) -> dict[str, tf.Tensor]:
    """Replaces some rows by new ones.

    Args:
        outputs: dict of tensors `[N, ...]`, such as `map_in_buckets` returns.
        rows: int64 `[M]`, which rows.
        new: dict of tensors `[M, ...]`; the last axis of `sequences` may be shorter, and is padded
            with zeros.

    Returns:
        dict of tensors like `outputs`.
    """
    scattered = {}
    for name, value in outputs.items():
        replacing = new[name]
        if name in sequences:
            replacing = _pad_last(replacing, tf.shape(value)[-1] - tf.shape(replacing)[-1])
        scattered[name] = tf.tensor_scatter_nd_update(value, rows[:, tf.newaxis], replacing)
    return scattered
