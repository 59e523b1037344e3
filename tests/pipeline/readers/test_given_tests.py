"""Files given as test split are measured whole: the longest text decides the last bucket."""

import dataclasses

import pytest

from pipeline.readers import given_tests
from pipeline.readers.formats import read_unit
from pipeline.readers.planning import plan_inputs
from pipeline.readers.records import Pair, Reject
from pipeline.recipes import loading
from pipeline.tasks import task_of


@pytest.fixture
def given(tmp_path):
    """A recipe whose given test file has a text of 150 tokens, and the plan of its files."""
    for name, words in (("train.tsv", (3, 150)), ("test.tsv", (4, 150))):
        lines = (f"{' '.join(['a'] * number)}\tb {name} {number}" for number in words)
        (tmp_path / name).write_text("source\ttarget\n" + "".join(f"{line}\n" for line in lines))
    recipe = loading.load_recipe(
        "localization_en_fr",
        [
            *("data.format=tsv", "data.train_files=['train.tsv']", "data.test_files=['test.tsv']"),
            *("data.max_tokens=100", "data.max_characters=200"),
            *("decoding.length_buckets=[20, 100]", "data.drop_identical=false"),
        ],
    )
    return recipe, plan_inputs(tmp_path, recipe.data)


def test_only_a_given_test_file_is_read_whole(given):
    recipe, plan = given
    train, test = plan.units
    kinds = [type(record) for record in read_unit(train, recipe.data, 150)]
    assert kinds == [Pair, Reject]
    assert [type(record) for record in read_unit(test, recipe.data, 150)] == [Pair, Pair]
    assert [type(record) for record in read_unit(test, recipe.data)] == [Pair, Reject]
    *_, last = read_unit(test, recipe.data, 149)
    assert last.reason == "longer than 149 tokens"


def test_the_recipe_gets_a_bucket_for_the_longest_text(given, caplog):
    recipe, plan = given
    with caplog.at_level("INFO", "verbatim.progress"):
        fitted = task_of(recipe).fitted_to(recipe, plan)
    assert fitted.decoding.length_buckets == (20, 100, 152)
    assert dataclasses.replace(fitted, decoding=recipe.decoding) == recipe
    assert "A text of the given test files has 150 tokens" in caplog.text
    # What fits changes nothing; nor do files that are divided, whose long texts are rejected.
    assert task_of(recipe).fitted_to(fitted, plan) == fitted
    divided = dataclasses.replace(recipe, data=dataclasses.replace(recipe.data, test_files=()))
    assert task_of(recipe).fitted_to(divided, plan) == divided


@pytest.mark.parametrize(
    "longest, buckets", [(0, (4, 9)), (9, (4, 9)), (10, (4, 9, 16)), (16, (4, 9, 16))]
)
def test_buckets(longest, buckets):
    assert given_tests.with_longer_bucket((4, 9), longest) == buckets
