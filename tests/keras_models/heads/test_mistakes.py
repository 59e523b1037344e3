"""What a user of a head or a search gets wrong ends in a sentence that names the argument."""

import keras
import numpy as np
import pytest

from keras_models.decoding import StepOutput, beam_search, greedy_search
from keras_models.heads import HEADS, JointCopy, PointerGenerator

V, BATCH, STEPS, SOURCE, SIZE = 9, 2, 3, 4, 5


def arguments():
    return {
        "hidden": np.ones((BATCH, STEPS, SIZE), "float32"),
        "context": np.ones((BATCH, STEPS, SIZE), "float32"),
        "attention": np.full((BATCH, STEPS, SOURCE), 1 / SOURCE, "float32"),
        "inputs": np.ones((BATCH, STEPS, SIZE), "float32"),
        "memory_states": np.ones((BATCH, SOURCE, SIZE), "float32"),
        "source_extended_ids": np.full((BATCH, SOURCE), 2),
        "lexicon_ids": np.full((BATCH, SOURCE, 2), 3),
        "lexicon_probabilities": np.full((BATCH, SOURCE, 2), 0.5, "float32"),
        "targets": np.full((BATCH, STEPS), 2),
    }


@pytest.mark.parametrize("name", ["source_extended_ids", "targets"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "bfloat16"])
def test_ids_that_are_no_integers_are_refused(name, dtype):
    given = arguments()
    given[name] = keras.ops.cast(given[name], dtype)
    with pytest.raises(TypeError, match=f"PointerGenerator: {name} must be integers; got {dtype}"):
        PointerGenerator(V)(**given)


def test_an_input_without_a_type_is_refused():
    """Its ids are float32, which a policy of mixed precision would cast."""
    inputs = {
        name: keras.Input(value.shape[1:], dtype=str(value.dtype), name=name)
        for name, value in arguments().items()
    }
    inputs["targets"] = keras.Input((STEPS,), name="other")
    with pytest.raises(TypeError, match='Give keras.Input dtype="int32"'):
        JointCopy(V)(**inputs)


@pytest.mark.parametrize(
    ("head", "name"),
    [
        ("joint_copy", "memory_states"),
        ("joint_copy", "source_extended_ids"),
        ("pointer_generator", "attention"),
        ("pointer_generator", "context"),
        ("pointer_sentinel", "hidden"),
        ("lexicon_bias", "lexicon_ids"),
    ],
)
@pytest.mark.parametrize("is_none", [False, True])
def test_what_is_missing_is_named(head, name, is_none):
    given = {**arguments(), name: None}
    if not is_none:
        del given[name]
    layer = HEADS[head](V)
    with pytest.raises(ValueError, match=f"{type(layer).__name__} needs {name}: pass {name}=."):
        layer(**given)


def search(searched, **parts):
    rows = BATCH * (2 if searched is beam_search else 1)
    right = {
        "log_probs": np.zeros((rows, V + SOURCE), "float32"),
        "copy_log_probs": np.zeros((rows, SOURCE), "float32"),
        "attention": np.zeros((rows, SOURCE), "float32"),
    }
    options = {"beam_size": 2} if searched is beam_search else {}
    return searched(
        lambda actions, carry, index: StepOutput(
            **{name: parts.get(name, value) for name, value in right.items()}, carry=carry
        ),
        {"state": np.zeros((BATCH, 1), "float32")},
        np.full((BATCH, SOURCE), 2),
        np.ones((BATCH, SOURCE), bool),
        extended_size=V + SOURCE,
        max_length=2,
        **options,
    )


@pytest.mark.parametrize("searched", [greedy_search, beam_search])
@pytest.mark.parametrize(
    ("name", "width", "axis"),
    [
        ("log_probs", V, "extended_size 13"),
        ("copy_log_probs", SOURCE - 1, "source_length 4"),
        ("attention", SOURCE + 1, "source_length 4"),
    ],
)
def test_a_step_of_the_wrong_width_is_named(searched, name, width, axis):
    wrong = np.zeros((2 * BATCH, width), "float32")
    with pytest.raises(ValueError, match=f"the step function's {name} must .*, with {axis}; got"):
        search(searched, **{name: wrong})


def test_a_step_returns_a_step_output():
    with pytest.raises(TypeError, match="must return a StepOutput; got tuple"):
        greedy_search(
            lambda actions, carry, index: (1, 2),
            {},
            np.full((BATCH, SOURCE), 2),
            np.ones((BATCH, SOURCE), bool),
            extended_size=V + SOURCE,
            max_length=2,
        )
