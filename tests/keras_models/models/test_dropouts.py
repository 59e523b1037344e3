"""Dropout of words, outputs, recurrent states, attention and feed-forward networks."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_models import losses
from keras_models.layers.recurrent import GRU, LSTM
from keras_models.layers.transformer import MultiHeadAttention, TransformerEncoderLayer
from tests.keras_models import recurrent_oracles
from tests.keras_models.backends import numpy, outputs, randomize
from tests.keras_models.models.test_bodies import SIZE, make, pairs

RATES = {"embedding_dropout": 0.2, "word_dropout": 0.3, "output_dropout": 0.25}


def fix_masks(monkeypatch, mask):
    """Makes `keras.random.dropout` multiply by a mask of the last axis' units."""

    def multiply(inputs, rate, noise_shape=None, seed=None):
        return inputs * ops.cast(mask[: inputs.shape[-1]], inputs.dtype)

    monkeypatch.setattr(keras.random, "dropout", multiply)


@pytest.mark.parametrize("kind", [GRU, LSTM])
def test_recurrent_layers_agree_with_the_equations(kind, monkeypatch):
    inputs = np.random.default_rng(0).normal(size=(2, 5, 4)).astype("float32")
    layer = kind(3, state_dropout=0.5, return_sequences=True)
    layer.build(inputs.shape)
    randomize(layer)
    mask = recurrent_oracles.dropout_mask([True, False, True], 0.5)
    fix_masks(monkeypatch, mask)
    found = numpy(layer(inputs, training=True))
    weights = [numpy(weight.value) for weight in layer.trainable_weights]
    zeros, ones = np.zeros(3), np.ones(4)
    for row in range(2):
        if kind is GRU:
            expected = recurrent_oracles.variational_gru(inputs[row], zeros, *weights, ones, mask)
        else:
            expected = recurrent_oracles.variational_lstm(
                inputs[row], zeros, zeros, *weights, ones, mask
            )
        np.testing.assert_allclose(found[row], expected[0], rtol=0, atol=1e-5)
    # At inference nothing is dropped.
    plain = kind(3, return_sequences=True)
    plain.build(inputs.shape)
    plain.set_weights(layer.get_weights()[:3])
    np.testing.assert_allclose(numpy(layer(inputs)), numpy(plain(inputs)), rtol=0, atol=1e-6)
    again = kind.from_config(layer.get_config())
    assert again.state_dropout == 0.5


