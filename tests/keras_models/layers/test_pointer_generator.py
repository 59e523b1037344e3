import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_models import losses
from keras_models.layers import PointerGenerator
from keras_models.layers.numerics import LOG_ZERO
from tests.keras_models import oracles
from tests.keras_models.backends import TENSORFLOW, numpy, randomize, traced_shapes, value_and_gradients

V, HIDDEN, CONTEXT, EMBEDDING, STATE = 7, 3, 4, 2, 5


def make(seed=0, with_inputs=True, with_state=True, **kwargs):
    head = PointerGenerator(V, **kwargs)
    head.build(
        (None, None, HIDDEN),
        (None, None, CONTEXT),
        (None, None, EMBEDDING) if with_inputs else None,
        (None, None, STATE) if with_state else None,
    )
    randomize(head, seed)
    return head


def example(rng, batch=2, steps=3, source_length=4, with_inputs=True, with_state=True, all_unknown=False):
    """Random arguments of a call, with masks and repeated source tokens, as NumPy arrays."""
    mask = rng.random((batch, source_length)) < 0.75
    mask[:, 0] = True
    attention = np.zeros((batch, steps, source_length))
    for b in range(batch):
        for t in range(steps):
            attention[b, t, mask[b]] = rng.dirichlet(np.ones(mask[b].sum()))
    # Few different words, so that they repeat; copy ids name the first position of their surface form.
    words = rng.integers(0, 4, size=(batch, source_length))
    ids = np.zeros((batch, source_length), "int64")
    for b in range(batch):
        for j in range(source_length):
            first = list(words[b]).index(words[b, j])
            known = 3 + words[b, j] if words[b, j] < 2 and not all_unknown else V + first
            ids[b, j] = known if mask[b, j] else 0
    call = {
        "hidden": rng.normal(size=(batch, steps, HIDDEN)),
        "context": rng.normal(size=(batch, steps, CONTEXT)),
        "attention": attention,
        "inputs": rng.normal(size=(batch, steps, EMBEDDING)) if with_inputs else None,
        "decoder_state": rng.normal(size=(batch, steps, STATE)) if with_state else None,
    }
    call = {key: value.astype("float32") for key, value in call.items() if value is not None}
    return {**call, "source_extended_ids": ids}


def expected_distribution(head, call, b, t):
    gate = numpy(head.gate.kernel.value)[:, 0]
    state = call.get("decoder_state", call["hidden"])[b, t]
    cuts = np.split(gate, [CONTEXT, CONTEXT + len(state)])
    kernel, bias = numpy(head.vocabulary.kernel.value), numpy(head.vocabulary.bias.value)
    return oracles.pointer_generator(
        oracles.vocabulary_distribution(call["hidden"][b, t], kernel, bias),
        *cuts,
        numpy(head.gate.bias.value)[0],
        context=call["context"][b, t],
        state=state,
        inputs=call["inputs"][b, t] if "inputs" in call else None,
        weights=call["attention"][b, t],
        extended_ids=call["source_extended_ids"][b],
    )


def step_arguments(call, t):
    attention = call["attention"][:, t]
    logs = np.where(attention > 0, np.log(np.maximum(attention, 1e-38)), LOG_ZERO).astype("float32")
    names = [name for name in ("hidden", "context", "inputs", "decoder_state") if name in call]
    state = {name: keras.ops.convert_to_tensor(call[name][:, t]) for name in names}
    state["attention_log_weights"] = keras.ops.convert_to_tensor(logs)
    return state, {"extended_ids": keras.ops.convert_to_tensor(call["source_extended_ids"])}


@settings(max_examples=20 if TENSORFLOW else 5)
@given(
    seed=st.integers(0, 10**6),
    batch=st.integers(1, 2),
    steps=st.integers(1, 3),
    source_length=st.integers(1, 6),
    with_inputs=st.booleans(),
    with_state=st.booleans(),
    all_unknown=st.booleans(),
)
def test_agrees_with_the_equations(seed, batch, steps, source_length, with_inputs, with_state, all_unknown):
    rng = np.random.default_rng(seed)
    head = make(seed, with_inputs, with_state)
    call = example(rng, batch, steps, source_length, with_inputs, with_state, all_unknown)
    distribution = numpy(head(**call))
    assert distribution.dtype == np.float32 and distribution.shape == (batch, steps, V + source_length)
    possible = np.concatenate([np.tile(np.arange(V), (batch, 1)), call["source_extended_ids"]], axis=1)
    targets = np.stack([rng.choice(row, size=steps) for row in possible])
    log_prob = numpy(head(**call, targets=targets))
    assert log_prob.dtype == np.float32
    for t in range(steps):
        log_probs, copies = numpy(head.step_log_probs(*step_arguments(call, t)))
        np.testing.assert_allclose(np.exp(log_probs).sum(-1), 1, atol=1e-5)
        np.testing.assert_allclose(np.exp(distribution[:, t]), np.exp(log_probs), atol=1e-6)
        for b in range(batch):
            expected = expected_distribution(head, call, b, t)
            np.testing.assert_allclose(np.exp(log_probs[b]), expected, rtol=0, atol=1e-5)
            # What no one can say has exactly no probability, padding included.
            assert (np.exp(log_probs[b])[expected == 0] == 0).all()
            np.testing.assert_allclose(log_prob[b, t], np.log(expected[targets[b, t]]), rtol=1e-5, atol=1e-5)
            np.testing.assert_allclose(log_prob[b, t], log_probs[b, targets[b, t]], rtol=1e-5, atol=1e-5)
            # Copy probabilities are (1 - p_gen) a_j.
            a = call["attention"][b, t]
            assert (np.exp(copies[b])[a == 0] == 0).all()
            share = np.exp(copies[b]).sum()
            np.testing.assert_allclose(np.exp(copies[b]), share * a, atol=1e-5)
            unknown = [j for j in range(V, V + source_length) if j in call["source_extended_ids"][b]]
            mass = sum(np.exp(copies[b])[call["source_extended_ids"][b] == j].sum() for j in unknown)
            np.testing.assert_allclose(mass, expected[V:].sum(), atol=1e-5)


