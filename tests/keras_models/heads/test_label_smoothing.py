"""Label smoothing: each head's loss is that of its definition, over all that it can say."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import ops

from keras_models.heads import PointerNetwork, SpanCopy
from keras_models.heads.copy_head import SPAN_LENGTHS, SPAN_STARTS
from keras_models.layers.numerics import LOG_FLOOR
from keras_models.layers.vocabulary import Candidates, VocabularySoftmax
from tests.keras_models.backends import (
    assert_slopes,
    numpy,
    randomize,
    shared_by_config,
    traced_shapes,
    value_and_gradients,
)
from tests.keras_models.heads.head_cases import CASES, STATE_NAMES, example
from tests.keras_models.heads.sizes import END, HIDDEN, V
from tests.keras_models.heads.test_all_heads import EACH_CLASS, edge_arrays, expected_of

# Every start of a span has ends of its own there, which a training does not score.
REFUSED = "span_copy, start"
SMOOTHED = [name for name in CASES if name != REFUSED]
AMOUNT = 0.3


def smoothed(head, arrays, targets, amount=AMOUNT):
    """The head's smoothed log-probabilities of some targets, `[batch, steps]`."""
    names = [*STATE_NAMES, "memory_states", "attention"]
    state = {name: ops.cast(arrays[name], head.compute_dtype) for name in STATE_NAMES}
    attention = ops.convert_to_tensor(arrays["attention"])
    logs = ops.log(ops.maximum(attention, 1e-38))
    state["attention_log_weights"] = ops.where(attention > 0, logs, -1e9)
    states = ops.cast(arrays["memory_states"], head.compute_dtype)
    memory = {
        "states": states,
        "mask": ops.convert_to_tensor(arrays["mask"]),
        "extended_ids": ops.convert_to_tensor(arrays["source_extended_ids"]),
        "lexicon_ids": ops.convert_to_tensor(arrays["lexicon_ids"]),
        "lexicon_probabilities": ops.convert_to_tensor(arrays["lexicon_probabilities"]),
        **head.prepare(states),
    }
    assert set(names) <= set(arrays)
    labels = None
    if "span_starts" in targets:
        labels = {SPAN_STARTS: targets["span_starts"], SPAN_LENGTHS: targets["span_lengths"]}
    return head.target_log_prob(
        state, memory, ops.convert_to_tensor(targets["targets"]), labels, label_smoothing=amount
    )


def outcomes_of(head, ids, mask):
    """All that a head can say of a source: places in a step's distribution."""
    words = list(range(V))
    if isinstance(head, PointerNetwork):
        return sorted({END, *ids[mask]})
    if not head.copies:
        return words
    if isinstance(head, SpanCopy):
        length = len(ids)
        return words + [
            V + more * length + first
            for first in np.flatnonzero(mask)
            for more in range(head.max_span)
            if first + more < length and mask[first + more]
        ]
    if not head.merges:
        return words + [V + j for j in np.flatnonzero(mask)]
    return sorted({*words, *ids[mask]})


def expected(case, head, arrays, outcomes, amount=AMOUNT):
    """(1 - amount) log p(target) + amount * mean of log p, by plain loops in float64."""
    distributions, _ = expected_of(case, head, arrays)
    result = np.zeros(outcomes.shape)
    for b, t in np.ndindex(outcomes.shape):
        if outcomes[b, t] < 0:
            # Inside a span nothing is chosen.
            continue
        p = distributions[b, t]
        said = outcomes_of(head, arrays["source_extended_ids"][b], arrays["mask"][b])
        logs = np.log(np.maximum(p[said], np.exp(LOG_FLOOR)))
        result[b, t] = (1 - amount) * np.log(p[outcomes[b, t]]) + amount * logs.mean()
    return result


def run(head, arrays, targets):
    return numpy(shared_by_config(head, smoothed, arrays, targets, key="smoothed"))


@pytest.mark.parametrize("name", SMOOTHED)
@settings(max_examples=3)
@given(seed=st.integers(0, 10**6), size=st.sampled_from([(2, 2, 5), (1, 2, 1)]))
def test_agrees_with_the_definition(name, seed, size):
    case, rng = CASES[name], np.random.default_rng(seed)
    head = case.make(seed)
    arrays = example(rng, *size)
    targets, outcomes = case.targets(rng, head, arrays)
    log_prob = run(head, arrays, targets)
    assert log_prob.dtype == np.float32
    np.testing.assert_allclose(
        log_prob, expected(case, head, arrays, outcomes), rtol=2e-5, atol=2e-5
    )


@pytest.mark.parametrize("name", SMOOTHED)
def test_repeats_unknown_words_saturated_attention_and_no_source(name):
    case, rng = CASES[name], np.random.default_rng(0)
    head = case.make()
    arrays = edge_arrays(rng)
    targets, outcomes = case.targets(rng, head, arrays)
    np.testing.assert_allclose(
        run(head, arrays, targets), expected(case, head, arrays, outcomes), rtol=2e-5, atol=2e-5
    )


