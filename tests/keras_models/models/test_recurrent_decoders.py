"""Recurrent decoders of several layers, and Bahdanau's."""

import keras
import numpy as np
import pytest

from keras_models import losses
from keras_models.models import RecurrentSeq2Seq
from tests.keras_models.backends import TENSORFLOW, numpy, outputs
from tests.keras_models.decoder_oracle import stacked_seq2seq
from tests.keras_models.decoding.fakes import decoded
from tests.keras_models.decoding.test_beam import assert_same
from tests.keras_models.models import test_bodies
from tests.keras_models.models.recurrent_cases import (
    edges,
    example,
    forced_steps,
    log_probs_and_losses,
    make,
    weights_of,
)


def all_weights_of(model):
    weights = weights_of(model)

    def upper(cell):
        biases = [numpy(bias.value) for bias in cell.trainable_weights if "bias" in bias.name]
        return {
            "kernel": numpy(cell.kernel.value),
            "recurrent_kernel": numpy(cell.recurrent_kernel.value),
            "bias": np.stack(biases) if len(biases) == 2 else biases[0],
        }

    weights["upper_cells"] = [upper(cell) for cell in model.upper_cells]
    if model.word_readout is not None:
        weights["word_readout"] = numpy(model.word_readout.kernel.value)
    return weights


CASES = [
    {"decoder": "bahdanau"},
    {"decoder": "bahdanau", "cell": "lstm", "decoder_layers": 3, "attention": "bilinear"},
    {"decoder_layers": 2, "input_feeding": False, "coverage": False},
    {"decoder_layers": 4, "cell": "lstm", "attention": "dot"},
]


@pytest.mark.parametrize("options", CASES)
def test_agrees_with_the_equations_in_training_decoding_and_from_a_file(options, tmp_path):
    model = make(**options)
    for inputs, feeds_labels in ((edges(), False), (example(), True)):
        log_prob, _ = log_probs_and_losses(model, inputs)
        steps = forced_steps(model, inputs)[0] if feeds_labels else None
        weights = all_weights_of(model)
        for b in range(len(log_prob)):
            pair = {name: value[b] for name, value in inputs.items()}
            if not pair["source_ids"].any():
                continue
            expected = stacked_seq2seq(
                pair,
                weights,
                options.get("cell", "gru"),
                options.get("attention", "additive"),
                options.get("decoder", "luong"),
                options.get("coverage", True),
                options.get("input_feeding", True),
            )
            real = pair["target_extended_ids"] != 0
            if feeds_labels:
                found = np.exp(steps[:, b][real])
                np.testing.assert_allclose(found, expected[real], rtol=0, atol=1e-5)
            labels = pair["target_extended_ids"][real]
            np.testing.assert_allclose(
                log_prob[b][real], np.log(expected[real, labels]), rtol=1e-5, atol=1e-5
            )
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert {name: loaded.get_config()[name] for name in options} == options
    np.testing.assert_array_equal(
        log_probs_and_losses(loaded, inputs)[0], log_probs_and_losses(model, inputs)[0]
    )


HEADS = [
    ("bahdanau", "joint_copy", {"selective_read": True, "recurrent_dropout": 0.2}),
    ("luong", "span_copy", {"decoder_layers": 3, "recurrent_dropout": 0.2}),
    ("bahdanau", "pointer_softmax", {"decoder_layers": 2, "scheduled_sampling": True}),
    ("luong", "pointer_network", {"decoder_layers": 2, "encoder": "cnn"}),
    ("bahdanau", "lexicon_copy", {"cell": "lstm", "tie_embeddings": "target"}),
    ("luong", "softmax", {"decoder_layers": 2, "attention": "none", "cell": "lstm"}),
]


@pytest.mark.parametrize("decoder,head,options", HEADS if TENSORFLOW else HEADS[:3])
def test_heads_learn_and_searches_decode(decoder, head, options):
    model = test_bodies.make("gru", head, decoder=decoder, **options)
    inputs = test_bodies.pairs()
    model.compile(keras.optimizers.Adam(0.02), loss=losses.negative_log_likelihood)
    labels = inputs["target_extended_ids"]
    before = float(model.evaluate(inputs, labels, verbose=0))
    model.fit(inputs, labels, epochs=12, verbose=0)
    assert float(model.evaluate(inputs, labels, verbose=0)) < before
    options = dict(max_length=4, beam_size=3, n_best=2, min_length=1)
    found = decoded(model, test_bodies.sources(inputs), **options)
    assert np.isfinite(found.scores).all() and (found.scores[:, 0] > -1e8).all()
    extended = numpy(inputs["source_extended_ids"])
    for row, k, t in np.argwhere(found.tokens >= test_bodies.V):
        surface = extended[row, found.tokens[row, k, t] - test_bodies.V]
        assert extended[row, found.copied_from[row, k, t]] == surface
    if TENSORFLOW and head != "span_copy":
        padded = decoded(model, test_bodies.sources(test_bodies.pairs(padding=2)), **options)
        assert_same(found, padded, tolerance=1e-4)


def test_one_layer_is_the_decoder_of_before():
    names = [
        [weight.path for weight in RecurrentSeq2Seq(9, 8, hidden_size=4, **o).trainable_weights]
        for o in ({}, {"decoder_layers": 2}, {"decoder": "bahdanau"})
    ]
    tails = [{name.split("/", 1)[-1] if "rnn" in name else name for name in n} for n in names]
    assert len(names[1]) == len(names[0]) + 4 + 2
    assert len(names[2]) == len(names[0]) + 1
    assert any("decoder_cell_1" in name for name in tails[1])
    assert any("word_readout" in name for name in tails[2])


@pytest.mark.parametrize("decoder,layers", [("bahdanau", 1), ("luong", 3)])
def test_padding_changes_nothing(decoder, layers):
    model = make(decoder=decoder, decoder_layers=layers)
    inputs, padded = example(), example(more_source=2, more_target=1)
    length = inputs["target_extended_ids"].shape[1]
    np.testing.assert_allclose(
        outputs(model, padded)[:, :length], outputs(model, inputs), rtol=0, atol=1e-5
    )


def test_decoders_that_cannot_be():
    with pytest.raises(ValueError, match="decoder must be one of luong, bahdanau; got 'gru'"):
        make(decoder="gru")
    with pytest.raises(ValueError, match="'bahdanau' reads the source before each step"):
        make(decoder="bahdanau", attention="none", head="softmax")
