import keras
import numpy as np
import pytest

from keras_models.layers.recurrent import FeedbackCell
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