def even_head(p_gen):
    """A head with a uniform vocabulary and a fixed gate."""
    head = make(with_inputs=False, with_state=False)
    for weight in head.trainable_weights:
        weight.assign(np.zeros(weight.shape))
    head.gate.bias.assign([np.log(p_gen / (1 - p_gen))])
    return head


def test_both_masses_of_a_word_are_added_over_all_its_occurrences():
    call = {
        "hidden": np.zeros((1, 1, HIDDEN), "float32"),
        "context": np.zeros((1, 1, CONTEXT), "float32"),
        "attention": np.array([[[0.5, 0.125, 0.25, 0.125]]], "float32"),
        "source_extended_ids": np.array([[4, V + 1, 4, V + 1]]),
    }
    head = even_head(0.25)
    probabilities = np.exp(numpy(head(**call)))[0, 0]
    np.testing.assert_allclose(probabilities[4], 0.25 / V + 0.75 * 0.75, rtol=1e-5)
    np.testing.assert_allclose(probabilities[V + 1], 0.75 * 0.25, rtol=1e-5)
    np.testing.assert_allclose(probabilities[5], 0.25 / V, rtol=1e-5)
    assert (probabilities[[V, V + 2, V + 3]] == 0).all()
    targets = np.array([[4]])
    np.testing.assert_allclose(np.exp(numpy(head(**call, targets=targets)))[0, 0], probabilities[4], rtol=1e-5)


def test_an_empty_source_generates_only():
    rng = np.random.default_rng(0)
    head = make()
    call = example(rng)
    call["attention"][0] = 0
    call["source_extended_ids"][0] = 0
    probabilities = np.exp(numpy(head(**call)))
    np.testing.assert_allclose(probabilities.sum(-1), 1, atol=1e-5)
    assert (probabilities[0, :, V:] == 0).all()
    logits = call["hidden"][0] @ numpy(head.vocabulary.kernel.value) + numpy(head.vocabulary.bias.value)
    np.testing.assert_allclose(probabilities[0, 0, :V], oracles.softmax(logits[0]), atol=1e-5)
    _, copies = numpy(head.step_log_probs(*step_arguments(call, 0)))
    assert (np.exp(copies[0]) == 0).all() and np.exp(copies[1]).sum() > 0


SOURCES = {
    "mixed": [[4, V + 1, 4], [V, 5, V]],
    "all unknown": [[V, V + 1, V], [V, V + 1, V + 2]],
    "single token": [[V], [4]],
    "empty": [[0, 0], [0, 0]],
}


@pytest.mark.parametrize("bias", [0.0, 1e4, -1e4])
@pytest.mark.parametrize("source", SOURCES)
def test_no_nan_in_values_and_gradients(source, bias):
    ids = np.array(SOURCES[source])
    head = make()
    head.gate.bias.assign([bias])
    rng = np.random.default_rng(0)
    call = example(rng, 2, 4, ids.shape[1])
    # An attention that is itself saturated, on the first token.
    call["attention"] = np.zeros((2, 4, ids.shape[1]), "float32")
    if source != "empty":
        call["attention"][..., 0] = 1
    targets = np.tile([4, 3, V, V + ids.shape[1] - 1], (2, 1))
    names = ("hidden", "context", "attention", "inputs", "decoder_state")

    def total(*values):
        arguments = dict(zip(names, values), source_extended_ids=ids)
        step, memory = {"attention_log_weights": keras.ops.full((2, ids.shape[1]), LOG_ZERO)}, {"extended_ids": ids}
        step.update({name: arguments[name][:, 0] for name in names if name != "attention"})
        everything = head(**arguments)
        return (
            keras.ops.mean(head(**arguments, targets=targets))
            + keras.ops.mean(keras.ops.maximum(everything, -100.0))
            + keras.ops.mean(keras.ops.maximum(head.step_log_probs(step, memory)[0], -100.0))
        )

    value, gradients = value_and_gradients(total, [call[name] for name in names], head)
    assert np.isfinite(value)
    assert all(np.isfinite(gradient).all() for gradient in gradients)
    # The vocabulary still learns whenever it is used at all.
    assert bias < 0 or np.abs(gradients[len(names)]).sum() > 0
    probabilities = np.exp(numpy(head(**{**call, "source_extended_ids": ids})))
    assert np.isfinite(probabilities).all()
    np.testing.assert_allclose(probabilities.sum(-1), 1, atol=1e-5)
    if source != "empty" and bias:
        generated = probabilities[..., [w for w in range(V) if w not in ids]].sum(-1)
        copied = probabilities[np.arange(2), :, ids[:, 0]]
        np.testing.assert_allclose(generated if bias < 0 else copied[ids[:, 0] >= V], 0, atol=1e-6)


