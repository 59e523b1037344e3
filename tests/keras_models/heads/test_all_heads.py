"""What every copy mechanism promises, whatever its equation."""

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import ops

from keras_models import losses
from tests.keras_models.backends import (
    TENSORFLOW,
    assert_slopes,
    numpy,
    shared_by_config,
    traced_shapes,
    value_and_gradients,
)
from tests.keras_models.heads.head_cases import CASES, example, random_states, step_arguments
from tests.keras_models.heads.sizes import V

# All shapes that the oracles are asked about: JAX compiles each operation anew for each.
SIZES = [(2, 2, 5), (1, 2, 1)]
# One case of each class.
EACH_CLASS = list({case.head_class: name for name, case in reversed(CASES.items())}.values())


def expected_of(case, head, arrays):
    """The oracle's distributions and copies.

    They are `[batch, steps, actions]` and `[batch, steps, source_length]`.
    """
    batch, steps = arrays["hidden"].shape[:2]
    found = [[case.oracle(head, arrays, b, t) for t in range(steps)] for b in range(batch)]
    return (np.array([[pair[i] for pair in row] for row in found]) for i in range(2))


def answers(case, head, arrays, targets):
    """Whole distributions, the targets' log-probabilities, and what each decoding step returns."""

    def run(head, arrays, targets):
        arguments = case.arguments(head, arrays)
        steps = [
            head.step_log_probs(*step_arguments(head, arrays, t, head.compute_dtype))
            for t in range(arrays["hidden"].shape[1])
        ]
        return head(**arguments), head(**arguments, **targets), steps

    return numpy(shared_by_config(head, run, arrays, targets, key="answers"))


def check_against_the_oracle(case, head, arrays, targets, outcomes):
    """Compares a head with its oracle, and returns each step's copy probabilities."""
    expected, expected_copies = expected_of(case, head, arrays)
    everything, log_prob, steps = answers(case, head, arrays, targets)
    assert everything.dtype == log_prob.dtype == np.float32
    for t, (log_probs, copies) in enumerate(steps):
        assert (
            log_probs.dtype == copies.dtype == np.float32 and copies.shape == arrays["mask"].shape
        )
        # The sum of 1 is that of the float32 numbers themselves.
        np.testing.assert_allclose(np.exp(log_probs.astype("float64")).sum(-1), 1, atol=1e-5)
        np.testing.assert_allclose(np.exp(log_probs), expected[:, t], rtol=0, atol=1e-5)
        # What no one can say has exactly no probability, padding included.
        assert (np.exp(log_probs)[expected[:, t] == 0] == 0).all()
        assert (np.exp(copies)[~arrays["mask"]] == 0).all()
        np.testing.assert_allclose(np.exp(copies), expected_copies[:, t], rtol=0, atol=1e-5)
        np.testing.assert_allclose(
            everything[:, t], log_probs[:, : everything.shape[-1]], rtol=1e-5, atol=1e-5
        )
        assert everything.shape[-1] == log_probs.shape[-1] or not head.copies
        for b, outcome in enumerate(outcomes[:, t]):
            if outcome < 0:
                # Inside a span nothing is chosen.
                assert log_prob[b, t] == 0
                continue
            np.testing.assert_allclose(log_prob[b, t], log_probs[b, outcome], rtol=1e-5, atol=1e-5)
            np.testing.assert_allclose(
                log_prob[b, t], np.log(expected[b, t, outcome]), rtol=1e-5, atol=1e-5
            )
    return [np.exp(copies.astype("float64")) for _, copies in steps]


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=3)
@given(seed=st.integers(0, 10**6), size=st.sampled_from(SIZES))
def test_agrees_with_the_equations(name, seed, size):
    """Training, a decoding step and the public call agree with the paper's equations."""
    case, rng = CASES[name], np.random.default_rng(seed)
    head = case.make(seed)
    arrays = example(rng, *size)
    check_against_the_oracle(case, head, arrays, *case.targets(rng, head, arrays))


@pytest.mark.skipif(not TENSORFLOW, reason="JAX knows all lengths while it traces.")
@pytest.mark.parametrize("name", CASES)
def test_lengths_may_be_unknown_until_it_runs(name):
    """As in training, where batches come in many lengths and one graph is for all."""
    import tensorflow as tf

    case, rng = CASES[name], np.random.default_rng(0)
    head = case.make()
    arrays = example(rng, *SIZES[0])
    targets, _ = case.targets(rng, head, arrays)
    arguments = {**case.arguments(head, arrays), **targets}
    signature = {}
    for key, value in arguments.items():
        # Sizes are the layers' and the lexicon's, lengths the batch's.
        is_size = key == "lexicon_ids" or value.dtype == np.float32 and key != "attention"
        size = value.shape[-1] if is_size else None
        signature[key] = tf.TensorSpec([*[None] * (value.ndim - 1), size], value.dtype)
    traced = tf.function(lambda arguments: head(**arguments), input_signature=[signature])
    np.testing.assert_allclose(
        numpy(traced(arguments)), numpy(head(**arguments)), rtol=1e-5, atol=1e-5
    )


