import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_models import losses
from keras_models.layers import PointerSentinel
from tests.keras_models import oracles, sentinel_oracle
from tests.keras_models.backends import (
    TENSORFLOW,
    numpy,
    randomize,
    traced_shapes,
    value_and_gradients,
)

V, HIDDEN, MEMORY = 7, 3, 4


def sentinel_weights(head):
    def pair(layer):
        return numpy(layer.kernel.value), numpy(layer.bias.value)

    return {
        "query": pair(head.query),
        "vocabulary": pair(head.vocabulary),
        "sentinel": numpy(head.sentinel.value),
    }


def make(seed=0, **kwargs):
    head = PointerSentinel(V, **kwargs)
    head.build((None, None, HIDDEN), memory_states_shape=(None, None, MEMORY))
    randomize(head, seed)
    return head


def example(rng, batch=2, steps=3, source_length=4):
    """Random arguments of a call, with masks and repeated source tokens, as NumPy arrays."""
    mask = rng.random((batch, source_length)) < 0.75
    words = rng.integers(0, 4, size=(batch, source_length))
    ids = np.zeros((batch, source_length), "int32")
    for b in range(batch):
        for j in range(source_length):
            ids[b, j] = (
                3 + words[b, j] if words[b, j] < 2 else V + list(words[b]).index(words[b, j])
            )
    ids = np.where(mask, ids, 0)
    hidden = rng.normal(size=(batch, steps, HIDDEN)).astype("float32")
    states = rng.normal(size=(batch, source_length, MEMORY)).astype("float32")
    return {"hidden": hidden, "memory_states": states, "source_extended_ids": ids, "mask": mask}


def expected(head, call, b, t):
    keep = call["mask"][b]
    size = V + len(keep)
    p, a, _ = sentinel_oracle.mixture(
        call["hidden"][b, t],
        call["memory_states"][b][keep],
        call["source_extended_ids"][b][keep],
        size,
        sentinel_weights(head),
    )
    weights = np.zeros(len(keep))
    weights[keep] = a
    return p, weights


def state_and_memory(call, t=None):
    hidden = call["hidden"] if t is None else call["hidden"][:, t]
    tensors = keras.tree.map_structure(keras.ops.convert_to_tensor, {**call, "hidden": hidden})
    memory = {"states": "memory_states", "extended_ids": "source_extended_ids", "mask": "mask"}
    return {"hidden": tensors["hidden"]}, {name: tensors[key] for name, key in memory.items()}


@settings(max_examples=8)
@given(seed=st.integers(0, 10**6), sizes=st.sampled_from([(1, 1), (3, 5)]))
def test_agrees_with_the_equations(seed, sizes):
    rng, (steps, source_length) = np.random.default_rng(seed), sizes
    head = make(seed)
    call = example(rng, 2, steps, source_length)
    distribution = numpy(head(**call))
    assert distribution.dtype == np.float32 and distribution.shape == (2, steps, V + source_length)
    possible = np.concatenate([np.tile(np.arange(V), (2, 1)), call["source_extended_ids"]], axis=1)
    targets = np.stack([rng.choice(row, size=steps) for row in possible])
    log_prob = numpy(head(**call, targets=targets))
    state, memory = state_and_memory(call)
    np.testing.assert_array_equal(
        log_prob, numpy(head.target_log_prob(state, memory, targets, labels={}))
    )
    for t in range(steps):
        log_probs, copies = numpy(head.step_log_probs(*state_and_memory(call, t)))
        np.testing.assert_allclose(np.exp(log_probs).sum(-1), 1, atol=1e-5)
        np.testing.assert_allclose(np.exp(distribution[:, t]), np.exp(log_probs), atol=1e-6)
        for b in range(2):
            p, a = expected(head, call, b, t)
            np.testing.assert_allclose(np.exp(log_probs[b]), p, rtol=0, atol=1e-5)
            np.testing.assert_allclose(np.exp(copies[b]), a, rtol=0, atol=1e-5)
            assert (np.exp(log_probs[b])[p == 0] == 0).all() and (
                np.exp(copies[b])[~call["mask"][b]] == 0
            ).all()
            np.testing.assert_allclose(
                log_prob[b, t], np.log(p[targets[b, t]]), rtol=1e-5, atol=1e-5
            )


