"""Examples of other components as parallel text."""

import json

import pytest
import tensorflow as tf
from tfx.components.util import examples_utils
from tfx.proto import example_gen_pb2
from tfx.types import standard_artifacts
from tfx.types.experimental import simple_artifacts

from components.pairs_from_examples import executor
from pipeline.readers import DataError
from pipeline.recipes.sections import DataConfig
from tests.components.test_parallel_text_example_gen import read_splits

CONFIG = DataConfig(
    source_column="english",
    target_column="french",
    slice_features=("domain",),
    test_share=0.4,
    max_rejected_share=0.9,
)


def feature(value):
    """A feature as TFX's readers of tables make it: a list with one value, or none."""
    if value is None:
        return tf.train.Feature()
    values = value if isinstance(value, list) else [value]
    if isinstance(values[0], int):
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))
    texts = [text if isinstance(text, bytes) else text.encode() for text in values]
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=texts))


def run(tmp_path, splits, config=CONFIG, payload=example_gen_pb2.FORMAT_TF_EXAMPLE):
    """Runs the executor; returns (rows of each split, rows of rejects.tsv, counts)."""
    examples, pairs, rejects = (
        standard_artifacts.Examples(),
        standard_artifacts.Examples(),
        simple_artifacts.File(),
    )
    for artifact, name in ((examples, "examples"), (pairs, "pairs"), (rejects, "rejects")):
        artifact.uri = str(tmp_path / name)
    examples.split_names = json.dumps(list(splits))
    examples_utils.set_payload_format(examples, payload)
    for split, rows in splits.items():
        folder = tmp_path / "examples" / f"Split-{split}"
        folder.mkdir(parents=True)
        path = str(folder / "data_tfrecord-00000-of-00001.gz")
        with tf.io.TFRecordWriter(path, options="GZIP") as writer:
            for row in rows:
                features = {name: feature(value) for name, value in row.items()}
                example = tf.train.Example(features=tf.train.Features(feature=features))
                writer.write(example.SerializeToString())
    context = executor.Executor.Context(beam_pipeline_args=[], tmp_dir=str(tmp_path), unique_id="1")
    executor.Executor(context).Do(
        {"examples": [examples]},
        {"pairs": [pairs], "rejects": [rejects]},
        {"data_config": json.dumps(vars(config))},
    )
    assert pairs.split_names == '["train", "eval", "test"]'
    lines = (tmp_path / "rejects" / "rejects.tsv").read_text("utf-8").splitlines()
    counts = json.loads((tmp_path / "rejects" / "counts.json").read_text("utf-8"))
    return read_splits(pairs.uri), lines[1:], counts


def row(number, **changes):
    return {"english": f"hello {number}", "french": f"bonjour {number}", "domain": "web", **changes}


def test_every_example_is_a_pair_or_a_reject(tmp_path):
    bad = [
        row(90, french=None),
        row(91, english=["a", "b"]),
        row(92, english=b"\xff"),
        {"english": "x", "domain": "web"},
        row(3),
        row(50),
    ]
    splits = {
        "train": [row(number, domain=number) for number in range(30)] + bad,
        "eval": [row(50), row(50), row(51)],
    }
    found, rejects, counts = run(tmp_path, splits)
    shard = "Split-train/data_tfrecord-00000-of-00001.gz"
    assert [line.split("\t")[:3] for line in rejects] == [
        [shard, "31", "empty target"],
        [shard, "32", "more than one value of 'english'"],
        [shard, "33", "not valid UTF-8"],
        [shard, "34", "no feature 'french'"],
        [shard, "36", "also in a given eval file: Split-eval/data_tfrecord-00000-of-00001.gz:1"],
    ]
    assert rejects[3].endswith("\tfeatures: domain, english")
    assert (counts["read"], counts["kept"], counts["rejected"]) == (39, 34, 5)
    # The split that is there is taken as it is; the one that is not becomes a share of the other.
    assert [pair[2] for pair in found["eval"]] == ["hello 50", "hello 50", "hello 51"]
    assert found["test"] and len(found["train"]) + len(found["test"]) == 31
    pairs = sorted(pair for split in ("train", "test") for pair in found[split])
    assert pairs[1] == (shard, 2, "hello 1", "bonjour 1", "1")
    assert pairs[-1] == (shard, 35, "hello 3", "bonjour 3", "web")


def test_numbers_are_no_text(tmp_path):
    with pytest.raises(Exception, match="'english' holds numbers, such as 7, and not text: name"):
        run(tmp_path, {"train": [row(1, english=7)], "eval": [row(2)]})


def test_another_payload_is_refused(tmp_path):
    with pytest.raises(DataError, match="The examples are FORMAT_PARQUET: give those"):
        run(tmp_path, {"train": [row(1)]}, payload=example_gen_pb2.FORMAT_PARQUET)


def test_components_name_what_examples_lack():
    """Where examples of others are given to them as they are."""
    from components.example_texts import parse_texts

    examples = {
        "number": {"source": feature(7), "target": feature("x")},
        "none": {"english": feature("x"), "target": feature("x")},
    }
    for features in examples.values():
        example = tf.train.Example(features=tf.train.Features(feature=features))
        with pytest.raises(DataError, match=r"one text in source and target \(.*source.*Pairs"):
            parse_texts([example.SerializeToString()], ["source", "target"])


@pytest.mark.parametrize(
    "inputs",
    [{}, {"source": tf.constant([[1]])}, {"source": tf.sparse.from_dense([["a"]])}],
)
def test_the_transform_graph_names_what_the_schema_lacks(inputs):
    from pipeline.features.preprocessing import _text

    with pytest.raises(DataError, match="exactly one text 'source': convert .* PairsFromExamples"):
        _text(inputs, "source")
