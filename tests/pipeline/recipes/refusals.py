"""How tests ask for a recipe that is refused."""

import pytest

from pipeline.recipes.fields import RecipeError


def refusal(function, *arguments):
    """The sentence with which a call is refused."""
    with pytest.raises(RecipeError) as caught:
        function(*arguments)
    sentence = str(caught.value)
    assert "\n" not in sentence and sentence[-1] in ".?" and not sentence.endswith("..")
    return sentence


def nested(key, value):
    """A recipe's dict with one key set."""
    return tree_of({key: value})


def tree_of(settings):
    """A recipe's dict with some keys set, by their dotted names."""
    tree = {"name": "test"}
    for key, value in settings.items():
        *sections, last = key.split(".")
        inner = tree
        for section in sections:
            inner = inner.setdefault(section, {})
        inner[last] = value
    return tree
