"""The component that learns units: a model for each side, and a check of the test split."""

import json

import pytest

from pipeline.text import units
from tests.components.test_vocabulary import write_examples

PAIRS = [(f"red house {n} stones", f"maison rouge {n} pierres") for n in range(9)]


def run(tmp_path, test=(("red", "rouge"),), **config):
    """Runs the executor; returns the folder that it wrote."""
    from tfx.types import standard_artifacts
    from tfx.types.experimental import simple_artifacts

    from components.subwords import executor

    examples, subwords = standard_artifacts.Examples(), simple_artifacts.File()
    examples.uri, subwords.uri = str(tmp_path / "examples"), str(tmp_path / "subwords")
    examples.split_names = '["train", "eval", "test"]'
    write_examples(tmp_path / "examples", PAIRS)
    write_examples(tmp_path / "test", test)
    (tmp_path / "test" / "Split-train").rename(tmp_path / "examples" / "Split-test")
    context = executor.Executor.Context(beam_pipeline_args=[], tmp_dir=str(tmp_path), unique_id="1")
    settings = {
        "tokenizer": {"kind": "whitespace"},
        "units": "characters",
        "pieces": 300,
        "joint": False,
        "longest": 20,
    }
    executor.Executor(context).Do(
        {"examples": [examples]},
        {"subwords": [subwords]},
        {"subwords_config": json.dumps({**settings, **config})},
    )
    return subwords.uri


@pytest.mark.slow
@pytest.mark.parametrize("joint", [False, True])
def test_each_side_has_the_characters_of_its_words(tmp_path, joint):
    folder = run(tmp_path, joint=joint)
    source, target = (
        set(units.possible_units(units.read_model(folder, side))) for side in ("source", "target")
    )
    assert {"h", "￭h", "￭<0xC3>", "0", "<0xFF>￭"} <= source and {"g", "￭g"} <= target
    assert ("g" in source) == joint == (source == target)


@pytest.mark.slow
def test_what_cannot_be_served_is_known_before_a_training(tmp_path):
    long = "stones " * 4
    with pytest.raises(
        ValueError,
        match=r"has 24 units, but the last of decoding.length_buckets is 20: .* It is the source "
        r"'stones st",
    ):
        run(tmp_path, test=[("red", "rouge"), (long, "x")])


def test_the_same_words_give_the_same_bytes():
    """So runs can be compared, and a repeated one finds what was made of the model."""
    from components.subwords import executor

    counts = {"maison": 3, "raison": 2, "pierre": 5}
    models = [executor.train(dict(order), "characters", 300) for order in _orders(counts)]
    assert models[0] == models[1]


def _orders(counts):
    return list(counts.items()), list(reversed(counts.items()))


@pytest.mark.slow
def test_too_few_pieces(tmp_path):
    with pytest.raises(
        ValueError, match=r"Units cannot be learned: .* \(vocabulary.pieces is 257\)"
    ):
        run(tmp_path, units="subwords", pieces=257)
