"""Which files of a folder are data."""

import pytest
import tensorflow as tf

from pipeline.common import shards
from pipeline.reporting import results
from pipeline.training.transformed_files import read_batches


def write_pairs(path, *pairs):
    path.parent.mkdir(parents=True, exist_ok=True)
    with tf.io.TFRecordWriter(str(path), "GZIP") as writer:
        for source, target in pairs:
            features = {
                name: tf.train.Feature(bytes_list=tf.train.BytesList(value=[text.encode()]))
                for name, text in (("source", source), ("target", target))
            }
            example = tf.train.Example(features=tf.train.Features(feature=features))
            writer.write(example.SerializeToString())


@pytest.fixture
def split(tmp_path):
    """The folder of a split of two shards, beside what a killed worker left."""
    folder = tmp_path / "Split-test"
    write_pairs(folder / "data-00000-of-00002.gz", ("a", "A"))
    write_pairs(folder / "data-00001-of-00002.gz", ("b", "B"))
    write_pairs(folder / "beam-temp-data-1f2e" / "6d1c.data-00000-of-00002.gz", ("a", "A"))
    return folder


def test_left_overs_are_not_read(tmp_path, split):
    """Neither by the Reporter, nor by the training."""
    assert results.read_pairs(str(tmp_path), "test") == [["a", "b"], ["A", "B"]]
    (batch,) = read_batches([str(split / "*")], {"source": tf.string})
    assert batch["source"].to_list() == [[b"a"], [b"b"]]


def test_shards_of_two_attempts_are_refused(split):
    write_pairs(split / "data-00000-of-00003.gz", ("a", "A"))
    with pytest.raises(shards.ShardsError, match="two attempts, 2 and 3: remove it"):
        shards.matching([str(split / "*")])


def test_missing_shards_are_refused(split):
    (split / "data-00001-of-00002.gz").unlink()
    with pytest.raises(shards.ShardsError, match="Shard 1 of the 2 shards of .* is missing"):
        shards.matching([str(split / "*")])


def test_no_file_is_refused(tmp_path):
    with pytest.raises(shards.ShardsError, match="No files match .*Split-test"):
        shards.of_split(str(tmp_path), "test")


def test_files_of_other_names_are_data(tmp_path):
    for name in ("b.gz", "a.gz"):
        (tmp_path / name).touch()
    assert shards.matching([str(tmp_path / "*")]) == [
        str(tmp_path / "a.gz"),
        str(tmp_path / "b.gz"),
    ]
