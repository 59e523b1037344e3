import keras
import numpy as np
import pytest
from keras import ops

from keras_models import losses
from keras_models.models import RecurrentSeq2Seq
from tests.keras_models import oracles
from tests.keras_models.backends import (
    TENSORFLOW,
    numpy,
    shared_by_config,
    traced_shapes,
    value_and_gradients,
)
from tests.keras_models.models.recurrent_cases import (
    SOURCE_V,
    V,
    edges,
    example,
    forced_steps,
    log_probs_and_losses,
    make,
    tensors,
    weights_of,
)

# Cell, attention, head, input feeding, coverage: each pair of two options' values.
CONFIGURATIONS = [
    ("gru", "additive", "softmax", True, False),
    ("gru", "additive", "pointer_generator", False, True),
    ("gru", "dot", "pointer_generator", True, False),
    ("gru", "bilinear", "softmax", False, False),
    ("lstm", "additive", "pointer_generator", True, False),
    ("lstm", "dot", "softmax", False, True),
    ("lstm", "bilinear", "pointer_generator", True, True),
]


@pytest.mark.parametrize("cell,attention,head,input_feeding,coverage", CONFIGURATIONS)
def test_agrees_with_the_equations_in_training_decoding_and_from_a_file(
    cell, attention, head, input_feeding, coverage, tmp_path
):
    layers = 2 if attention == "dot" else 1
    model = make(
        cell,
        attention,
        head,
        input_feeding,
        coverage=coverage,
        encoder_layers=layers,
        coverage_loss_weight=0.7,
    )
    inputs = example()
    real = inputs["target_extended_ids"] != 0
    log_prob, penalty = log_probs_and_losses(model, inputs)
    assert log_prob.dtype == np.float32
    log_probs, copies, attentions = forced_steps(model, inputs)
    np.testing.assert_allclose(np.exp(log_probs).sum(-1), 1, atol=1e-5)
    weights = weights_of(model)
    total = count = 0
    for b in range(len(real)):
        pair = {name: value[b] for name, value in inputs.items()}
        expected, distributions, attended = oracles.seq2seq(
            pair, weights, V, cell, attention, head, input_feeding, coverage
        )
        np.testing.assert_allclose(log_prob[b][real[b]], expected[real[b]], rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(
            np.exp(log_probs[:, b][real[b]]), distributions[real[b]], rtol=0, atol=1e-5
        )
        np.testing.assert_allclose(attentions[:, b][real[b]], attended[real[b]], rtol=0, atol=1e-5)
        padding = inputs["source_ids"][b] == 0
        assert (attentions[:, b, padding] == 0).all() and (np.exp(copies[:, b, padding]) == 0).all()
        part = oracles.coverage_loss(attended, real[b])
        total, count = total + part[0], count + part[1]
        # Decoding along the labels gives what training gave.
        labels = np.where(
            (head == "softmax") & (pair["target_extended_ids"] >= V), 1, pair["target_extended_ids"]
        )
        forced = sum(log_probs[t, b, labels[t]] for t in np.flatnonzero(real[b]))
        np.testing.assert_allclose(forced, log_prob[b][real[b]].sum(), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(penalty, [0.7 * total / count] if coverage else [], rtol=1e-5)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.get_config() == model.get_config()
    np.testing.assert_array_equal(log_probs_and_losses(loaded, inputs)[0], log_prob)


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_padding_changes_nothing(cell):
    model = make(cell, encoder_layers=2)
    short, penalty = log_probs_and_losses(model, example())
    long, long_penalty = log_probs_and_losses(model, example(more_source=3, more_target=2))
    real = example()["target_extended_ids"] != 0
    np.testing.assert_allclose(long[:, : short.shape[1]][real], short[real], rtol=0, atol=1e-5)
    assert len(penalty) == 1
    np.testing.assert_allclose(long_penalty, penalty, atol=1e-5)


@pytest.mark.parametrize(
    "dtype,options",
    [
        (
            "mixed_bfloat16",
            {"large_vocabulary_size": 5, "large_vocabulary_drawn": 2, "label_smoothing": 0.1},
        ),
        ("float32", {"cell": "lstm", "head": "softmax", "attention": "dot", "coverage": False}),
    ],
)
def test_training_reduces_the_loss(dtype, options):
    keras.utils.set_random_seed(0)
    options = {"embedding_size": 8, "hidden_size": 16, "dropout": 0.1, "dtype": dtype, **options}
    model = RecurrentSeq2Seq(SOURCE_V, V, **options)
    inputs = example(batch=32)
    model.compile(
        keras.optimizers.Adam(0.02), loss=losses.negative_log_likelihood, jit_compile=not TENSORFLOW
    )
    history = model.fit(
        inputs, inputs["target_extended_ids"], epochs=12, batch_size=16, verbose=0
    ).history["loss"]
    assert np.isfinite(history).all() and history[-1] < 0.75 * history[0]
    log_prob = model(tensors(inputs))
    assert keras.backend.standardize_dtype(log_prob.dtype) == "float32"
    memory, carry = model.encode(tensors(inputs))
    steps = model.step(ops.full((32,), 2, dtype="int32"), carry, memory)
    assert [keras.backend.standardize_dtype(x.dtype) for x in steps[:3]] == ["float32"] * 3

    # A loop carries it: each part keeps its shape and type.
    def describe(x):
        return tuple(x.shape), keras.backend.standardize_dtype(x.dtype)

    assert keras.tree.map_structure(describe, steps[3]) == keras.tree.map_structure(describe, carry)
    np.testing.assert_allclose(np.exp(numpy(steps[0])).sum(-1), 1, atol=1e-5)
    if dtype != "float32":
        assert describe(carry["hidden"])[1] == "bfloat16"


# Those that the test above does not train.
@pytest.mark.parametrize(
    "dtype,options",
    [
        ("float32", {}),
        ("mixed_bfloat16", {"cell": "lstm", "head": "softmax", "attention": "dot"}),
    ],
)
def test_a_loop_can_carry_what_a_step_returns(dtype, options):
    model, inputs = make(**options, coverage=not options, dtype=dtype), example()

    def run(model, inputs):
        memory, carry = model.encode(inputs)
        return model(inputs), carry, model.step(ops.full((3,), 2, dtype="int32"), carry, memory)

    log_prob, carry, steps = shared_by_config(model, run, tensors(inputs), key="types")

    def describe(x):
        return tuple(x.shape), keras.backend.standardize_dtype(x.dtype)

    assert [describe(x)[1] for x in (log_prob, *steps[:3])] == ["float32"] * 4
    assert keras.tree.map_structure(describe, steps[3]) == keras.tree.map_structure(describe, carry)
    assert describe(carry["hidden"])[1] == dtype.removeprefix("mixed_")
    assert np.isfinite(numpy(log_prob)).all()
    np.testing.assert_allclose(np.exp(numpy(steps[0])).sum(-1), 1, atol=1e-5)


@pytest.mark.parametrize("attention,gate", [("additive", 1e4), ("dot", -1e4)])
def test_no_nan_at_the_edges(attention, gate):
    model = make(attention=attention)
    model.head.gate.bias.assign([gate])
    inputs = edges()

    def loss():
        log_prob = model(tensors(inputs))
        return losses.negative_log_likelihood(
            inputs["target_extended_ids"], ops.maximum(log_prob, -1e5)
        ) + sum(model.losses)

    value, gradients = value_and_gradients(loss, [], model)
    assert np.isfinite(value) and all(np.isfinite(gradient).all() for gradient in gradients)
    assert any(np.abs(gradient).sum() > 0 for gradient in gradients)
    log_probs, _, _ = forced_steps(model, inputs)
    assert np.isfinite(log_probs).all()
    np.testing.assert_allclose(np.exp(log_probs).sum(-1), 1, atol=1e-5)


def test_training_builds_no_extended_distribution():
    model = make()
    inputs = example(source_length=13)
    wide = V + 13

    def loss(*values):
        return -ops.sum(model(dict(zip(inputs, values))))

    shapes = traced_shapes(loss, model, *inputs.values())
    assert (3, 4, V) in shapes
    assert not any(wide in shape or 3 * wide in shape for shape in shapes)


def test_options_that_cannot_be():
    with pytest.raises(ValueError, match="cell must be one of gru, lstm; got 'rnn'"):
        make(cell="rnn")
    with pytest.raises(ValueError, match="hidden_size must be even"):
        make(hidden_size=5)
    with pytest.raises(ValueError, match="no head named"):
        make(head="none")
    with pytest.raises(
        ValueError,
        match="'pointer_generator' copies by attention; it needs an attention other than",
    ):
        make(attention="none")
    with pytest.raises(
        ValueError,
        match="selective_read needs a head with copy scores, 'joint_copy'; got 'softmax'",
    ):
        make(head="softmax", selective_read=True)
    with pytest.raises(
        ValueError, match="initial_range must be at least 0, and 0 for encoder 'cnn'"
    ):
        make(encoder="cnn", initial_range=0.1)
    with pytest.raises(ValueError, match="initial_range must be at least 0"):
        make(initial_range=-0.1)
