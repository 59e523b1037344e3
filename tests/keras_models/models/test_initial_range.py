import keras
import numpy as np
import pytest

from keras_models.models import RecurrentSeq2Seq
from tests.keras_models.backends import (
    numpy,
)
from tests.keras_models.models.recurrent_cases import SOURCE_V, make


@pytest.mark.parametrize(
    "cell,head", [("gru", "pointer_generator"), ("lstm", "span_copy"), ("gru", "lexicon_bias")]
)
def test_initial_range(cell, head):
    """Embeddings and kernels fill the range, biases are what they are without it."""

    def drawn(seed, initial_range):
        keras.utils.set_random_seed(seed)
        lexicon = {"lexicon_shape": (SOURCE_V, 2)} if head.startswith("lexicon") else {}
        sizes = {"embedding_size": 12, "hidden_size": 16}
        model = RecurrentSeq2Seq(
            30, 40, head=head, cell=cell, initial_range=initial_range, **sizes, **lexicon
        )
        # Names of layers count on from one model to the next.
        return [
            (variable.path.split("/")[-1], numpy(variable.value))
            for variable in model.trainable_variables
        ]

    without, found = drawn(1, 0.0), drawn(1, 0.1)
    assert {"embeddings", "kernel", "recurrent_kernel", "feedback_kernel"} <= {
        kind for kind, _ in found
    }
    wide = []
    for (kind, before), (_, value) in zip(without, found, strict=True):
        if value.ndim < 2 or kind == "bias":
            np.testing.assert_array_equal(value, before)
        else:
            assert np.abs(value).max() <= 0.1
            wide.append(value.ravel())
    # No two are the same numbers.
    assert len({tuple(value[:10]) for value in wide}) == len(wide)
    values = np.concatenate(wide)
    assert abs(values.mean()) < 0.005 and abs(values.std() - 0.1 / np.sqrt(3)) < 0.003
    # The seed decides them.
    assert all(
        np.array_equal(again, value)
        for (_, again), (_, value) in zip(drawn(1, 0.1), found, strict=True)
    )
    assert not np.array_equal(drawn(2, 0.1)[0][1], found[0][1])


def test_composed_words_are_within_the_initial_range_too():
    """Of composed words the vectors are scaled: as large as those that are looked up."""
    keras.utils.set_random_seed(1)
    composition = {
        "composition": "sum",
        "composition_options": {"word_length": 3, "characters": 20},
    }
    model = RecurrentSeq2Seq(
        30, 40, embedding_size=64, hidden_size=8, initial_range=0.1, **composition
    )
    characters = np.random.default_rng(0).integers(4, 20, size=(1, 300))
    words = numpy(
        model.embed_source({"source_ids": np.full((1, 100), 5), "source_characters": characters})
    )
    assert abs(words.std() - 0.1 / np.sqrt(3)) < 0.02


def test_a_saved_model_keeps_its_initial_range(tmp_path):
    model = make(initial_range=0.2)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert again.get_config()["initial_range"] == 0.2
    for one, other in zip(model.weights, again.weights):
        np.testing.assert_array_equal(numpy(one.value), numpy(other.value))