def test_label_smoothing_agrees_with_the_definition():
    call, head = example(np.random.default_rng(2)), make(2)
    targets = call["source_extended_ids"][:, :3]
    log_prob = numpy(
        head.target_log_prob(*state_and_memory(call), targets, label_smoothing=0.3),
    )
    for b, t in np.ndindex(2, 3):
        p, _ = expected(head, call, b, t)
        ids = call["source_extended_ids"][b][call["mask"][b]]
        mean = np.log(p[sorted({*range(V), *ids})]).mean()
        np.testing.assert_allclose(
            log_prob[b, t], 0.7 * np.log(p[targets[b, t]]) + 0.3 * mean, rtol=1e-5, atol=1e-5
        )


def test_an_empty_source_generates_only():
    call = example(np.random.default_rng(0))
    call["mask"][0] = False
    head = make()
    probabilities = np.exp(numpy(head(**call)))
    np.testing.assert_allclose(probabilities.sum(-1), 1, atol=1e-5)
    assert (probabilities[0, :, V:] == 0).all()
    vocabulary = oracles.vocabulary_distribution(
        call["hidden"][0, 0], *sentinel_weights(head)["vocabulary"]
    )
    np.testing.assert_allclose(probabilities[0, 0, :V], vocabulary, atol=1e-5)


@pytest.mark.parametrize("pull", [1e4, -1e4])
def test_saturated_gates_give_no_nan(pull):
    """The query is all ones, so that the sentinel's score is its sum: all of the mass, or none."""
    head = make()
    head.query.kernel.assign(np.zeros((HIDDEN, MEMORY)))
    head.query.bias.assign(np.full(MEMORY, 20.0))
    head.sentinel.assign(np.full(MEMORY, pull))
    call = example(np.random.default_rng(0))
    call["mask"][:] = True
    call["source_extended_ids"] = np.tile([4, V + 1, 4, V + 3], (2, 1)).astype("int32")
    targets = np.tile([4, 3, V + 1], (2, 1))

    def total(hidden, states):
        arguments = {**call, "hidden": hidden, "memory_states": states}
        known = keras.ops.maximum(head(**arguments, targets=targets), -100.0)
        return keras.ops.mean(known) + keras.ops.mean(keras.ops.maximum(head(**arguments), -100.0))

    value, gradients = value_and_gradients(total, [call["hidden"], call["memory_states"]], head)
    assert np.isfinite(value) and all(np.isfinite(gradient).all() for gradient in gradients)
    probabilities = np.exp(numpy(head(**call)))
    np.testing.assert_allclose(probabilities.sum(-1), 1, atol=1e-5)
    copied = probabilities[..., [V + 1, V + 3]].sum(-1)
    generated = probabilities[..., [0, 1, 2, 3, 5, 6]].sum(-1)
    np.testing.assert_allclose(copied if pull > 0 else generated, 0, atol=1e-6)


def test_numeric_gradients():
    head = make()
    call = example(np.random.default_rng(3))
    targets = np.tile([4, 3, 1], (2, 1))

    def total(hidden, states):
        return keras.ops.mean(
            head(**{**call, "hidden": hidden, "memory_states": states}, targets=targets)
        )

    inputs = [call["hidden"], call["memory_states"]]
    value, gradients = value_and_gradients(total, inputs, head)
    rng = np.random.default_rng(0)
    variables = [*inputs, *head.trainable_weights]
    for index, (variable, gradient) in enumerate(zip(variables, gradients)):
        direction = rng.normal(size=gradient.shape).astype("float32")
        values = []
        for step in (1e-2, -1e-2):
            arguments = list(inputs)
            if index < 2:
                arguments[index] = inputs[index] + step * direction
            else:
                before = numpy(variable.value)
                variable.assign(before + step * direction)
            values.append(float(numpy(total(*map(keras.ops.convert_to_tensor, arguments)))))
            if index >= 2:
                variable.assign(before)
        numeric = (values[0] - values[1]) / 2e-2
        np.testing.assert_allclose((gradient * direction).sum(), numeric, rtol=1e-2, atol=1e-3)


