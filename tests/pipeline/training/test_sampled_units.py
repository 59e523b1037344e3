"""Pairs that are cut anew in each epoch: the same texts, features by the same function, and draws
that depend on seed and epoch alone.
"""

import dataclasses

import numpy as np
import pytest

from pipeline.features import feature_names
from pipeline.text import tokenization
from tests.pipeline.export.tiny_models import make_recipe, transform_tiny, write_examples

pytestmark = pytest.mark.slow

NAMES = ["nation", "national", "station", "rational", "ration", "%s", "<b>", "relation", "(rat)"]
ROWS = [
    (f"greet {first} and {second}", f"{second} et {first}{end}")
    for first in NAMES
    for second in NAMES[:4]
    for end in ("", " %(x)s")
]


def make(folder, sampling="both", **sections):
    """Transforms `ROWS`; returns the recipe, the `TFTransformOutput` and the examples' pattern."""
    sections = {"data": {}, "training": {}, **sections}
    recipe = make_recipe(
        **{
            **sections,
            "data": {"units": "subwords", "tokenization": "text", **sections["data"]},
            "vocabulary": {"pieces": 300, **sections.get("vocabulary", {})},
            "training": {
                "bucket_lengths": [12, 16, 40],
                "subword_sampling": sampling,
                **sections["training"],
            },
        }
    )
    lexicon = {"n": {"￭a": 0.75, "et": 0.25}, "and": {"et": 1.0}}
    output = transform_tiny(folder, recipe, ROWS, [], [], lexicon)
    for part in range(2):
        write_examples(str(folder / f"{part}.gz"), output, ROWS[part::2], ("source", "target"))
    return recipe, output, [str(folder / "*.gz")]


def split_of(recipe, files, cutting):
    from pipeline.training.loaded_split import LoadedSplit

    return LoadedSplit.read(files, "training", recipe, recipe.training.seed, cutting=cutting)


def epoch_of(split, number=0, first=0):
    return [
        (inputs, labels)
        for inputs, labels in split.batches.epoch(number, first).as_numpy_iterator()
    ]


def assert_same(one, two):
    for (inputs, labels), (others, other_labels) in zip(one, two, strict=True):
        assert set(inputs) == set(others)
        for name in inputs:
            np.testing.assert_array_equal(inputs[name], others[name], err_msg=name)
        np.testing.assert_array_equal(labels, other_labels)


def rows_of(batches):
    """All pairs in one order, each as the values of its features without padding."""
    found = []
    for inputs, _ in batches:
        for row in range(len(inputs["source_ids"])):
            pair = []
            for name in sorted(inputs):
                values = inputs[name][row].tolist()
                while values and values[-1] == feature_names.PADDING.get(name, 0):
                    values.pop()
                pair.append((name, tuple(values)))
            found.append(tuple(pair))
    return sorted(found)


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    return make(tmp_path_factory.mktemp("both"))


@pytest.mark.parametrize(
    "sections",
    [
        {"model": {"head": "span_copy"}},
        {"data": {"source_units": "words"}, "model": {"head": "pointer_softmax"}},
        {
            "model": {"head": "lexicon_linear", "composition": "sum"},
            "lexicon": {"kind": "learned"},
            "decoding": {"replace_unknown": "lexicon"},
            "vocabulary": {"joint": True},
        },
    ],
)
def test_the_best_cuts_have_the_features_of_the_transform_graph(tmp_path, sections):
    from pipeline.training.sampled_units import SampledUnits

    recipe, output, files = make(tmp_path, "target", **sections)
    cutting = SampledUnits.of(recipe, output)
    assert set(cutting.samplers) == ({"target"} if "data" in sections else {"source", "target"})
    for sampler in cutting.samplers.values():
        sampler._best = 1
    assert set(cutting.names) > set(feature_names.ID_FEATURES) or "data" in sections
    one, two = (rows_of(epoch_of(split_of(recipe, files, each))) for each in (cutting, None))
    # Pairs have another order: it depends on their words, too.
    assert len(one) == len(ROWS) and one == two


