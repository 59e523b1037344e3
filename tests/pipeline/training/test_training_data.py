"""Batches: every pair one time an epoch, similar lengths together, what is left out counted."""

import collections
import random

import pytest

BUCKETS = (4, 8, 16)


def make_examples(lengths):
    """Pairs as the Transform graph writes them; each is known by its last source id."""
    return [
        {
            "source_ids": [7] * (source - 1) + [100 + number],
            "source_extended_ids": [8] * source,
            "target_input_ids": [2] + [9] * (target - 1),
            "target_extended_ids": [9] * (target - 1) + [3],
        }
        for number, (source, target) in enumerate(lengths)
    ]


def write_examples(path, examples):
    """Writes a gzipped TFRecord file and returns its path."""
    import tensorflow as tf

    with tf.io.TFRecordWriter(str(path), options="GZIP") as writer:
        for example in examples:
            features = {
                name: tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
                if name == "source_tokens"
                else tf.train.Feature(int64_list=tf.train.Int64List(value=values))
                for name, values in example.items()
            }
            writer.write(
                tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()
            )
    return str(path)


def random_lengths(count=60, longest=16, seed=3):
    draw = random.Random(seed)
    return [(draw.randint(1, longest), draw.randint(1, longest)) for _ in range(count)]


@pytest.fixture
def examples(tmp_path):
    """Function of lengths: the pairs read back, out of two files."""
    from pipeline.training.stored_pairs import StoredPairs

    def read(lengths):
        made = make_examples(lengths)
        half = len(made) // 2
        write_examples(tmp_path / "data-0.gz", made[:half])
        write_examples(tmp_path / "data-1.gz", made[half:])
        return StoredPairs.read([str(tmp_path / "data-*")])

    return read


def batches_of(pairs, seed=None, epoch=0, first=0, buckets=BUCKETS):
    """The batches of an epoch."""
    from pipeline.training.training_data import TrainingBatches

    return TrainingBatches(pairs, buckets, 64, seed).epoch(epoch, first)


def rows_of(pairs):
    """Each pair as a dict of lists."""
    import numpy as np

    return [
        {name: value[0].tolist() for name, value in pairs.batch(np.array([row])).items()}
        for row in range(len(pairs))
    ]


def names(inputs):
    """Which pairs a batch holds."""
    ids = inputs["source_ids"].numpy()
    return [int(max(row)) for row in ids]


@pytest.mark.parametrize(
    "length, tokens, size", [(3, 1024, 170), (128, 1024, 4), (8, 16, 1), (8, 15, 1), (512, 8, 1)]
)
def test_batch_size(length, tokens, size):
    from pipeline.training import epoch_order

    assert epoch_order.batch_size(length, tokens) == size


def test_examples_come_back(examples):
    lengths = [(1, 1), (3, 2), (5, 16)]
    read = rows_of(examples(lengths))
    assert sorted(read, key=lambda pair: max(pair["source_ids"])) == make_examples(lengths)
    assert rows_of(examples([])) == []


def test_the_order_of_the_files_changes_nothing(tmp_path):
    """Beam writes records in another order each time;
    the same data and seed must make the same batches.
    """
    from pipeline.training.stored_pairs import StoredPairs

    made = make_examples(random_lengths())
    orders, batches = [], []
    for seed in range(2):
        random.Random(seed).shuffle(made)
        for number in range(3):
            write_examples(tmp_path / f"{seed}-{number}.gz", made[number::3])
        read = StoredPairs.read([str(tmp_path / f"{seed}-*")])
        orders.append([max(pair["source_ids"]) for pair in rows_of(read)])
        batches.append([names(inputs) for inputs, _ in batches_of(read, seed=5)])
    assert batches[0] == batches[1]
    assert orders[0] == orders[1] != sorted(orders[0])


@pytest.mark.parametrize("seed", [None, 5])
def test_batches_are_those_of_tensorflows_buckets(examples, seed):
    """The reference takes one pair after the other; ours are computed for all at a time."""
    import numpy as np
    import tensorflow as tf

    from pipeline.training.training_data import TrainingBatches

    lengths = [*random_lengths(count=150), (17, 3), (2, 30)]
    pairs = examples(lengths)
    rows = rows_of(pairs)
    order = np.array(
        [row for row, pair in enumerate(rows) if max(map(len, pair.values())) <= BUCKETS[-1]]
    )
    if seed is not None:
        order = np.random.default_rng((seed, 2)).permutation(order)
    spec = {name: tf.TensorSpec([None], tf.int32) for name in rows[0]}
    expected = tf.data.Dataset.from_generator(
        lambda: (rows[row] for row in order), output_signature=spec
    ).bucket_by_sequence_length(
        lambda pair: tf.maximum(tf.size(pair["source_ids"]), tf.size(pair["target_extended_ids"])),
        bucket_boundaries=[length + 1 for length in BUCKETS],
        bucket_batch_sizes=[8, 4, 2, 1],
    )
    batches = TrainingBatches(pairs, BUCKETS, 64, seed).epoch(2)
    made = list(batches)
    assert [names(inputs) for inputs in expected] == [names(inputs) for inputs, _ in made]
    for inputs, (own, _) in zip(expected, made):
        assert all(np.array_equal(inputs[name], own[name]) for name in spec)


