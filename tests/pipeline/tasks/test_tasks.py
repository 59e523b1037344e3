"""The tasks: each has what every task must have, and refuses what it cannot do."""

import importlib

import pytest

from pipeline.recipes import loading
from pipeline.recipes.choices import TASKS
from pipeline.tasks import task_named, task_of
from pipeline.training.workers import WorkerPlace


@pytest.mark.parametrize("name", TASKS)
def test_a_task_names_what_is_there(name):
    task = task_named(name)
    module, _, function = task.preprocessing_fn.rpartition(".")
    assert callable(getattr(importlib.import_module(module), function))
    assert task.counts_output and task.text_features()


def test_a_recipe_has_its_task():
    assert task_of(loading.load_recipe("penn_treebank")) is task_named("language_model")
    assert task_of(loading.load_recipe("localization_en_fr")) is task_named("seq2seq")


def test_a_language_model_is_not_trained_by_several_workers():
    recipe = loading.load_recipe("penn_treebank")
    with pytest.raises(ValueError, match="is trained by one process: unset TF_CONFIG"):
        task_of(recipe).train(recipe, None, None, workers=WorkerPlace(2, 0))
