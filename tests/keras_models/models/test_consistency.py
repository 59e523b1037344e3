"""R-Drop under bodies and heads: the loss is its definition's, computed from steps of decoding."""

import numpy as np
import pytest
from keras import ops

from keras_models import losses
from keras_models.heads.copy_head import SPAN_LENGTHS, SPAN_STARTS
from keras_models.layers.numerics import LOG_FLOOR
from tests.keras_models.backends import TENSORFLOW, gradient_function, numpy, randomize
from tests.keras_models.models.test_bodies import PAIRS, make, pairs

ALPHA = 3.0
# Two passes over a source differ by dropout alone, which no oracle can draw again. So the second
# pass reads other sources here.
BOTH = [("transformer", head) for head in dict.fromkeys(head for _, head in PAIRS)]
BOTH += [("gru", "pointer_generator")]
BOTH += [("lstm", "joint_copy"), ("no attention", "softmax")] if TENSORFLOW else []


def other(inputs):
    """Sources in another order of rows: other states for the same targets."""
    return {
        name: ops.flip(value, axis=0) if name == "source_ids" else value
        for name, value in inputs.items()
    }


def whole_loss(model, inputs):
    """What gives the loss, penalties included on JAX too, and its gradients for the weights."""
    added = []
    model.add_loss = added.append

    def loss():
        added.clear()
        log_prob = model(inputs, training=True)
        return losses.negative_log_likelihood(inputs["target_extended_ids"], log_prob) + sum(added)

    return gradient_function(loss, model)


def divergence_oracle(first, second):
    """1/2 (KL(p || q) + KL(q || p)), by plain loops in float64."""
    total = 0.0
    for one, two in zip(first.astype("float64"), second.astype("float64")):
        log_p, log_q = max(one, LOG_FLOOR), max(two, LOG_FLOOR)
        total += 0.5 * np.exp(log_p) * (log_p - log_q)
        total += 0.5 * np.exp(log_q) * (log_q - log_p)
    return total


def distributions(model, inputs, actions):
    """What each step of decoding gives to all actions, `[batch, target_length, number]`."""
    memory, carry = model.encode(inputs, max_length=actions.shape[1])
    tokens, steps = ops.full_like(actions[:, 0], 2), []
    for t in range(actions.shape[1]):
        log_probs, _, _, carry = model.step(tokens, carry, memory, t)
        steps.append(numpy(log_probs))
        tokens = actions[:, t]
    return np.stack(steps, axis=1)


def assert_is_that_of_its_definition(model, plain, inputs, chosen=None):
    """Compares the loss of a model with its definition's.

    Args:
        model: of `consistency_weight` ALPHA.
        plain: the same without.
        inputs: of a batch, without dropout.
        chosen: bool `[batch, target_length]`, the targets that the head chooses; all by default.
    """
    labels = numpy(inputs["target_extended_ids"])
    chosen = labels != 0 if chosen is None else chosen

    def passes(given, training):
        if not training:
            return given
        return {name: ops.concatenate([given[name], other(given)[name]]) for name in given}

    model.in_passes = passes
    loss, gradients = whole_loss(model, inputs)()
    assert all(np.isfinite(gradient).all() for gradient in gradients)
    plain.set_weights(model.get_weights())
    losses_of_passes = [whole_loss(plain, given)()[0] for given in (inputs, other(inputs))]
    first, second = (
        distributions(plain, given, inputs["target_extended_ids"])
        for given in (inputs, other(inputs))
    )
    terms = [
        divergence_oracle(first[b, t], second[b, t]) if chosen[b, t] else 0.0
        for b, t in np.argwhere(labels != 0)
    ]
    assert min(term for term in terms if term) > 0
    expected = np.mean(losses_of_passes) + ALPHA / 2 * np.mean(terms)
    np.testing.assert_allclose(loss, expected, rtol=2e-5)


@pytest.mark.parametrize("body,head", BOTH)
def test_the_loss_is_that_of_its_definition(body, head):
    model = make(body, head, consistency_weight=ALPHA)
    randomize(model)
    inputs = pairs()
    labels = numpy(inputs["target_extended_ids"])
    chosen = labels != 0
    if head == "span_copy":
        # The first row copies a span of two tokens, then two words.
        starts, lengths = np.full(labels.shape, -1), np.zeros(labels.shape, "int64")
        starts[0, 0], lengths[0, :2] = 1, (2, -1)
        inputs[SPAN_STARTS] = ops.convert_to_tensor(starts, dtype="int32")
        inputs[SPAN_LENGTHS] = ops.convert_to_tensor(lengths, dtype="int32")
        chosen &= lengths >= 0

    assert_is_that_of_its_definition(model, make(body, head), inputs, chosen)


@pytest.mark.parametrize("body", ["gru", "transformer"] if TENSORFLOW else ["transformer"])
def test_without_dropout_two_passes_are_one(body):
    inputs = pairs()
    model, plain = make(body, consistency_weight=ALPHA), make(body)
    np.testing.assert_allclose(
        numpy(model(inputs, training=True)), numpy(plain(inputs, training=True)), atol=1e-6
    )
    values, gradients = zip(*(whole_loss(one, inputs)() for one in (model, plain)))
    np.testing.assert_allclose(*values, rtol=1e-6)
    for one, two in zip(*gradients, strict=True):
        np.testing.assert_allclose(one, two, atol=1e-6)


@pytest.mark.parametrize("body", ["gru", "transformer"] if TENSORFLOW else ["gru"])
def test_dropout_makes_the_passes_differ_in_training_alone(body):
    inputs = pairs()
    model = make(body, consistency_weight=ALPHA, dropout=0.5)
    randomize(model)
    plain = make(body, dropout=0.5)
    plain.set_weights(model.get_weights())
    np.testing.assert_array_equal(numpy(model(inputs)), numpy(plain(inputs)))

    def penalty(weight):
        made = make(body, consistency_weight=weight, dropout=0.5, coverage_loss_weight=0.0)
        randomize(made)
        made(inputs, training=True)
        return float(sum(made.losses))

    assert penalty(1.0) > 1e-2
    np.testing.assert_allclose(penalty(2.0), 2 * penalty(1.0), rtol=1e-5)
    assert model.get_config()["consistency_weight"] == ALPHA


def test_the_divergence_of_the_impossible_is_finite():
    logs = np.log(np.array([[0.5, 0.5, 1e-30], [1.0, 1e-30, 1e-30]], "float32"))
    logs[0, 2] = logs[1, 1] = -1e9
    found = numpy(losses.symmetric_divergence(logs[:1], logs[1:]))
    np.testing.assert_allclose(found, [divergence_oracle(*logs)], rtol=1e-5)
    assert np.isfinite(found).all()


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="consistency_weight must be at least 0; got -1"):
        make("gru", consistency_weight=-1)
    for option in ({"scheduled_sampling": True}, {"large_vocabulary_size": 4}):
        with pytest.raises(ValueError, match="goes neither with a large_vocabulary_size nor"):
            make("gru", consistency_weight=1.0, **option)
    with pytest.raises(ValueError, match="does not go with encoder 'segmenting'"):
        make("gru", "softmax", consistency_weight=1.0, encoder="segmenting")