def test_too_long_pairs_are_counted_and_left_out(examples):
    from pipeline.training.training_data import TrainingBatches

    lengths = [(16, 16), (17, 1), (1, 17), (40, 40), (1, 1)]
    pairs = examples(lengths)
    assert (TrainingBatches(pairs, BUCKETS, 64).too_long, len(pairs)) == (3, 5)
    kept = sorted(name for inputs, _ in batches_of(pairs) for name in names(inputs))
    assert kept == [100, 104]
    none = examples([])
    assert (TrainingBatches(none, BUCKETS, 64).too_long, len(none)) == (0, 0)


@pytest.mark.parametrize("seed", [None, 5])
def test_every_pair_appears_exactly_once_an_epoch(examples, seed):
    from pipeline.training.training_data import TrainingBatches

    pairs = examples(random_lengths())
    epochs = [
        [names(inputs) for inputs, _ in batches_of(pairs, seed, number)] for number in range(3)
    ]
    for epoch in epochs:
        assert collections.Counter(
            name for batch in epoch for name in batch
        ) == collections.Counter(range(100, 160))
    # The number of updates is known before training: the learning rate is planned by it.
    assert {len(epoch) for epoch in epochs} == {TrainingBatches(pairs, BUCKETS, 64, seed).steps}
    assert (epochs[0] == epochs[1] == epochs[2]) == (seed is None)


def test_the_seed_fixes_the_order(examples):
    pairs = examples(random_lengths())

    def order(seed):
        return [names(inputs) for inputs, _ in batches_of(pairs, seed)]

    assert order(5) == order(5) != order(6)


def test_each_epoch_has_an_order_of_its_own(examples):
    pairs = examples(random_lengths())

    def order(epoch, seed=5):
        batches = batches_of(pairs, seed, epoch)
        once, again = ([names(inputs) for inputs, _ in batches] for _ in range(2))
        assert once == again
        return once

    orders = [order(epoch) for epoch in range(4)]
    assert all(one != two for number, one in enumerate(orders) for two in orders[:number])
    # Which others were there before does not matter: a training can go on with any.
    assert order(2) == orders[2] != order(2, seed=6)
    assert order(2, seed=-1) != orders[2]
    for first in (3, len(orders[2])):
        rest = batches_of(pairs, 5, 2, first)
        assert [names(inputs) for inputs, _ in rest] == orders[2][first:]


def test_the_digest_is_of_the_examples_alone(tmp_path):
    from pipeline.training.stored_pairs import StoredPairs

    made = make_examples(random_lengths())

    def digest(name, examples):
        return StoredPairs.read([write_examples(tmp_path / name, examples)]).digest

    assert digest("a.gz", made) == digest("b.gz", made[::-1])
    assert (
        len(
            {
                digest("a.gz", made),
                digest("c.gz", made[1:]),
                digest("d.gz", [*made, made[0]]),
                digest("e.gz", []),
            }
        )
        == 4
    )


def test_batches_hold_one_bucket_and_no_more_tokens_than_allowed(examples):
    import numpy as np

    from pipeline.training.epoch_order import batch_size

    lengths = random_lengths(count=200)
    full = collections.Counter()
    for inputs, labels in batches_of(examples(lengths), 1):
        chosen = [lengths[name - 100] for name in names(inputs)]
        buckets = {next(bucket for bucket in BUCKETS if max(pair) <= bucket) for pair in chosen}
        assert len(buckets) == 1
        (bucket,) = buckets
        assert len(chosen) <= batch_size(bucket, 64) == 64 // (2 * bucket)
        full[bucket] += len(chosen) == batch_size(bucket, 64)
        # Padding is id 0, behind, up to the longest of the batch.
        assert inputs["source_ids"].shape == (len(chosen), max(source for source, _ in chosen))
        assert (
            labels.shape
            == inputs["target_input_ids"].shape
            == (len(chosen), max(target for _, target in chosen))
        )
        assert np.array_equal(labels, inputs["target_extended_ids"]) and labels.dtype == "int32"
        for row, (source, target) in enumerate(chosen):
            assert (
                np.count_nonzero(inputs["source_ids"][row])
                == source
                == np.argmax(inputs["source_ids"][row]) + 1
            )
            assert labels[row, target - 1] == 3 and not np.any(labels[row, target:])
    assert all(full[bucket] for bucket in BUCKETS)


