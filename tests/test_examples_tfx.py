"""The examples for users of TFX: pipelines in which components of TFX's and ours mix."""

import importlib.util
import itertools
import json
import pathlib

import pytest

from tests.end_to_end.conftest import ENDS, NOUNS, VERBS

pytestmark = pytest.mark.slow
FOLDER = pathlib.Path(__file__).parents[1] / "examples" / "tfx"


def load(name):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(pipeline, to=None):
    """Runs a pipeline, or what a component of it needs."""
    import tfx.v1 as tfx
    from tfx.orchestration.pipeline import RunOptions

    options = RunOptions(to_nodes=[to]) if to else None
    tfx.orchestration.LocalDagRunner().run(pipeline, options)


def rows():
    """Commands of the domain shop, and questions of the domain help."""
    for verb, noun, end in itertools.product(VERBS, NOUNS, ENDS):
        yield f"{verb} {noun}{end}", f"{VERBS[verb]} {NOUNS[noun]}{ENDS[end]}", "shop"
        yield (
            f"How to {verb} {noun}{end}",
            f"Comment {VERBS[verb]} {NOUNS[noun]}{ENDS[end]}",
            "help",
        )


def write_table(path, header, more=()):
    lines = [header, *(",".join(row) for row in rows()), *more]
    path.parent.mkdir()
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return len(lines) - 1


def artifact(output, component, name):
    """The folder of the only artifact of an output."""
    (folder,) = (output / "artifacts" / component / name).iterdir()
    return folder


def version_of(output):
    (version,) = (output / "models").iterdir()
    return version


def test_tfxs_examples_feed_our_line(tmp_path):
    """Up to the features; the rest of the pipeline is made."""
    import tensorflow as tf

    # An empty cell is no translation.
    count = write_table(tmp_path / "data" / "a.csv", "english,french,domain", ["Save,,shop"])
    example = load("csv_to_model")
    settings = ("data.test_share=0.2", "vocabulary.min_count=1")
    pipeline = example.create_pipeline(str(tmp_path / "data"), str(tmp_path), settings)
    # What follows is what the tests of whole lines run; here it would take a minute.
    run(pipeline, to="TextTransform")
    folder = artifact(tmp_path, "PairsFromExamples", "rejects")
    counts = json.loads((folder / "counts.json").read_text())
    assert (counts["read"], counts["rejected"]) == (count, 1)
    assert counts["by_reason"] == {"empty target": 1}
    assert min(counts["by_split"].values()) > 0
    folder = artifact(tmp_path, "Vocabulary", "vocabulary")
    assert "Comment" in (folder / "target_vocabulary.txt").read_text().splitlines()
    folder = artifact(tmp_path, "TextTransform", "transformed_examples")
    for split, expected in counts["by_split"].items():
        files = list(map(str, (folder / f"Split-{split}").iterdir()))
        records = list(tf.data.TFRecordDataset(files, "GZIP").as_numpy_iterator())
        assert len(records) == expected
        features = tf.train.Example.FromString(records[0]).features.feature
        assert features["source_ids"].int64_list.value


def test_our_examples_feed_the_users_own_transform_and_trainer(tmp_path):
    import tensorflow as tf

    write_table(tmp_path / "data" / "a.csv", "source,target,domain")
    example = load("own_trainer")
    run(example.create_pipeline(str(tmp_path / "data"), str(tmp_path), train_steps=30))
    served = tf.saved_model.load(str(version_of(tmp_path))).signatures["serving_default"]
    texts = ["How to Open folder now", "Close image"]
    assert served(source=tf.constant(texts))["domain"].numpy().tolist() == [b"help", b"shop"]