def test_training_builds_no_extended_distribution():
    batch, steps, source_length = 2, 3, 13
    call = example(np.random.default_rng(0), batch, steps, source_length)
    head = make()
    mask = call.pop("mask")
    names = list(call)
    wide = V + source_length

    def shapes(*more):
        def total(*values):
            return keras.ops.sum(head(**dict(zip([*names, "targets"], values)), mask=mask))

        return traced_shapes(total, head, *call.values(), *more)

    made = shapes(np.full((batch, steps), V + 2))
    assert (batch, steps, V) in made
    assert not any(wide in shape or batch * wide in shape for shape in made)
    assert any(wide in shape for shape in shapes())


def test_protocol_config_and_mixed_precision():
    head = make(dtype="mixed_bfloat16", name="mine")
    assert (head.copies, head.merges, head.max_span, head.needs_attention) == (True, True, 1, False)
    assert PointerSentinel.from_config(head.get_config()).get_config() == head.get_config()
    # A body hands every shape to every head.
    other = PointerSentinel(V)
    shape = (None, None, MEMORY)
    other.build_for(
        hidden_shape=(None, None, HIDDEN),
        context_shape=shape,
        inputs_shape=shape,
        decoder_state_shape=shape,
    )
    assert tuple(other.sentinel.shape) == (HIDDEN,)
    call = example(np.random.default_rng(0))
    log_prob = head(**call, targets=np.full((2, 3), 4))
    assert (
        keras.backend.standardize_dtype(log_prob.dtype) == "float32"
        and np.isfinite(numpy(log_prob)).all()
    )
    state, memory = state_and_memory(call, 0)
    state = {"hidden": keras.ops.cast(state["hidden"], "bfloat16")}
    memory["states"] = keras.ops.cast(memory["states"], "bfloat16")
    log_probs, copies = head.step_log_probs(state, memory)
    assert {keras.backend.standardize_dtype(x.dtype) for x in (log_probs, copies)} == {"float32"}
    np.testing.assert_allclose(np.exp(numpy(log_probs)).sum(-1), 1, atol=1e-5)


def test_in_a_functional_model_of_ones_own(tmp_path):
    keras.utils.set_random_seed(0)
    source = keras.Input((None,), dtype="int32", name="source_ids")
    extended = keras.Input((None,), dtype="int32", name="source_extended_ids")
    previous = keras.Input((None,), dtype="int32", name="target_input_ids")
    targets = keras.Input((None,), dtype="int32", name="target_extended_ids")
    memory = keras.layers.GRU(6, return_sequences=True)(keras.layers.Embedding(11, 5)(source))
    # The mask that Keras attaches to the targets must not be taken for the source's.
    hidden = keras.layers.GRU(8, return_sequences=True)(
        keras.layers.Embedding(V, 5, mask_zero=True)(previous)
    )
    log_prob = PointerSentinel(V)(
        hidden, memory, extended, targets, mask=keras.ops.not_equal(source, 0)
    )
    model = keras.Model([source, extended, previous, targets], log_prob)
    rng = np.random.default_rng(0)
    words = rng.integers(4, 11, size=(16, 5))
    ids = np.where(words < V, words, V + np.argmax(words[:, :, None] == words[:, None, :], axis=-1))
    arrays = [
        words,
        ids,
        np.concatenate([np.full((16, 1), 2), np.where(ids < V, ids, 1)[:, :-1]], axis=1),
        ids,
    ]
    model.compile(
        keras.optimizers.Adam(0.03), loss=losses.negative_log_likelihood, jit_compile=not TENSORFLOW
    )
    history = model.fit(arrays, ids, epochs=8, batch_size=8, verbose=0).history["loss"]
    assert np.isfinite(history).all() and history[-1] < 0.9 * history[0]
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(numpy(model(arrays)), numpy(loaded(arrays)))