def test_labels_are_padded_with_no_position(tmp_path):
    from keras_models.heads import copy_head
    from pipeline.features import feature_names
    from pipeline.training.stored_pairs import StoredPairs

    labels = (copy_head.SPAN_STARTS, copy_head.SPAN_LENGTHS, copy_head.POINTERS)
    made = make_examples([(3, 2), (4, 4)])
    for pair, length in zip(made, (2, 4)):
        pair.update({name: [1] * length for name in labels})
    path = write_examples(tmp_path / "data.gz", made)
    pairs = StoredPairs.read([path], (*feature_names.ID_FEATURES, *labels))
    ((inputs, _),) = batches_of(pairs, buckets=(4,))
    first = names(inputs).index(100)
    inputs = {name: value.numpy()[[first, 1 - first]].tolist() for name, value in inputs.items()}
    assert inputs["source_ids"][0] == [7, 7, 100, 0]
    assert inputs[copy_head.SPAN_STARTS] == [[1, 1, -1, -1], [1] * 4]
    assert inputs[copy_head.SPAN_LENGTHS] == [[1, 1, 0, 0], [1] * 4]
    assert inputs[copy_head.POINTERS] == [[1, 1, -1, -1], [1] * 4]


def test_a_file_that_ends_early_is_one_sentence(tmp_path):
    """Wherever it ends: between two records too, where TensorFlow does not notice."""
    from pipeline.training.stored_pairs import StoredPairs
    from pipeline.training.transformed_files import TrainingDataError

    whole = write_examples(tmp_path / "data-0.gz", make_examples(random_lengths()))
    path = tmp_path / "data-1.gz"
    write_examples(path, make_examples(random_lengths(count=400)))
    content = path.read_bytes()
    ends = [0, 5, 30, *range(60, len(content), len(content) // 40), len(content) - 1]
    for end in ends:
        path.write_bytes(content[:end])
        with pytest.raises(TrainingDataError, match="ends early") as raised:
            StoredPairs.read([whole, str(path)])
        assert str(path) in str(raised.value) and "\n" not in str(raised.value)
    # Some gzip files, one behind the other, are one.
    path.write_bytes(content + content)
    assert len(StoredPairs.read([str(path)])) == 800


def test_a_full_disk_is_one_sentence(tmp_path, monkeypatch):
    import errno
    import os
    import tempfile

    from pipeline.training.stored_pairs import StoredPairs
    from pipeline.training.transformed_files import TrainingDataError

    path = write_examples(tmp_path / "data-0.gz", make_examples([(3, 3)]))

    def full(dir):
        file = open(os.devnull, "r+b")
        file.write = lambda content: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left"))
        return file

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    with pytest.raises(TrainingDataError, match=r"cannot be written to .*No space left"):
        StoredPairs.read([path], folder=str(tmp_path))


def test_a_training_leaves_no_file_behind(tmp_path):
    """Not even while it runs: a process that is killed removes nothing."""
    from pipeline.training.stored_pairs import StoredPairs

    path = write_examples(tmp_path / "data-0.gz", make_examples(random_lengths()))
    pairs = StoredPairs.read([path], folder=str(tmp_path))
    assert [file.name for file in tmp_path.iterdir()] == ["data-0.gz"] and len(pairs) == 60


def test_a_target_that_a_pointer_network_cannot_output_is_named(tmp_path):
    from pipeline.training import training_data

    def pair(source, target):
        return {
            "source_ids": source,
            "source_extended_ids": source,
            "target_input_ids": target,
            "target_extended_ids": target,
        }

    good, bad = pair([8, 9], [9, 8, 8, 3]), pair([8, 9], [9, 1, 3])
    write_examples(tmp_path / "good-0.gz", [good, good])
    training_data.check_head("pointer_network", [str(tmp_path / "good-*")], "training")
    write_examples(tmp_path / "bad-0.gz", [good, good, bad])
    training_data.check_head("joint_copy", [str(tmp_path / "bad-*")], "training")
    with pytest.raises(
        ValueError,
        match="the training pair with the source .*word 2 of the target does not occur there",
    ):
        training_data.check_head("pointer_network", [str(tmp_path / "bad-*")], "training")


def test_a_copying_head_needs_sources(tmp_path):
    from pipeline.training import training_data

    without = [
        {**pair, "source_ids": [], "source_extended_ids": []}
        for pair in make_examples([(1, 2), (1, 4)])
    ]
    path = write_examples(tmp_path / "data.gz", without)
    training_data.check_head("softmax", [path], "training")
    with pytest.raises(
        ValueError, match=r"None of the training pairs has a source.*model\.head=softmax"
    ):
        training_data.check_head("span_copy", [path], "training")
    path = write_examples(tmp_path / "more.gz", [*without, *make_examples([(1, 4)])])
    training_data.check_head("span_copy", [path], "training")
