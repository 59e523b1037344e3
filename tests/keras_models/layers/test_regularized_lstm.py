import keras
import numpy as np
import pytest

from keras_models.layers import VariationalDropout, ZoneoutLSTM
from tests.keras_models import sentinel_oracle
from tests.keras_models.backends import numpy, randomize


def lstm_weights(layer):
    return {weight.name: numpy(weight.value) for weight in layer.trainable_weights}


def make(units=3, size=4, **kwargs):
    layer = ZoneoutLSTM(units, **kwargs)
    layer.build((None, None, size))
    randomize(layer)
    return layer


@pytest.mark.parametrize("rates", [(0.0, 0.0), (0.25, 0.5)])
def test_inference_is_the_expectation_and_agrees_with_the_equations(rates):
    layer = make(zoneout_hidden=rates[0], zoneout_cell=rates[1])
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 5, 4)).astype("float32")
    states = [rng.normal(size=(2, 3)).astype("float32") for _ in range(2)]
    outputs, cells = numpy(layer(x, states))
    for row in range(2):
        h, c = (state[row].astype("float64") for state in states)
        for t in range(5):
            h, c = sentinel_oracle.zoneout_lstm(x[row, t], h, c, lstm_weights(layer), *rates)
            np.testing.assert_allclose(outputs[row, t], h, rtol=0, atol=1e-5)
            np.testing.assert_allclose(cells[row, t], c, rtol=0, atol=1e-5)
    # A call goes on from any step, and the step form does the same.
    rest = numpy(layer(x[:, 2:], [outputs[:, 1], cells[:, 1]]))
    np.testing.assert_allclose(rest[0], outputs[:, 2:], rtol=0, atol=1e-6)
    np.testing.assert_allclose(rest[1], cells[:, 2:], rtol=0, atol=1e-6)
    single = numpy(layer.step(x[:, 2], [outputs[:, 1], cells[:, 1]]))
    np.testing.assert_allclose(single[0], outputs[:, 2], rtol=0, atol=1e-6)


def test_zoneout_keeps_units_at_random_in_training_anew_each_step():
    layer = make(units=50, size=4, zoneout_hidden=0.3, zoneout_cell=0.6, seed=1)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4, 20, 4)).astype("float32")
    zeros = np.zeros((4, 50), "float32")
    outputs, cells = numpy(layer(x, [zeros, zeros], training=True))
    for values, rate in ((outputs, 0.3), (cells, 0.6)):
        kept = np.diff(np.concatenate([zeros[:, None], values], axis=1), axis=1) == 0
        assert abs(kept.mean() - rate) < 0.03
        # Neither locked across time nor across the batch.
        assert (kept[:, 1:] != kept[:, :-1]).any() and (kept[0] != kept[1]).any()
    # h' is made of the new cell even where the cell itself is kept (Krueger 2016).
    new_h, new_c = numpy(
        layer.cell(layer.cell.project(keras.ops.convert_to_tensor(x[:, 0])), [zeros, zeros])
    )
    changed = outputs[:, 0] != 0
    np.testing.assert_allclose(outputs[:, 0][changed], new_h[changed], rtol=0, atol=1e-6)
    again, _ = numpy(layer(x, [zeros, zeros], training=True))
    assert (again != outputs).any()


def test_without_zoneout_training_is_inference():
    layer = make()
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype("float32")
    np.testing.assert_array_equal(numpy(layer(x, training=True))[0], numpy(layer(x))[0])


def test_variational_dropout_locks_its_mask_across_time():
    layer = VariationalDropout(0.4, seed=1)
    y = numpy(layer(np.ones((8, 6, 200), "float32"), training=True))
    assert (y == y[:, :1]).all()
    assert (y[0] != y[1]).any()
    assert set(np.unique(y)) == {np.float32(0), np.float32(1 / 0.6)}
    assert abs((y[:, 0] == 0).mean() - 0.4) < 0.03
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype("float32")
    np.testing.assert_array_equal(numpy(layer(x)), x)
    mask = numpy(layer.mask(8, 200))
    assert mask.shape == (8, 200) and abs((mask == 0).mean() - 0.4) < 0.05
    np.testing.assert_array_equal(numpy(VariationalDropout(0.0)(x, training=True)), x)


def test_configs_and_errors():
    layer = ZoneoutLSTM(3, 0.1, 0.2, seed=4, dtype="mixed_bfloat16")
    assert ZoneoutLSTM.from_config(layer.get_config()).get_config() == layer.get_config()
    assert (layer.get_config()["zoneout_hidden"], layer.get_config()["zoneout_cell"]) == (0.1, 0.2)
    drop = VariationalDropout(0.3, seed=2)
    assert VariationalDropout.from_config(drop.get_config()).get_config() == drop.get_config()
    with pytest.raises(ValueError, match="zoneout_cell must be between 0 and 1; got 1.5"):
        ZoneoutLSTM(3, 0.1, 1.5)
    with pytest.raises(ValueError, match="rate must be at least 0 and below 1; got 1"):
        VariationalDropout(1)


def test_mixed_precision_and_saving(tmp_path):
    inputs = keras.Input((None, 4))
    hidden = VariationalDropout(0.5, dtype="mixed_bfloat16")(inputs)
    outputs, _ = ZoneoutLSTM(3, 0.1, 0.2, dtype="mixed_bfloat16")(hidden)
    model = keras.Model(inputs, outputs)
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype("float32") * 100
    value = numpy(keras.ops.cast(model(x, training=True), "float32"))
    assert (
        np.isfinite(value).all() and keras.backend.standardize_dtype(model(x).dtype) == "bfloat16"
    )
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(
        *(numpy(keras.ops.cast(m(x), "float32")) for m in (model, loaded))
    )