@pytest.mark.parametrize(
    "name,dtype,gate",
    [(name, "mixed_bfloat16", 0) for name in SMOOTHED]
    + [(name, None, gate) for name in EACH_CLASS if name != REFUSED for gate in (1e4, -1e4)],
)
def test_no_nan_and_a_bounded_loss(name, dtype, gate):
    """However shut a gate is, the mean is that of finite logarithms."""
    case, rng = CASES[name], np.random.default_rng(0)
    head = case.make(dtype=dtype)
    if gate:
        case.saturate(head, gate)
    arrays = edge_arrays(rng)
    targets, _ = case.targets(rng, head, arrays)

    def mean(amount):
        # The target itself may be impossible.
        return smoothed(head, arrays, targets, amount=1.0) * amount

    value, gradients = value_and_gradients(lambda: ops.mean(mean(AMOUNT)), [], head)
    assert np.isfinite(value) and all(np.isfinite(gradient).all() for gradient in gradients)
    assert gate or all(np.abs(gradient).sum() > 0 for gradient in gradients)
    # A softmax with scores of 1e4 has no gate in the way.
    unbounded = name in ("softmax", "lexicon_bias", "pointer_network") and gate
    assert unbounded or value > AMOUNT * (LOG_FLOOR - 20)


@pytest.mark.parametrize("name", SMOOTHED)
def test_gradients_are_those_of_the_definition(name):
    """Central differences of the float64 oracle, for one number of each weight."""
    case, rng = CASES[name], np.random.default_rng(1)
    head = case.make(1)
    arrays = example(rng)
    targets, outcomes = case.targets(rng, head, arrays)
    value, gradients = value_and_gradients(
        lambda: ops.sum(smoothed(head, arrays, targets)), [], head
    )
    np.testing.assert_allclose(
        value, expected(case, head, arrays, outcomes).sum(), rtol=1e-5, atol=1e-4
    )

    def oracle():
        return expected(case, head, arrays, outcomes).sum()

    assert_slopes(head, gradients, oracle, rng, atol=5e-5)


@pytest.mark.parametrize("name", [name for name in SMOOTHED if name != "softmax"])
def test_builds_no_extended_distribution(name):
    batch, steps, source_length = 2, 3, 13
    case, rng = CASES[name], np.random.default_rng(0)
    head = case.make()
    arrays = example(rng, batch, steps, source_length)
    targets, _ = case.targets(rng, head, arrays)
    wide = {
        times * (V + span * source_length)
        for span in (1, head.max_span)
        for times in (1, batch, batch * steps)
    }
    shapes = traced_shapes(
        lambda hidden: ops.sum(smoothed(head, {**arrays, "hidden": hidden}, targets)),
        head,
        arrays["hidden"],
    )
    assert not any(wide & set(shape) for shape in shapes)


def test_spans_whose_ends_depend_on_the_start_are_refused():
    case, rng = CASES[REFUSED], np.random.default_rng(0)
    head = case.make()
    arrays = example(rng)
    targets, _ = case.targets(rng, head, arrays)
    with pytest.raises(ValueError, match='needs copying_context="expected"'):
        smoothed(head, arrays, targets)


def test_the_mean_of_the_logits_is_that_of_all_words():
    layer = VocabularySoftmax(V)
    layer.build((None, None, HIDDEN))
    randomize(layer)
    hidden = np.random.default_rng(0).normal(size=(2, 3, HIDDEN)).astype("float32")
    np.testing.assert_allclose(
        numpy(layer.mean_logit(hidden)), numpy(layer.logits(hidden)).mean(axis=-1), atol=1e-6
    )
    shapes = traced_shapes(lambda hidden: ops.sum(layer.mean_logit(hidden)), layer, hidden)
    assert not {(2, 3, V), (6, V)} & shapes


def test_drawn_words_normalise_the_mean_too():
    """With the large-vocabulary trick the sum of the softmax is the draw's."""
    case, rng = CASES["softmax"], np.random.default_rng(0)
    head = case.make()
    hidden = rng.normal(size=(1, 2, HIDDEN)).astype("float32")
    targets = np.array([[4, 2]], "int32")
    words, log_weights = np.array([4, 2, 6], "int32"), np.log([1, 1, 5]).astype("float32")
    memory = {"candidates": Candidates(*map(ops.convert_to_tensor, (words, log_weights)))}
    log_prob = numpy(
        head.target_log_prob({"hidden": hidden}, memory, targets, label_smoothing=AMOUNT)
    )
    logits = numpy(head.vocabulary.logits(hidden)).astype("float64")
    total = np.log((np.exp(logits[..., words]) * [1, 1, 5]).sum(-1))
    chosen = np.take_along_axis(logits, targets[..., None], axis=-1)[..., 0] - total
    mean = (logits - total[..., None]).mean(-1)
    np.testing.assert_allclose(log_prob, 0.7 * chosen + 0.3 * mean, rtol=1e-5)
