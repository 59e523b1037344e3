import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_models import losses
from keras_models.layers import PointerSentinel, PointerSentinelWindow
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


def make_window(seed=0, window=3, scale=0.5, **kwargs):
    head = PointerSentinelWindow(V, window, **kwargs)
    head.build((None, None, HIDDEN))
    randomize(head, seed, scale)
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


# Over a source.


@settings(max_examples=15 if TENSORFLOW else 4)
@given(seed=st.integers(0, 10**6), steps=st.integers(1, 3), source_length=st.integers(1, 6))
def test_agrees_with_the_equations(seed, steps, source_length):
    rng = np.random.default_rng(seed)
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
    np.testing.assert_array_equal(
        model.predict(arrays, verbose=0), loaded.predict(arrays, verbose=0)
    )


# Over a window of a language model's own past.


def past(rng, batch=2, length=8):
    hidden = rng.normal(size=(batch, length, HIDDEN)).astype("float32")
    return hidden, rng.integers(0, V, size=(batch, length)).astype("int32")


@pytest.mark.parametrize("window", [1, 3, 8, 20])
def test_each_step_sees_the_last_words_and_itself(window):
    rng = np.random.default_rng(window)
    hidden, words = past(rng)
    head = make_window(window=window)
    whole, after = numpy(head(hidden, words))
    for b in range(2):
        for t in range(8):
            first = max(0, t - window + 1)
            p, a, _ = sentinel_oracle.mixture(
                hidden[b, t],
                hidden[b, first : t + 1],
                words[b, first : t + 1],
                V,
                sentinel_weights(head),
            )
            np.testing.assert_allclose(np.exp(whole[b, t]), p, rtol=0, atol=1e-5)
            np.testing.assert_allclose(np.exp(whole[b, t]).sum(), 1, atol=1e-5)
    # The window returned is what the last step saw; what is not there yet is empty.
    seen = min(window, 8)
    np.testing.assert_array_equal(after["words"][:, -seen:], words[:, -seen:])
    assert (after["words"][:, : window - seen] == -1).all()
    np.testing.assert_array_equal(after["states"][:, -seen:], hidden[:, -seen:])


def test_a_word_outside_the_window_is_out_of_reach():
    head = make_window(window=3)
    head.sentinel.assign(np.full(HIDDEN, -1e4))
    head.query.kernel.assign(np.zeros((HIDDEN, HIDDEN)))
    head.query.bias.assign(np.full(HIDDEN, 20.0))  # all of the mass goes to the pointer
    hidden = np.ones((1, 5, HIDDEN), "float32")
    words = np.array([[6, 1, 2, 3, 4]], "int32")
    probabilities = np.exp(numpy(head(hidden, words)[0]))[0]
    np.testing.assert_allclose(
        probabilities[2, 6], 1 / 3, atol=1e-5
    )  # t = 2 sees positions 0, 1, 2
    np.testing.assert_allclose(probabilities[3, 6], 0, atol=1e-7)
    np.testing.assert_allclose(probabilities[4, [2, 3, 4]], 1 / 3, atol=1e-5)


@pytest.mark.parametrize("window", [1, 4, 20])
def test_chunks_and_steps_equal_the_whole(window):
    hidden, words = past(np.random.default_rng(1), length=11)
    following = np.roll(words, -1, axis=1)
    head = make_window(window=window)
    whole, _ = numpy(head(hidden, words, targets=following))
    carried, parts = None, []
    for begin, end in ((0, 1), (1, 4), (4, 9), (9, 11)):
        part, carried = head(
            hidden[:, begin:end], words[:, begin:end], carried, targets=following[:, begin:end]
        )
        parts.append(numpy(part))
    np.testing.assert_allclose(np.concatenate(parts, axis=1), whole, rtol=0, atol=1e-6)
    # Asked for the last steps alone, the same; and the window may be taken after fewer steps.
    last, early = numpy(head(hidden, words, targets=following[:, -2:], last=2, lengths=5))
    np.testing.assert_allclose(last, whole[:, -2:], rtol=0, atol=1e-6)
    np.testing.assert_array_equal(
        early["words"], numpy(head(hidden[:, :5], words[:, :5])[1]["words"])
    )
    _, rows = numpy(head(hidden, words, lengths=keras.ops.convert_to_tensor([5, 0])))
    np.testing.assert_array_equal(rows["words"][0], early["words"][0])
    np.testing.assert_array_equal(rows["states"][0], early["states"][0])
    assert (rows["words"][1] == -1).all()
    window_now = head.initial_window(2, HIDDEN)
    for t in range(11):
        log_probs, copies, window_now = head.step(
            keras.ops.convert_to_tensor(hidden[:, t]),
            keras.ops.convert_to_tensor(words[:, t]),
            window_now,
        )
        log_probs, copies = numpy(log_probs), numpy(copies)
        np.testing.assert_allclose(
            log_probs[[0, 1], following[:, t]], whole[:, t], rtol=0, atol=1e-6
        )
        assert (np.exp(copies)[numpy(window_now["words"]) < 0] == 0).all()


def test_words_without_an_id_are_copied():
    head = make_window(window=3)
    hidden, words = past(np.random.default_rng(2), length=4)
    words[:, 1] = V + 1
    probabilities = np.exp(numpy(head(hidden, words, size=V + 4)[0]))
    np.testing.assert_allclose(probabilities.sum(-1), 1, atol=1e-5)
    assert (probabilities[:, 0, V:] == 0).all() and (probabilities[:, 1:, V + 1] > 0).all()
    assert (probabilities[..., [V, V + 2, V + 3]] == 0).all()


def test_padding_is_not_pointed_at():
    head = make_window(window=8)
    hidden, words = past(np.random.default_rng(2), length=4)
    words[:, 2:] = -1
    probabilities = np.exp(numpy(head(hidden, words)[0]))
    p, _, _ = sentinel_oracle.mixture(
        hidden[0, 3], hidden[0, :2], words[0, :2], V, sentinel_weights(head)
    )
    np.testing.assert_allclose(probabilities[0, 3], p, rtol=0, atol=1e-5)


def test_the_window_builds_no_wide_tensor_in_training():
    hidden, words = past(np.random.default_rng(0), 2, 13)
    head = make_window(window=9)

    def total(hidden, words):
        return keras.ops.sum(head(hidden, words, targets=words)[0])

    made = traced_shapes(total, head, hidden, words)
    assert (2, 13, 9 + 13) in made and (2, 13, V) in made
    assert not any(size in shape for shape in made for size in (V + 9, V + 13, V + 9 + 13))


def test_window_in_bfloat16_saturated_has_no_nan():
    head = make_window(window=5, scale=30.0, dtype="mixed_bfloat16")
    hidden, words = past(np.random.default_rng(0))
    log_probs, window = head(keras.ops.cast(hidden, "bfloat16"), words)
    assert keras.backend.standardize_dtype(window["states"].dtype) == "bfloat16"
    np.testing.assert_allclose(np.exp(numpy(log_probs)).sum(-1), 1, atol=1e-5)
    value, gradients = value_and_gradients(
        lambda x: keras.ops.mean(keras.ops.maximum(head(x, words, targets=words)[0], -100.0)),
        [hidden],
        head,
    )
    assert np.isfinite(value) and all(np.isfinite(gradient).all() for gradient in gradients)


def test_window_config():
    head = make_window(window=5, name="mine")
    assert PointerSentinelWindow.from_config(head.get_config()).get_config() == head.get_config()
    assert head.get_config()["window"] == 5
    with pytest.raises(ValueError, match="window must be at least 1; got 0"):
        PointerSentinelWindow(V, 0)