@pytest.mark.parametrize("body", ["gru", "lstm"])
def test_states_of_a_recurrent_body_are_dropped_in_encoder_and_decoder(body, monkeypatch):
    """Dropping a unit of all states is a kernel whose row is 0."""
    inputs, mask = pairs(), np.array([2.0, 0.0, 2.0, 2.0] * 2)
    model = make(body, recurrent_dropout=0.5)
    randomize(model)
    fix_masks(monkeypatch, mask)
    found = numpy(model(inputs, training=True))
    undropped = numpy(model(inputs))
    for layer in model.encoder:
        for cell in (layer.forward_layer.cell, layer.backward_layer.cell):
            cell.recurrent_kernel.assign(cell.recurrent_kernel * mask[: SIZE // 2, None])
    kernel = model.cell.recurrent_kernel
    kernel.assign(kernel * mask[:, None])
    real = numpy(inputs["target_extended_ids"]) != 0
    expected = numpy(model(inputs))
    np.testing.assert_allclose(found[real], expected[real], rtol=1e-5, atol=1e-5)
    assert (np.abs(undropped - expected)[real] > 1e-3).any()


def test_attention_drops_weights_of_each_head():
    attention = MultiHeadAttention(heads=2, dropout=0.5)
    attention.build((None, None, 4), (None, None, 4))
    for kernel in (attention.value_kernel, attention.output_kernel):
        kernel.assign(np.eye(4))
    attention.query_kernel.assign(np.zeros((4, 4)))
    memory = np.ones((50, 4, 4), "float32")
    keys, values = attention.project_memory(memory)
    allowed = np.ones((1, 1, 1, 4), "bool")
    arguments = {"keys": keys, "values": values, "allowed": allowed}
    found = numpy(attention(memory, **arguments, training=True))
    # Each of four weights of 1/4 is dropped or doubled.
    assert set(np.unique(found.round(4))) == {0.0, 0.5, 1.0, 1.5, 2.0}
    assert abs(found.mean() - 1) < 0.1
    assert np.allclose(found[..., 0], found[..., 1]) and not np.allclose(
        found[..., 0], found[..., 2]
    )
    np.testing.assert_allclose(numpy(attention(memory, **arguments)), 1.0, rtol=1e-6)


def test_feed_forward_networks_drop_hidden_units():
    layer = TransformerEncoderLayer(1, 1, dropout=0.0, feed_forward_dropout=0.5)
    layer.build((None, None, 2))
    layer.self_attention.output_kernel.assign(np.zeros((2, 2)))
    layer.inner.kernel.assign(np.zeros((2, 1)))
    layer.inner.bias.assign(np.ones(1))
    layer.outer.kernel.assign(np.ones((1, 2)))
    inputs, mask = np.zeros((20, 9, 2), "float32"), np.ones((20, 9), "bool")
    found = numpy(layer(inputs, source_mask=mask, training=True))
    assert set(np.unique(found)) == {0.0, 2.0} and abs(found.mean() - 1) < 0.2
    np.testing.assert_array_equal(numpy(layer(inputs, source_mask=mask)), 1.0)


@pytest.mark.parametrize("body", ["gru", "transformer"])
def test_words_outputs_and_embeddings_have_rates_of_their_own(body):
    model = make(body, **RATES, dropout=0.9)
    ones = np.ones((40, 10, 30), "float32")
    words = numpy(model.drop_words(ops.convert_to_tensor(ones), training=True))
    assert (words == words[:, :, :1]).all()
    assert {round(float(value), 4) for value in np.unique(words)} == {0.0, round(1 / 0.7, 4)}
    assert abs((words[..., 0] == 0).mean() - 0.3) < 0.07
    for drop, rate in ((model.drop_embedded, 0.2), (model.drop_outputs, 0.25)):
        dropped = numpy(drop(ones, training=True))
        assert abs((dropped == 0).mean() - rate) < 0.03
        np.testing.assert_array_equal(numpy(drop(ones, training=False)), ones)
    np.testing.assert_array_equal(numpy(model.drop_words(ones, training=False)), ones)


@pytest.mark.parametrize("body", ["gru", "transformer"])
def test_rates_that_are_left_out_are_those_of_before(body):
    model = make(body, dropout=0.5)
    ones = np.ones((20, 10, 10), "float32")
    assert abs((numpy(model.drop_embedded(ones, training=True)) == 0).mean() - 0.5) < 0.05
    share = 0.5 if body == "gru" else 0.0
    assert abs((numpy(model.drop_outputs(ones, training=True)) == 0).mean() - share) < 0.05
    # No generator more, so that checkpoints and the order of draws are those of before.
    seeds = [variable for variable in model.variables if "seed_generator" in variable.path]
    assert len(seeds) == (5 if body == "gru" else 4)


@pytest.mark.parametrize(
    "body,options",
    [
        ("lstm", {"recurrent_dropout": 0.3}),
        ("gru", {"recurrent_dropout": 0.3, "scheduled_sampling": True}),
        ("transformer", {"attention_dropout": 0.2, "feed_forward_dropout": 0.2}),
    ],
)
def test_bodies_train_with_every_rate_and_are_saved(body, options, tmp_path):
    model, inputs = make(body, **RATES, **options, dropout=0.1), pairs()
    model.compile(keras.optimizers.Adam(0.03), loss=losses.negative_log_likelihood)
    labels = inputs["target_extended_ids"]
    before = float(model.evaluate(inputs, labels, verbose=0))
    model.fit(inputs, labels, epochs=15, verbose=0)
    assert float(model.evaluate(inputs, labels, verbose=0)) < before
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert {name: loaded.get_config()[name] for name in {**RATES, **options}} == {
        **RATES,
        **options,
    }
    np.testing.assert_allclose(outputs(loaded, inputs), outputs(model, inputs), rtol=1e-5)


def test_rates_that_cannot_be():
    for name in (*RATES, "recurrent_dropout"):
        with pytest.raises(ValueError, match=f"{name} must be at least 0 and below 1; got 1.0"):
            make("gru", **{name: 1.0})