def texts_of(batches, output):
    """The texts of both sides, read from ids alone, with how they are cut: `(source, target)`."""
    from pipeline.features import transform_assets, vocabulary_files

    words = {
        side: transform_assets.read_vocabulary(output, vocabulary_files.vocabulary_file(side))
        for side in vocabulary_files.SIDES
    }
    found = []
    for inputs, labels in batches:
        for row, label in enumerate(labels):
            extended = inputs["source_extended_ids"][row]
            source = [words["source"][number] for number in inputs["source_ids"][row] if number]
            target = []
            for number in label[label > 0][:-1]:
                size = len(words["target"])
                if number >= size:
                    # A copy: the first place of a token, which the source vocabulary knows or not.
                    assert extended[number - size] == number
                    target.append(source[number - size])
                else:
                    target.append(words["target"][number])
            found.append((tuple(source), tuple(target)))
    return found


def joined(units):
    # Unknown placeholders are classes in the source's vocabulary, and copies in the target.
    return " ".join(units).replace(f" {tokenization.JOINER}", "").replace(tokenization.JOINER, "")


def test_an_epoch_has_the_texts_in_other_units(both):
    from pipeline.training.sampled_units import SampledUnits

    recipe, output, files = both
    split = split_of(recipe, files, SampledUnits.of(recipe, output))
    plain = texts_of(epoch_of(split_of(recipe, files, None)), output)
    seen = [set(), set()]
    for number in range(3):
        drawn = texts_of(epoch_of(split, number), output)
        assert sorted(tuple(map(joined, pair)) for pair in drawn) == sorted(
            tuple(map(joined, pair)) for pair in plain
        )
        for side in (0, 1):
            seen[side] |= {pair[side] for pair in drawn}
    for side in (0, 1):
        assert len(seen[side]) > 2 * len({pair[side] for pair in plain})
    assert split.pairs == len(ROWS) and split.batches.steps == len(list(split.batches.epoch()))


def test_draws_depend_on_seed_and_epoch_alone(both, tmp_path):
    from pipeline.training.sampled_units import SampledUnits

    recipe, output, files = both
    cutting = SampledUnits.of(recipe, output)
    split = split_of(recipe, files, cutting)
    first = epoch_of(split, 1)
    assert_same(first, epoch_of(split, 1))
    # A training that is resumed begins at its batch; another worker reads files of another order.
    assert_same(first[2:], epoch_of(split, 1, first=2))
    for part in range(3):
        write_examples(
            str(tmp_path / f"{part}.gz"), output, ROWS[::-1][part::3], ("source", "target")
        )
    again = split_of(recipe, [str(tmp_path / "*.gz")], SampledUnits.of(recipe, output))
    assert again.digest == split.digest
    assert_same(first, epoch_of(again, 1))
    others = [epoch_of(split, 2)]
    others.append(epoch_of(split_of(recipe, files, dataclasses.replace(cutting, seed=5)), 1))
    for other in others:
        assert texts_of(other, output) != texts_of(first, output)


def test_one_side_alone(tmp_path):
    from pipeline.training.sampled_units import SampledUnits

    recipe, output, files = make(tmp_path, "source")
    split = split_of(recipe, files, SampledUnits.of(recipe, output))
    plain = set(texts_of(epoch_of(split_of(recipe, files, None)), output))
    drawn = [pair for number in range(3) for pair in texts_of(epoch_of(split, number), output)]
    assert len({source for source, _ in drawn}) > 2 * len({source for source, _ in plain})
    # Where a target copies a piece is another place then; its pieces are the same.
    assert {target for _, target in drawn} == {target for _, target in plain}


def test_a_training_reads_them(tmp_path):
    from pipeline.training import trainer
    from pipeline.training.model_inputs import ModelInputs
    from pipeline.training.sampled_units import SampledUnits
    from pipeline.training.training_inputs import TrainingInputs

    recipe, output, files = make(tmp_path, "both", training={"epochs": 2})
    inputs = TrainingInputs(files, files, ModelInputs.of(recipe, output))
    sampled = dataclasses.replace(inputs, cutting=SampledUnits.of(recipe, output))
    curves = [trainer.train(recipe, each)[1]["curve"] for each in (sampled, sampled, inputs)]
    losses = [[point["loss"] for point in curve] for curve in curves]
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-4)
    assert np.isfinite(losses[0]).all() and losses[0][1] < losses[0][0]
    assert abs(losses[0][0] - losses[2][0]) > 1e-3
