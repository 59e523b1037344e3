"""What the Evaluator's extractors do to batches of examples."""

import os

import apache_beam as beam
import pyarrow
import pytest
import tensorflow_model_analysis as tfma
from apache_beam.testing import util
from apache_beam.testing.test_pipeline import TestPipeline

from pipeline.evaluation.extractors import MODULE, MakeLargerBatches
from pipeline.export import shared_model
from pipeline.recipes.recipe import recipe_from_dict
from pipeline.tasks import task_of
from tests.pipeline.evaluation.evaluated_models import evaluate


@pytest.mark.parametrize("size", [4, 100])
def test_the_examples_of_small_batches_are_put_into_large_ones(size):
    words = [["a"], [], None, ["b", "c"], ["d"], [], ["e"], ["f"], ["g", "h"], ["i"]]

    def batch(first, last):
        rows = range(first, last)
        columns = [
            pyarrow.array(words[first:last], pyarrow.list_(pyarrow.string())),
            pyarrow.array([[i] for i in rows]),
        ]
        return {
            tfma.ARROW_RECORD_BATCH_KEY: pyarrow.RecordBatch.from_arrays(
                columns, ["words", "number"]
            )
        }

    def check(found):
        batches = [one[tfma.ARROW_RECORD_BATCH_KEY].to_pydict() for one in found]
        assert max(len(one["number"]) for one in batches) <= size
        assert len(batches) < 5
        pairs = [pair for one in batches for pair in zip(one["number"], one["words"], strict=True)]
        assert sorted(pairs, key=lambda pair: pair[0]) == [
            ([i], row) for i, row in enumerate(words)
        ]

    with TestPipeline() as pipeline:
        small = pipeline | beam.Create(
            [[batch(0, 1), batch(1, 2), batch(2, 4), batch(4, 4), batch(4, 10)]]
        )
        util.assert_that(
            small | beam.FlatMap(lambda batches: batches) | MakeLargerBatches(size), check
        )


def test_every_evaluation_of_texts_decodes_large_batches():
    """Also one that asks for no feature of ours."""
    recipe = recipe_from_dict({"name": "plain", "evaluation": {"metrics": ["bleu"]}})
    assert task_of(recipe).evaluator_module() == MODULE


def test_the_candidate_is_left_for_the_reporter(models, tmp_path):
    """It is loaded once in this process; the last blessed model is not left."""
    evaluate(tmp_path, {"metrics": ["bleu"]}, models["damaged"], last_blessed=models["good"])
    ((directory, _),) = shared_model._left
    assert directory == os.path.realpath(models["damaged"])
    left = next(iter(shared_model._left.values()))
    assert shared_model.load(models["damaged"]) is left
