"""The examples in the docstrings do what they say, on either backend.

`help()` shows them to people who paste them into a fresh interpreter, so they import what they use.
"""

import doctest
import importlib
import pkgutil

import pytest

import keras_models
from tests.docstring_examples import assert_holds, names_with_examples


def examples():
    """Returns the docstrings with examples of every module."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    found = []
    for info in pkgutil.walk_packages(keras_models.__path__, "keras_models."):
        module = importlib.import_module(info.name)
        # Nothing of the module itself is at hand.
        found += finder.find(module, info.name, globs={})
    return [example for example in found if example.examples]


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.name)
def test_an_example_holds(example):
    if "keras_hub" in example.docstring:
        pytest.importorskip("keras_hub", exc_type=ImportError)
    assert_holds(example)


def test_every_layer_head_body_and_loss_has_an_example():
    with_examples = names_with_examples(examples())
    names = {
        **vars(keras_models.layers),
        **vars(keras_models.heads),
        **vars(keras_models.models),
        "NegativeLogLikelihood": keras_models.losses.NegativeLogLikelihood,
    }
    public = {name for name, value in names.items() if isinstance(value, type)}
    # Those that are made for others alone.
    assert public - {"CopyHead", "FeedbackCell"} <= with_examples
