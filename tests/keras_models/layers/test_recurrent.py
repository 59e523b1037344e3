import gc

import keras
import numpy as np
import pytest

from keras_models.layers.recurrent import GRU, LSTM, FeedbackCell, bidirectional
from tests.keras_models import oracles
from tests.keras_models.backends import numpy, randomize, value_and_gradients


@pytest.mark.parametrize("feedback", [True, False])
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_agrees_with_the_equations(cell, feedback):
    units, inputs_size, feedback_size = 3, 4, 5
    layer = FeedbackCell(units, cell, feedback=feedback)
    layer.build(inputs_size, feedback_size)
    randomize(layer)
    rng = np.random.default_rng(0)
    states = [
        rng.normal(size=(2, units)).astype("float32") for _ in range(1 if cell == "gru" else 2)
    ]
    x = rng.normal(size=(2, inputs_size)).astype("float32")
    fed = rng.normal(size=(2, feedback_size)).astype("float32") if feedback else None
    result = numpy(layer(layer.project(keras.ops.convert_to_tensor(x)), states, fed))
    values = {weight.name: numpy(weight.value) for weight in layer.trainable_weights}
    assert ("feedback_kernel" in values) == feedback and ("recurrent_bias" in values) == (
        cell == "gru"
    )
    weights = {
        "kernel": np.concatenate([values["kernel"], values["feedback_kernel"]])
        if feedback
        else values["kernel"],
        "recurrent_kernel": values["recurrent_kernel"],
        "bias": np.stack([values["bias"], values["recurrent_bias"]])
        if cell == "gru"
        else values["bias"],
    }
    for row in range(2):
        joined = np.concatenate([x[row], fed[row]]) if feedback else x[row]
        expected = oracles.recur(cell, joined, [state[row] for state in states], weights)
        assert len(result) == len(expected)
        for actual, wanted in zip(result, expected):
            np.testing.assert_allclose(actual[row], wanted, rtol=0, atol=1e-5)


def test_config_round_trip_and_errors():
    layer = FeedbackCell(3, "lstm", feedback=False, name="mine", dtype="mixed_bfloat16")
    assert FeedbackCell.from_config(layer.get_config()).get_config() == layer.get_config()
    assert layer.get_config()["cell"] == "lstm" and layer.get_config()["feedback"] is False
    with pytest.raises(ValueError, match="cell must be one of gru, lstm; got 'rnn'"):
        FeedbackCell(3, "rnn")


@keras.saving.register_keras_serializable("verbatim_tests")
class ManyEncoders(keras.Model):
    """Builds many wrappers, and lets go of what nobody holds in between."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.encoders = []
        for index in range(8):
            self.encoders.append(bidirectional(keras.layers.GRU(1), name=f"encoder_{index}"))
            gc.collect()

    def call(self, inputs):
        return sum(encoder(inputs) for encoder in self.encoders)

    def get_config(self):
        return {}


def test_loading_keeps_wrapped_layers_apart(tmp_path):
    """Keras knows a copied layer by its id alone, which a later layer may have again.

    It fails without the wrapper that keeps the layer.
    """
    model, inputs = ManyEncoders(), np.ones((1, 2, 3), "float32")
    expected = numpy(model(inputs))
    assert (
        len(model.trainable_weights) == 8 * 2 * 3
    )  # What is kept has no weights and is no part of the model.
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    layers = {
        id(layer)
        for encoder in loaded.encoders
        for layer in (encoder.forward_layer, encoder.backward_layer)
    }
    assert len(layers) == 2 * 8
    np.testing.assert_allclose(numpy(loaded(inputs)), expected, rtol=1e-6)


LAYERS = {"gru": (GRU, keras.layers.GRU), "lstm": (LSTM, keras.layers.LSTM)}


def alike(cell, dtype=None, **options):
    """Ours and Keras' layer with the same weights."""
    ours, theirs = (
        kind(3, return_sequences=True, return_state=True, dtype=dtype, **options)
        for kind in LAYERS[cell]
    )
    for layer in (ours, theirs):
        layer.build((None, None, 4))
    randomize(theirs)
    assert [weight.path.split("/")[1:] for weight in ours.weights] == [
        w.path.split("/")[1:] for w in theirs.weights
    ]
    ours.set_weights([numpy(value) for value in theirs.get_weights()])
    return ours, theirs


@pytest.mark.parametrize("go_backwards", [False, True])
@pytest.mark.parametrize("cell", list(LAYERS))
def test_inputs_projected_before_the_loop_change_nothing(cell, go_backwards):
    ours, theirs = alike(cell, go_backwards=go_backwards)
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(5, 6, 4)).astype("float32")
    # Full, padded, single and empty rows.
    mask = np.arange(6) < np.array([6, 4, 1, 0, 3])[:, np.newaxis]
    for given in (None, mask):
        for one, other in zip(ours(inputs, mask=given), theirs(inputs, mask=given)):
            np.testing.assert_allclose(numpy(one), numpy(other), rtol=0, atol=1e-6)

    def loss(layer):
        return lambda values: keras.ops.sum(layer(values, mask=mask)[0] ** 2)

    found, expected = (
        value_and_gradients(loss(layer), [inputs], layer) for layer in (ours, theirs)
    )
    for one, other in zip(keras.tree.flatten(found), keras.tree.flatten(expected)):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("cell", list(LAYERS))
def test_the_projection_is_one_product(cell):
    ours, _ = alike(cell)
    shapes = []
    project = ours.cell.project
    ours.cell.project = lambda values: shapes.append(tuple(values.shape)) or project(values)
    # With a mask: without one newer Keras on JAX has a GRU of its own that does the same.
    ours(np.ones((2, 6, 4), "float32"), mask=np.ones((2, 6), "bool"))
    assert shapes == [(2, 6, 4)]


@pytest.mark.parametrize("cell", list(LAYERS))
def test_projecting_layers_in_bfloat16_and_from_a_file(cell, tmp_path):
    ours, theirs = alike(cell, dtype="mixed_bfloat16")
    inputs = np.random.default_rng(0).normal(size=(2, 6, 4)).astype("float32")
    states, expected = ours(inputs), theirs(inputs)
    assert keras.backend.standardize_dtype(states[0].dtype) == "bfloat16"
    np.testing.assert_allclose(
        numpy(states[0]).astype("float32"), numpy(expected[0]).astype("float32"), atol=0.02
    )
    model = keras.Sequential(
        [keras.Input((None, 4)), bidirectional(LAYERS[cell][0](3), name="both")]
    )
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert type(loaded.layers[0].forward_layer) is LAYERS[cell][0]
    np.testing.assert_allclose(numpy(loaded(inputs)), numpy(model(inputs)), rtol=1e-6)


@pytest.mark.parametrize("cell", list(LAYERS))
@pytest.mark.parametrize(
    "options", [{"dropout": 0.1}, {"recurrent_dropout": 0.1}, {"use_bias": False}]
)
def test_what_projecting_layers_cannot_do(cell, options):
    with pytest.raises(ValueError, match="are not supported"):
        LAYERS[cell][0](3, **options)
    with pytest.raises(ValueError, match="reset_after=False is not supported"):
        GRU(3, reset_after=False)
