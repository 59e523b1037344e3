import gc

import keras
import numpy as np
import pytest

from keras_models.layers.recurrent import FeedbackCell, bidirectional
from tests.keras_models import oracles
from tests.keras_models.backends import numpy, randomize


@pytest.mark.parametrize("feedback", [True, False])
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_agrees_with_the_equations(cell, feedback):
    units, inputs_size, feedback_size = 3, 4, 5
    layer = FeedbackCell(units, cell, feedback=feedback)
    layer.build(inputs_size, feedback_size)
    randomize(layer)
    rng = np.random.default_rng(0)
    states = [rng.normal(size=(2, units)).astype("float32") for _ in range(1 if cell == "gru" else 2)]
    x = rng.normal(size=(2, inputs_size)).astype("float32")
    fed = rng.normal(size=(2, feedback_size)).astype("float32") if feedback else None
    result = numpy(layer(layer.project(keras.ops.convert_to_tensor(x)), states, fed))
    values = {weight.name: numpy(weight.value) for weight in layer.trainable_weights}
    assert ("feedback_kernel" in values) == feedback and ("recurrent_bias" in values) == (cell == "gru")
    weights = {
        "kernel": np.concatenate([values["kernel"], values["feedback_kernel"]]) if feedback else values["kernel"],
        "recurrent_kernel": values["recurrent_kernel"],
        "bias": np.stack([values["bias"], values["recurrent_bias"]]) if cell == "gru" else values["bias"],
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
    """Keras knows a layer that is copied by its id alone, which a later layer may have again (fails without the wrapper
    that keeps it)."""
    model, inputs = ManyEncoders(), np.ones((1, 2, 3), "float32")
    expected = numpy(model(inputs))
    assert len(model.trainable_weights) == 8 * 2 * 3  # What is kept has no weights and is no part of the model.
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    layers = {id(layer) for encoder in loaded.encoders for layer in (encoder.forward_layer, encoder.backward_layer)}
    assert len(layers) == 2 * 8
    np.testing.assert_allclose(numpy(loaded(inputs)), expected, rtol=1e-6)
