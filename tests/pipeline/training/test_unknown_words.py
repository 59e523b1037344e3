"""Words that become [UNK]: how often, where, and that it depends on seed, epoch and batch alone."""

import numpy as np
import tensorflow as tf

from pipeline.training.unknown_words import hide_words


def batches(count=8):
    generator = np.random.default_rng(1)
    ids = generator.integers(4, 50, (count, 40, 30)).astype("int32")
    ids[:, :, 25:] = 0
    inputs = {"source_ids": ids, "source_extended_ids": ids + 9, "target_input_ids": ids.copy()}
    inputs["target_input_ids"][:, :, 0] = 2
    return tf.data.Dataset.from_tensor_slices((inputs, ids))


def read(dataset):
    return [(inputs, labels) for inputs, labels in dataset.as_numpy_iterator()]


def test_words_become_unknown_as_often_as_asked_and_nothing_else_changes():
    before, after = read(batches()), read(hide_words(batches(), 0.3, 5, 0))
    dropped = words = 0
    both = []
    for (old, labels), (new, new_labels) in zip(before, after, strict=True):
        np.testing.assert_array_equal(labels, new_labels)
        np.testing.assert_array_equal(old["source_extended_ids"], new["source_extended_ids"])
        changed = {}
        for name in ("source_ids", "target_input_ids"):
            changed[name] = old[name] != new[name]
            assert (new[name][changed[name]] == 1).all()
            assert not changed[name][np.isin(old[name], (0, 2, 3))].any()
            dropped += changed[name].sum()
            words += (old[name] > 3).sum()
        both.append((changed["source_ids"] & changed["target_input_ids"]).mean())
    # 16,000 draws; five standard deviations are 0.018. Source and target are drawn apart.
    assert abs(dropped / words - 0.3) < 0.018
    assert abs(np.mean(both) / (24 / 30) - 0.09) < 0.02


def test_the_draw_depends_on_seed_epoch_and_batch_alone():
    def ids(seed, epoch, skipped=0):
        found = read(hide_words(batches().skip(skipped), 0.5, seed, epoch, skipped))
        return np.stack([inputs["source_ids"] for inputs, _ in found])

    first = ids(5, 0)
    np.testing.assert_array_equal(first, ids(5, 0))
    np.testing.assert_array_equal(first[3:], ids(5, 0, skipped=3))
    assert (first != ids(5, 1)).any() and (first != ids(6, 0)).any()
    assert len({row.tobytes() for row in first == 1}) == len(first)


def test_zero_changes_nothing():
    given = batches()
    assert hide_words(given, 0.0, 5, 0) is given
