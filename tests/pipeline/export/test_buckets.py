"""Padding to buckets, chunk by chunk: each row gets its own result, whatever stands beside it."""

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
import tensorflow as tf

from pipeline.export.buckets import (
    Buckets,
    OutputSpec,
    map_in_buckets,
    scatter_rows,
)
from pipeline.features.smallest_bucket import smallest_bucket

BATCHES, LENGTHS = (1, 4), (2, 5, 9)


@pytest.mark.parametrize("size,bucket", [(0, 2), (2, 2), (3, 5), (9, 9), (10, 9)])
def test_the_smallest_bucket_that_holds_a_size(size, bucket):
    assert smallest_bucket(tf.constant(size), LENGTHS).numpy() == bucket


def run(lengths, output_length=None):
    """Squares the numbers of rows of the given lengths;
    returns the outputs and the shapes that the function was called with.
    """
    rows = [
        [100 * row + place + 1 for place in range(length)] for row, length in enumerate(lengths)
    ]
    called = []

    def note(shape):
        called.append(tuple(shape))
        return np.int32(0)

    def function(values, doubled, lengths):
        called_with = tf.numpy_function(note, [tf.shape(values)], tf.int32)
        with tf.control_dependencies([called_with]):
            squares = tf.where(
                tf.range(tf.shape(values)[1]) < lengths[:, None], tf.square(values), -1
            )
        if output_length:
            squares = tf.pad(
                squares, [[0, 0], [0, output_length(tf.shape(values)[1]) - tf.shape(values)[1]]]
            )
        totals = tf.reduce_sum(values, axis=1) + tf.reduce_sum(doubled, axis=1)
        return {"squares": squares, "totals": tf.stack([totals, -totals], axis=1)}

    ragged = tf.ragged.constant(rows, tf.int32, ragged_rank=1)
    twice = tf.ragged.constant(
        [[n for n in row for _ in range(2)] for row in rows], tf.int32, ragged_rank=1
    )
    outputs = OutputSpec(
        {"squares": tf.int32, "totals": tf.int32}, ("squares",), length_of=output_length
    )
    buckets = Buckets(BATCHES, LENGTHS)
    found = tf.function(
        lambda *inputs: map_in_buckets(function, inputs, buckets, outputs, widths=[1, 2])
    )(ragged, twice)
    return rows, {name: value.numpy() for name, value in found.items()}, called


@hypothesis.settings(max_examples=8)
@hypothesis.given(st.lists(st.integers(1, 9), min_size=1, max_size=11))
def test_each_row_has_its_own_result(lengths):
    rows, found, called = run(lengths)
    longest = next(bucket for bucket in LENGTHS if bucket >= max(lengths))
    assert found["squares"].shape == (len(rows), longest) and found["totals"].shape == (
        len(rows),
        2,
    )
    for row, squares, totals in zip(rows, found["squares"], found["totals"]):
        assert squares[: len(row)].tolist() == [n * n for n in row]
        assert set(squares[len(row) :]) <= {0, -1}
        assert totals.tolist() == [3 * sum(row), -3 * sum(row)]
    assert {shape[0] for shape in called} == {1 if len(rows) == 1 else 4}
    assert {shape[1] for shape in called} <= set(LENGTHS)


def test_short_rows_are_not_padded_to_the_longest_of_all():
    _, _, called = run([9, 1, 2, 8, 1, 2, 4, 9])
    assert called == [(4, 2), (4, 9)]


def test_outputs_may_be_of_another_length_than_their_rows():
    rows, found, _ = run([9, 1, 2, 1, 2], output_length=lambda length: 2 * length + 1)
    assert found["squares"].shape == (5, 19)
    assert (
        found["squares"][0, :9].tolist() == [n * n for n in rows[0]]
        and not found["squares"][0, 9:].any()
    )
    assert found["squares"][1, :2].tolist() == [101 * 101, -1] and not found["squares"][1, 2:].any()


def test_a_row_beyond_the_last_bucket_is_cut():
    rows, found, _ = run([12, 1])
    assert found["squares"].shape == (2, 9)
    assert found["squares"][0].tolist() == [n * n for n in rows[0][:9]]


def test_some_rows_are_replaced_by_shorter_ones():
    outputs = {"tokens": tf.ones([3, 2, 4], tf.int32), "scores": tf.zeros([3, 2])}
    new = {"tokens": tf.fill([2, 2, 3], 7), "scores": tf.fill([2, 2], 5.0)}
    found = scatter_rows(outputs, tf.constant([2, 0], tf.int64), new, ("tokens",))
    assert found["tokens"][:, 0].numpy().tolist() == [[7, 7, 7, 0], [1, 1, 1, 1], [7, 7, 7, 0]]
    assert found["scores"].numpy().tolist() == [[5, 5], [0, 0], [5, 5]]