def test_training_builds_no_extended_distribution():
    batch, steps, source_length = 2, 3, 13
    call = example(np.random.default_rng(0), batch, steps, source_length)
    head = make()
    names = list(call)
    targets = np.full((batch, steps), V + 2)
    wide = V + source_length

    def shapes(*more):
        def total(*values):
            return keras.ops.sum(head(**dict(zip([*names, "targets"], values))))

        return traced_shapes(total, head, *call.values(), *more)

    assert (batch, steps, V) in shapes(targets)
    assert not any(wide in shape or batch * wide in shape for shape in shapes(targets))
    # The check can see: without targets the distribution is built.
    assert any(wide in shape for shape in shapes())


def test_config_round_trip_and_mixed_precision():
    head = make(dtype="mixed_bfloat16", name="mine")
    copy = PointerGenerator.from_config(head.get_config())
    assert copy.get_config() == head.get_config()
    assert (copy.vocabulary_size, copy.name) == (V, "mine")
    assert copy.gate.compute_dtype == copy.vocabulary.compute_dtype == "bfloat16"
    call = example(np.random.default_rng(0))
    log_prob = head(**call, targets=np.full((2, 3), 4))
    assert keras.backend.standardize_dtype(log_prob.dtype) == "float32"
    state, memory = step_arguments(call, 0)
    state = {key: x if key.startswith("attention") else keras.ops.cast(x, "bfloat16") for key, x in state.items()}
    for log_probs in head.step_log_probs(state, memory):
        assert keras.backend.standardize_dtype(log_probs.dtype) == "float32"
    np.testing.assert_allclose(np.exp(numpy(head.step_log_probs(state, memory)[0])).sum(-1), 1, atol=1e-5)


def functional_model(dtype=None):
    """A user's own model: Keras layers all around, `PointerGenerator` on top."""
    source = keras.Input((None,), dtype="int32", name="source_ids")
    extended = keras.Input((None,), dtype="int32", name="source_extended_ids")
    previous = keras.Input((None,), dtype="int32", name="target_input_ids")
    targets = keras.Input((None,), dtype="int32", name="target_extended_ids")
    memory, last = keras.layers.GRU(6, return_sequences=True, return_state=True, dtype=dtype)(
        keras.layers.Embedding(11, 5, dtype=dtype)(source)
    )
    inputs = keras.layers.Embedding(V, 5, dtype=dtype)(previous)
    hidden = keras.layers.GRU(6, return_sequences=True, dtype=dtype)(inputs, initial_state=last)
    context, attention = keras.layers.Attention(dtype=dtype)([hidden, memory], return_attention_scores=True)
    log_prob = PointerGenerator(V, dtype=dtype)(hidden, context, attention, extended, targets, inputs=inputs)
    return keras.Model([source, extended, previous, targets], log_prob)


@pytest.mark.parametrize("dtype", [None, "mixed_bfloat16"])
def test_in_a_functional_model_of_ones_own(tmp_path, dtype):
    keras.utils.set_random_seed(0)
    model = functional_model(dtype)
    rng = np.random.default_rng(0)
    source = rng.integers(4, 11, size=(16, 5))
    extended = np.where(source < V, source, V + np.argmax(source[:, :, None] == source[:, None, :], axis=-1))
    previous = np.concatenate([np.full((16, 1), 2), np.where(extended < V, extended, 1)[:, :-1]], axis=1)
    arrays = [source, extended, previous, extended]
    model.compile(keras.optimizers.Adam(0.03), loss=losses.negative_log_likelihood, jit_compile=not TENSORFLOW)
    history = model.fit(arrays, extended, epochs=8, batch_size=8, verbose=0).history["loss"]
    assert np.isfinite(history).all() and history[-1] < 0.8 * history[0]
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.compute_output_shape([x.shape for x in arrays]) == (16, 5)
    np.testing.assert_array_equal(model.predict(arrays, verbose=0), loaded.predict(arrays, verbose=0))
    # Loaded with its loss and optimizer, training goes on.
    assert np.isfinite(loaded.evaluate(arrays, extended, verbose=0))