# Three tokens of the source, an empty one last.
EDGES = np.array([[4, V + 1, 4], [V, V, V + 2], [V, 0, 0], [0, 0, 0]], "int32")


def edge_arrays(rng):
    arrays = random_states(rng, EDGES, EDGES != 0, steps=3)
    # An attention that is itself saturated, on the first token.
    arrays["attention"][1, :, 0], arrays["attention"][1, :, 1:] = 1, 0
    return arrays


@pytest.mark.parametrize("name", CASES)
def test_repeats_unknown_words_a_single_token_and_none(name):
    case, rng = CASES[name], np.random.default_rng(0)
    head = case.make()
    arrays = edge_arrays(rng)
    copies = check_against_the_oracle(case, head, arrays, *case.targets(rng, head, arrays))[0]
    assert (copies[3] == 0).all()
    assert not head.copies or (copies[:3].sum(-1) > 0).all()


@pytest.mark.parametrize(
    "name,dtype,gate",
    [(name, "mixed_bfloat16", 0) for name in CASES]
    + [(name, None, gate) for name in EACH_CLASS for gate in (1e4, -1e4)],
)
def test_no_nan_in_values_and_gradients(name, dtype, gate):
    case, rng = CASES[name], np.random.default_rng(0)
    head = case.make(dtype=dtype)
    if gate:
        case.saturate(head, gate)
    arrays = edge_arrays(rng)
    targets, _ = case.targets(rng, head, arrays)
    # A copy of what cannot be copied, too.
    targets["targets"][:, 0] = V + 2
    arguments = case.arguments(head, arrays)
    names = [key for key, value in arguments.items() if value.dtype == np.float32]

    def total(*values):
        call = {**arguments, **dict(zip(names, values))}
        return sum(
            ops.mean(ops.maximum(x, -100.0)) for x in (head(**call, **targets), head(**call))
        )

    # The seed is always the same, hence all other arguments.
    value, gradients = value_and_gradients(
        total, [arguments[key] for key in names], head, key=(name, dtype)
    )
    assert np.isfinite(value) and all(np.isfinite(gradient).all() for gradient in gradients)
    assert gate or all(np.abs(gradient).sum() > 0 for gradient in gradients[len(names) :])
    everything, log_prob, steps = answers(case, head, arrays, targets)
    assert everything.dtype == log_prob.dtype == np.float32
    assert np.isfinite(everything).all() and np.isfinite(log_prob).all()
    np.testing.assert_allclose(np.exp(everything.astype("float64")).sum(-1), 1, atol=1e-5)
    if gate and head.copies and name != "pointer_network":
        copies = steps[0][1]
        np.testing.assert_allclose(np.exp(copies[:3]).sum(-1), float(gate > 0), atol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_gradients_are_those_of_the_equations(name):
    """Central differences of the float64 oracle, for one number of each weight."""
    case, rng = CASES[name], np.random.default_rng(1)
    head = case.make(1)
    arrays = example(rng)
    targets, outcomes = case.targets(rng, head, arrays)
    arguments = case.arguments(head, arrays)

    def expected():
        distributions, _ = expected_of(case, head, arrays)
        return sum(
            np.log(distributions[b, t, outcomes[b, t]]) for b, t in np.argwhere(outcomes >= 0)
        )

    value, gradients = value_and_gradients(lambda: ops.sum(head(**arguments, **targets)), [], head)
    np.testing.assert_allclose(value, expected(), rtol=1e-5)
    assert_slopes(head, gradients, expected, rng, atol=2e-5)


@pytest.mark.parametrize("name", [name for name in CASES if name != "softmax"])
def test_training_builds_no_extended_distribution(name):
    batch, steps, source_length = 2, 3, 13
    case, rng = CASES[name], np.random.default_rng(0)
    head = case.make()
    arrays = example(rng, batch, steps, source_length)
    arguments = case.arguments(head, arrays)
    targets, _ = case.targets(rng, head, arrays)
    wide = {
        times * (V + span * source_length)
        for span in (1, head.max_span)
        for times in (1, batch, batch * steps)
    }

    def shapes(call):
        def total(*values):
            return ops.sum(head(**dict(zip(call, values))))

        return traced_shapes(total, head, *call.values())

    training = shapes({**arguments, **targets})
    assert name == "pointer_network" or any(shape[-1:] == (V,) for shape in training)
    assert not any(wide & set(shape) for shape in training)
    # The check can see: without targets the distribution is built.
    assert any(wide & set(shape) for shape in shapes(arguments))


@pytest.mark.parametrize("name", CASES)
def test_config_round_trip_and_mixed_precision(name):
    case = CASES[name]
    head = case.make(dtype="mixed_bfloat16", name="mine")
    copy = case.head_class.from_config(head.get_config())
    assert copy.get_config() == head.get_config()
    assert (copy.vocabulary_size, copy.name, copy.compute_dtype) == (V, "mine", "bfloat16")
    for option, value in case.options.items():
        assert getattr(copy, option) == value
    assert {weight.dtype for weight in head.trainable_weights} == {"float32"}
    arrays = example(np.random.default_rng(0))
    # A body under the same policy hands over bfloat16.
    state, memory = step_arguments(head, arrays, 0, dtype="bfloat16")
    log_probs, copies = head.step_log_probs(state, memory)
    assert keras.backend.standardize_dtype(log_probs.dtype) == "float32"
    assert keras.backend.standardize_dtype(copies.dtype) == "float32"
    np.testing.assert_allclose(np.exp(numpy(log_probs).astype("float64")).sum(-1), 1, atol=1e-5)
    # Near what float32 says.
    full = case.make()
    np.testing.assert_allclose(
        np.exp(numpy(log_probs)),
        np.exp(numpy(full.step_log_probs(*step_arguments(full, arrays, 0))[0])),
        atol=0.03,
    )


def functional_model(case, dtype):
    """A user's own model: Keras layers all around, the head on top."""
    source = keras.Input((None,), dtype="int32", name="source_ids")
    extended = keras.Input((None,), dtype="int32", name="source_extended_ids")
    previous = keras.Input((None,), dtype="int32", name="target_input_ids")
    targets = keras.Input((None,), dtype="int32", name="target_extended_ids")
    memory = keras.layers.Dense(6, "tanh", dtype=dtype)(
        keras.layers.Embedding(11, 5, dtype=dtype)(source)
    )
    inputs = keras.layers.Embedding(V, 5, dtype=dtype)(previous)
    hidden = keras.layers.Dense(6, "tanh", dtype=dtype)(inputs)
    context, attention = keras.layers.Attention(dtype=dtype)(
        [hidden, memory], return_attention_scores=True
    )
    head = case.head_class(V, **case.options, dtype=dtype)
    arguments = case.arguments(
        head,
        {
            "hidden": hidden,
            "context": context,
            "attention": attention,
            "source_extended_ids": extended,
            "memory_states": memory,
            "mask": ops.not_equal(source, 0),
            "inputs": inputs,
            "decoder_state": hidden,
            # Each word is the only translation of its own.
            "lexicon_ids": ops.expand_dims(ops.minimum(source, V - 1), -1),
            "lexicon_probabilities": ops.expand_dims(ops.ones_like(source, dtype="float32"), -1),
            "targets": targets,
        },
    )
    used = [
        (source, {"context", "attention", "memory_states", "lexicon_ids"} & set(arguments)),
        (extended, {"source_extended_ids"} & set(arguments)),
        (previous, True),
        (targets, True),
    ]
    return keras.Model([x for x, use in used if use], head(**arguments))


@pytest.mark.parametrize("name", EACH_CLASS)
def test_in_a_functional_model_of_ones_own(name, tmp_path):
    """Trains by `fit`, is saved, and goes on from the file."""
    case, rng = CASES[name], np.random.default_rng(0)
    keras.utils.set_random_seed(0)
    model = functional_model(case, "mixed_bfloat16" if EACH_CLASS.index(name) % 2 else None)
    source = rng.integers(4, 11, size=(16, 5))
    extended = np.where(
        source < V, source, V + np.argmax(source[:, :, None] == source[:, None, :], axis=-1)
    )
    labels = extended
    previous = np.concatenate(
        [np.full((16, 1), 2), np.where(labels < V, labels, 1)[:, :-1]], axis=1
    )
    arrays = {
        "source_ids": source,
        "source_extended_ids": extended,
        "target_input_ids": previous,
        "target_extended_ids": labels,
    }
    arrays = [arrays[x.name] for x in model.inputs]
    model.compile(
        keras.optimizers.Adam(0.02), loss=losses.negative_log_likelihood, jit_compile=not TENSORFLOW
    )
    history = model.fit(arrays, labels, epochs=10, batch_size=16, verbose=0).history["loss"]
    assert np.isfinite(history).all()
    # What the softmax and the pointer network cannot say is as impossible after training as before
    # it.
    assert name == "pointer_network" or history[-1] < 0.9 * history[0]
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.compute_output_shape([x.shape for x in arrays]) == (16, 5)
    np.testing.assert_array_equal(numpy(model(arrays)), numpy(loaded(arrays)))
    # Loaded with its loss and optimizer, training goes on.
    loaded.run_eagerly = TENSORFLOW
    assert np.isfinite(loaded.evaluate(arrays, labels, verbose=0))
