"""Gradients that workers add up in memory, and when they cannot."""

import contextlib
import mmap
import threading

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.training import data_parallel, shared_gradients
from pipeline.training.shared_gradients import SharedGradients


class ThreadWorkers:
    """Workers that are threads of this process."""

    def __init__(self, count):
        self.count, self.together = count, threading.Barrier(count, timeout=60)
        self.given = [None] * count

    def one(self, index):
        outer = self

        class One:
            count, is_chief = outer.count, index == 0

            def __init__(self):
                self.index = index

            def sum_now(self, vector):
                outer.given[index] = vector.numpy()
                outer.together.wait()
                total = np.sum(outer.given, axis=0, dtype=vector.dtype.as_numpy_dtype)
                outer.together.wait()
                return tf.constant(total)

            def sum(self, vector):
                return self.sum_now(vector)

            def wait(self):
                outer.together.wait()

        return One()

    def run(self, work):
        """Returns what `work(worker)` returns, by worker."""
        results, errors = [None] * self.count, []

        def call(index):
            try:
                results[index] = work(self.one(index))
            except BaseException as error:
                self.together.abort()
                errors.append(error)

        threads = [threading.Thread(target=call, args=(index,)) for index in range(self.count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]
        return results


shapes_of_gradients = st.lists(
    st.lists(st.integers(1, 5), min_size=0, max_size=3).map(tuple), min_size=1, max_size=4
)


@settings(max_examples=40, deadline=None)
@given(shapes_of_gradients, st.integers(2, 4), st.integers(1, 4), st.data())
def test_sums_are_those_of_float64_for_each_update(shapes, count, updates, data):
    memory = mmap.mmap(-1, shared_gradients.size_of(shapes, count))
    places = [SharedGradients(memory, shapes, count, index) for index in range(count)]
    numbers = data.draw(st.lists(st.sampled_from(range(len(shapes))), unique=True, min_size=1))
    rng = np.random.default_rng(0)
    for _ in range(updates):
        shares = rng.random(count).astype("float32")
        own = [[rng.normal(size=shapes[n]).astype("float32") for n in numbers] for _ in places]
        for place, share, gradients in zip(places, shares, own, strict=True):
            place.write(share, gradients, numbers)
        expected = [
            sum(np.float64(share) * own[k][i] for k, share in enumerate(shares))
            for i in range(len(numbers))
        ]
        found = [place.total(numbers) for place in places]
        for sums in found:
            for one, right, first in zip(sums, expected, found[0], strict=True):
                np.testing.assert_allclose(one, right, atol=1e-5)
                np.testing.assert_array_equal(one, first)
                assert one.shape == np.shape(right)


def test_a_worker_that_is_ahead_does_not_disturb_one_that_still_reads():
    shapes, one = [(3,)], np.ones(3, "float32")
    memory = mmap.mmap(-1, shared_gradients.size_of(shapes, 2))
    first, second = (SharedGradients(memory, shapes, 2, index) for index in range(2))
    first.write(1.0, [one], [0])
    second.write(1.0, [2 * one], [0])
    first.total([0])
    # The first has made its update and has already written for the next one.
    first.write(1.0, [100 * one], [0])
    np.testing.assert_array_equal(second.total([0])[0], 3 * one)


@pytest.mark.parametrize("count", [2, 3])
def test_the_sum_in_memory_is_the_one_over_the_network(count, tmp_path, monkeypatch):
    monkeypatch.setattr(shared_gradients, "FOLDER", tmp_path)
    rng = np.random.default_rng(1)
    shapes = [(4, 3), (), (5,)]
    own = [[rng.normal(size=shape).astype("float32") for shape in shapes] for _ in range(count)]

    def work(worker):
        shared = shared_gradients.open_together(worker, shapes)
        assert shared is not None
        gradients = [tf.constant(own[worker.index][number]) for number in (0, 2)]
        share, scalars = tf.constant(0.5), tf.constant([1.0, worker.index])
        results = []
        for sums, totals in (
            shared.summed(worker, gradients, (0, 2), share, scalars),
            shared.summed(worker, gradients, (0, 2), share, scalars),
            data_parallel.sum_over_network(worker, gradients, share, scalars),
        ):
            results.append([*(one.numpy().copy() for one in sums), totals.numpy()])
        return results

    for first, second, network in ThreadWorkers(count).run(work):
        for one, again, right in zip(first, second, network, strict=True):
            np.testing.assert_array_equal(one, again)
            np.testing.assert_allclose(one, right, rtol=1e-5)
        np.testing.assert_array_equal(first[-1], [count, sum(range(count))])
    assert list(tmp_path.iterdir()) == []


def no_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(shared_gradients, "FOLDER", tmp_path / "missing")


def too_small(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shared_gradients, "FOLDER", tmp_path)
    monkeypatch.setattr(shared_gradients.os, "posix_fallocate", refuse)


def another_machine(tmp_path, monkeypatch):
    monkeypatch.setattr(shared_gradients, "FOLDER", tmp_path)
    opened = shared_gradients._map

    def mapped(path, size, create):
        return opened(path, size, create) if create else opened(path.with_name("x"), size, create)

    monkeypatch.setattr(shared_gradients, "_map", mapped)


@pytest.mark.parametrize("why", [no_folder, too_small, another_machine])
def test_no_worker_shares_memory_if_one_cannot(why, tmp_path, monkeypatch):
    why(tmp_path, monkeypatch)
    results = ThreadWorkers(2).run(lambda one: shared_gradients.open_together(one, [(2, 2)]))
    assert results == [None, None]
    with contextlib.suppress(FileNotFoundError):
        assert list(tmp_path.iterdir()) == []
