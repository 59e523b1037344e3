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
    """Function of lengths: the dataset that reads them back, out of two files."""
    from pipeline.training import training_data

    def read(lengths):
        made = make_examples(lengths)
        half = len(made) // 2
        write_examples(tmp_path / "data-0.gz", made[:half])
        write_examples(tmp_path / "data-1.gz", made[half:])
        return training_data.read_examples([str(tmp_path / "data-*")])

    return read


def names(inputs):
    """Which pairs a batch holds."""
    ids = inputs["source_ids"].numpy()
    return [int(max(row)) for row in ids]


@pytest.mark.parametrize(
    "length, tokens, size", [(3, 1024, 170), (128, 1024, 4), (8, 16, 1), (8, 15, 1), (512, 8, 1)]
)
def test_batch_size(length, tokens, size):
    from pipeline.training import training_data

    assert training_data.batch_size(length, tokens) == size


def test_examples_come_back(examples):
    lengths = [(1, 1), (3, 2), (5, 16)]
    read = [
        {name: value.numpy().tolist() for name, value in pair.items()} for pair in examples(lengths)
    ]
    assert sorted(read, key=lambda pair: max(pair["source_ids"])) == make_examples(lengths)


def test_the_order_of_the_files_changes_nothing(tmp_path):
    """Beam writes records in another order each time;
    the same data and seed must make the same batches.
    """
    from pipeline.training import training_data

    made = [{**pair, "source_tokens": [b"a"]} for pair in make_examples(random_lengths())]
    batches = []
    for seed in range(2):
        random.Random(seed).shuffle(made)
        for number in range(3):
            write_examples(tmp_path / f"{seed}-{number}.gz", made[number::3])
        read = training_data.read_examples([str(tmp_path / f"{seed}-*")])
        assert [names({"source_ids": pair["source_ids"][None]}) for pair in read] != sorted(
            names({"source_ids": pair["source_ids"][None]}) for pair in read
        )
        batches.append(
            [
                names(inputs)
                for inputs, _ in training_data.make_batches(read, BUCKETS, 64, shuffle_seed=5)
            ]
        )
    assert batches[0] == batches[1]
    read = training_data.read_examples(
        [str(tmp_path / "0-*")], (*training_data.feature_names.ID_FEATURES, "source_tokens")
    )
    assert all(pair["source_tokens"].numpy().tolist() == [b"a"] for pair in read)


def test_too_long_pairs_are_counted_and_left_out(examples):
    from pipeline.training import training_data

    lengths = [(16, 16), (17, 1), (1, 17), (40, 40), (1, 1)]
    dataset = examples(lengths)
    assert training_data.count_too_long(dataset, BUCKETS) == (3, 5)
    kept = sorted(
        name
        for inputs, _ in training_data.make_batches(dataset, BUCKETS, 64)
        for name in names(inputs)
    )
    assert kept == [100, 104]
    assert training_data.count_too_long(examples([]), BUCKETS) == (0, 0)


@pytest.mark.parametrize("seed", [None, 5])
def test_every_pair_appears_exactly_once_an_epoch(examples, seed):
    from pipeline.training import training_data

    dataset = examples(random_lengths())
    epochs = [
        [
            names(inputs)
            for inputs, _ in training_data.make_batches(dataset, BUCKETS, 64, seed, number)
        ]
        for number in range(3)
    ]
    for epoch in epochs:
        assert collections.Counter(
            name for batch in epoch for name in batch
        ) == collections.Counter(range(100, 160))
    # The number of updates is known before training: the learning rate is planned by it.
    assert len({len(epoch) for epoch in epochs}) == 1
    assert (epochs[0] == epochs[1] == epochs[2]) == (seed is None)


def test_the_seed_fixes_the_order(examples):
    from pipeline.training import training_data

    dataset = examples(random_lengths())

    def order(seed):
        return [
            names(inputs) for inputs, _ in training_data.make_batches(dataset, BUCKETS, 64, seed)
        ]

    assert order(5) == order(5) != order(6)


def test_each_epoch_has_an_order_of_its_own(examples):
    from pipeline.training import training_data

    dataset = examples(random_lengths())

    def order(epoch, seed=5):
        batches = training_data.make_batches(dataset, BUCKETS, 64, seed, epoch)
        once, again = ([names(inputs) for inputs, _ in batches] for _ in range(2))
        assert once == again
        return once

    orders = [order(epoch) for epoch in range(4)]
    assert all(one != two for number, one in enumerate(orders) for two in orders[:number])
    # Which others were there before does not matter: a training can go on with any.
    assert order(2) == orders[2] != order(2, seed=6)
    assert order(2, seed=-1) != orders[2]
    rest = training_data.make_batches(dataset, BUCKETS, 64, 5, 2).skip(3)
    assert [names(inputs) for inputs, _ in rest] == orders[2][3:]


def test_the_digest_is_of_the_examples_alone(tmp_path):
    from pipeline.training import training_data

    made = make_examples(random_lengths())

    def digest(name, examples):
        return training_data.read_examples_and_digest([write_examples(tmp_path / name, examples)])[
            1
        ]

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

    from pipeline.training import training_data

    lengths = random_lengths(count=200)
    full = collections.Counter()
    for inputs, labels in training_data.make_batches(examples(lengths), BUCKETS, 64, 1):
        chosen = [lengths[name - 100] for name in names(inputs)]
        buckets = {next(bucket for bucket in BUCKETS if max(pair) <= bucket) for pair in chosen}
        assert len(buckets) == 1
        (bucket,) = buckets
        assert len(chosen) <= training_data.batch_size(bucket, 64) == 64 // (2 * bucket)
        full[bucket] += len(chosen) == training_data.batch_size(bucket, 64)
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
    from pipeline.training import training_data

    labels = (copy_head.SPAN_STARTS, copy_head.SPAN_LENGTHS, copy_head.POINTERS)
    made = make_examples([(3, 2), (4, 4)])
    for pair, length in zip(made, (2, 4)):
        pair.update({name: [1] * length for name in labels})
    path = write_examples(tmp_path / "data.gz", made)
    ((inputs, _),) = training_data.make_batches(
        training_data.read_examples([path], (*feature_names.ID_FEATURES, *labels)), (4,), 64
    )
    first = names(inputs).index(100)
    inputs = {name: value.numpy()[[first, 1 - first]].tolist() for name, value in inputs.items()}
    assert inputs["source_ids"][0] == [7, 7, 100, 0]
    assert inputs[copy_head.SPAN_STARTS] == [[1, 1, -1, -1], [1] * 4]
    assert inputs[copy_head.SPAN_LENGTHS] == [[1, 1, 0, 0], [1] * 4]
    assert inputs[copy_head.POINTERS] == [[1, 1, -1, -1], [1] * 4]


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
