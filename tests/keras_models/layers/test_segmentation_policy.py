"""The policy of the segmenting encoder: agrees with REINFORCE by its equations."""

import math

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import ops

from keras_models import segmentation
from keras_models.layers import SegmentationPolicy
from keras_models.layers.segmentation_policy import SegmentCounts
from tests.keras_models import segmentation_oracles as oracles
from tests.keras_models.backends import TENSORFLOW, numpy, randomize, value_and_gradients
from tests.keras_models.layers.padding import padded

SIZE, UNITS, BUCKETS = 3, 4, 7


def make_policy(**options):
    policy = SegmentationPolicy(UNITS, **options)
    policy.build()
    randomize(policy, 3, 0.5)
    for name, value in (("imitation", 0.0), ("translation_share", 1.0), ("policy_share", 1.0)):
        getattr(policy, name).assign(value)
    return policy


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"reinforce_weight": 0.3, "length_prior_weight": 0.2, "mean_length": 1.7},
        {"baseline": "samples", "samples": 2, "normalize_rewards": True},
        {"confidence_penalty": 0.4, "fertility_weight": 0.6},
    ],
    ids=lambda options: ",".join(options) or "default",
)
@settings(max_examples=6 if TENSORFLOW else 4)
@given(seed=st.integers(0, 999), sentences=st.sampled_from([1, 3]))
def test_the_loss_is_that_of_the_equations(options, seed, sentences):
    policy = make_policy(**options)
    samples = options.get("samples", 1)
    rng = np.random.default_rng(seed)
    lengths = np.repeat(rng.integers(1, 6, size=sentences), samples)
    target_lengths = np.repeat(rng.integers(1, 5, size=sentences), samples)
    ends = [
        [*rng.integers(0, 2, size=length - 1).astype(bool).tolist(), True] for length in lengths
    ]
    logits = [rng.normal(size=length) for length in lengths]
    characters = [rng.normal(size=(length, UNITS)) for length in lengths]
    log_probs = [-rng.uniform(0.1, 4, size=length) for length in target_lengths]
    attention = [
        rng.dirichlet(np.ones(length), size=size) for length, size in zip(lengths, target_lengths)
    ]
    # Always padded alike: JAX compiles once.
    target_length, length = 4, 5
    looked = np.zeros((len(lengths), target_length, length), "float32")
    for row, one in enumerate(attention):
        looked[row, : one.shape[0], : one.shape[1]] = one
    mask = padded([[True] * size for size in lengths], bool, length)
    target_mask = padded([[True] * size for size in target_lengths], bool, target_length)
    encoded = {
        "logits": padded(logits, "float32", length),
        "ends": padded(ends, bool, length),
        "characters": padded(characters, "float32", length),
    }
    # Behind a target's end its log-probabilities mean nothing.
    target_log_prob = np.where(
        target_mask, padded(log_probs, "float32", target_length), -7.0
    ).astype("float32")
    ids = mask.astype("int32")
    got = float(policy.loss(encoded, ids, mask, target_log_prob, target_mask, looked))
    regression = None
    if policy.regression is not None:
        kernel, bias = policy.regression.get_weights()
        regression = kernel[:, 0], float(bias[0])
    kept = {
        name: value
        for name, value in options.items()
        if name not in ("baseline", "samples", "mean_length")
    }
    if kept.get("normalize_rewards") and sentences * samples == 1:
        return
    expected = oracles.policy_loss(
        logits,
        ends,
        characters,
        log_probs,
        attention,
        samples,
        policy.mean_length,
        policy.baseline,
        regression,
        **kept,
    )
    assert got == pytest.approx(expected, rel=1e-4, abs=1e-4)


def test_new_segments_raise_the_reward():
    """The bonus is added to log p(E|F) / |E| before anything is made of it."""
    policy, plain = make_policy(novelty_weight=0.7), make_policy()
    policy.counts.counts.assign(np.zeros(policy.counts.counts.shape))
    for one in (policy, plain):
        one.regression.set_weights([np.zeros((UNITS, 1)), np.array([0.2])])
    mask, target_mask = np.ones((1, 3), bool), np.ones((1, 2), bool)
    encoded = {
        "logits": np.array([[0.3, -0.2, 0.9]], "float32"),
        "ends": np.array([[True, False, True]]),
        "characters": np.zeros((1, 3, UNITS), "float32"),
    }
    ids, looked = np.array([[4, 5, 6]]), np.full((1, 2, 3), 1 / 3, "float32")
    log_probs = np.array([[-1.0, -3.0]], "float32")

    def rewarded(by):
        return float(
            plain.loss(encoded, ids, mask, log_probs + np.float32(by), target_mask, looked)
        )

    # Each segment is new, then each has been met once.
    for bonus in (1.0, 1 / math.sqrt(2)):
        got = float(policy.loss(encoded, ids, mask, log_probs, target_mask, looked))
        assert got == pytest.approx(rewarded(0.7 * bonus), rel=1e-5)


def test_only_the_policy_learns_of_the_reward():
    """Reward and baseline give the logits REINFORCE's gradient, and none to other inputs."""
    policy = make_policy()
    mask = np.ones((1, 3), bool)
    target_mask = np.ones((1, 2), bool)
    attention = np.full((1, 2, 3), 1 / 3, "float32")
    logits = np.array([[0.3, -0.2, 0.9]], "float32")
    characters = np.random.default_rng(0).normal(size=(1, 3, UNITS)).astype("float32")
    target_log_prob = np.array([[-1.0, -3.0]], "float32")
    ends = np.array([[True, False, True]])

    def loss(logits, characters, target_log_prob):
        encoded = {"logits": logits, "ends": ops.convert_to_tensor(ends), "characters": characters}
        return policy.loss(
            encoded, mask.astype("int32"), mask, target_log_prob, target_mask, attention
        )

    _, gradients = value_and_gradients(loss, [logits, characters, target_log_prob], policy)
    assert not gradients[1].any() and not gradients[2].any()
    kernel, bias = policy.regression.get_weights()
    advantage = -2.0 - (characters[0] @ kernel[:, 0] + bias[0])
    # d log pi(S) / d logit = S - pi.
    expected = -(ends[0] - 1 / (1 + np.exp(-logits[0]))) * advantage / 2
    np.testing.assert_allclose(gradients[0][0], [*expected[:2], 0.0], rtol=1e-4, atol=1e-5)


def test_a_step_makes_a_rewarded_segmentation_likelier():
    policy = make_policy(baseline="samples", samples=2)
    mask = np.ones((2, 3), bool)
    logits = np.zeros((2, 3), "float32")
    ends = np.array([[True, False, True], [False, True, True]])
    target_log_prob = np.array([[-1.0], [-5.0]], "float32")  # the first is much the better

    def loss(logits):
        encoded = {
            "logits": logits,
            "ends": ops.convert_to_tensor(ends),
            "characters": np.zeros((2, 3, UNITS), "f4"),
        }
        return policy.loss(
            encoded,
            mask.astype("int32"),
            mask,
            target_log_prob,
            np.ones((2, 1), bool),
            np.ones((2, 1, 3), "f4"),
        )

    _, (gradient, *_) = value_and_gradients(loss, [logits], policy)
    step = -gradient.sum(axis=0)
    assert step[0] > 0 > step[1]


def test_phases_and_imitation():
    policy = make_policy(warm_up="script", reinforce_weight=5.0)
    mask = np.ones((2, 4), bool)
    script = np.array([[0, 1, 0, 1], [1, 1, 0, 1]])
    logits = np.array([[9.0, -9.0, 9.0, -9.0]] * 2, "float32")
    policy.imitation.assign(1.0)
    np.testing.assert_array_equal(
        numpy(policy.draw(ops.convert_to_tensor(logits), mask, script)), script == 1
    )
    encoded = {
        "logits": logits,
        "ends": script == 1,
        "characters": np.zeros((2, 4, UNITS), "float32"),
    }
    arguments = (
        mask.astype("int32"),
        mask,
        np.zeros((2, 1), "f4"),
        np.ones((2, 1), bool),
        np.ones((2, 1, 4), "f4"),
    )
    policy.regression.set_weights([np.zeros((UNITS, 1)), np.zeros(1)])
    taken = [[-9.0, -9.0, -9.0], [9.0, -9.0, -9.0]]
    expected = sum(math.log1p(math.exp(-x)) for row in taken for x in row) / 2
    assert float(policy.loss(encoded, *arguments)) == pytest.approx(expected, rel=1e-4)
    policy.imitation.assign(0.0)
    drawn = numpy(policy.draw(ops.convert_to_tensor(logits), mask, script))
    assert (
        drawn.tolist() == [[True, False, True, True]] * 2
    )  # by logits that leave nothing to chance
    policy.policy_share.assign(0.0)
    assert float(policy.loss(encoded, *arguments)) == 0.0
    policy.translation_share.assign(0.0)
    _, (gradient, *_) = value_and_gradients(
        lambda x: ops.sum(policy.share(x)), [np.ones((1, 2), "f4")], policy
    )
    assert not gradient.any()


def test_some_sentences_explore_by_the_prior():
    """Epsilon greedy: some rows are cut by drawn lengths, the others as the logits say.

    The logits leave nothing to chance.
    """
    rows, length = 400, 12
    logits = ops.convert_to_tensor(np.full((rows, length), -50.0, "float32"))
    mask = ops.convert_to_tensor(np.ones((rows, length), bool))
    for epsilon, low, high in ((0.0, 0.0, 0.0), (0.3, 0.2, 0.4), (1.0, 1.0, 1.0)):
        drawn = numpy(make_policy(epsilon=epsilon, mean_length=2.0).draw(logits, mask))
        # By the logits the last character alone ends a segment; 12 characters in one drawn segment
        # are next to impossible.
        explored = drawn[:, :-1].any(axis=1)
        assert low <= explored.mean() <= high and drawn[:, -1].all()
        if explored.any():
            # max(k, 1) of Poisson(2) has the mean 2 + exp(-2).
            assert drawn[explored].sum(axis=1).mean() == pytest.approx(
                length / (2 + math.exp(-2)), rel=0.15
            )


def test_lengths_of_the_prior_are_a_warm_up_too():
    policy = make_policy(warm_up="prior", mean_length=3.0)
    policy.imitation.assign(1.0)
    logits, mask = np.full((300, 15), -50.0, "float32"), np.ones((300, 15), bool)
    drawn = numpy(policy.draw(ops.convert_to_tensor(logits), ops.convert_to_tensor(mask)))
    assert drawn.sum(axis=1).mean() == pytest.approx(15 / (3 + math.exp(-3)), rel=0.15)
    policy.imitation.assign(0.0)
    drawn = numpy(policy.draw(ops.convert_to_tensor(logits), ops.convert_to_tensor(mask)))
    assert (drawn.sum(axis=1) == 1).all()


def test_decoding_draws_alike_and_begins_with_the_likeliest():
    policy, samples = make_policy(decoding_samples=6), 6
    logits = np.repeat(
        np.array([[0.4, -0.4, 0.1, 0.0], [-3.0, 3.0, 0.2, 0.0]], "float32"), samples, axis=0
    )
    mask = np.repeat(np.array([[True] * 4, [True] * 3 + [False]]), samples, axis=0)

    def decide():
        return numpy(
            policy.decode(ops.convert_to_tensor(logits), ops.convert_to_tensor(mask), samples)
        )

    first = decide()
    np.testing.assert_array_equal(first, decide())
    assert first[0].tolist() == [True, False, True, True] and first[samples].tolist() == [
        False,
        True,
        True,
        False,
    ]
    assert len({tuple(row) for row in first[:samples].tolist()}) > 1
    assert first[:samples, 3].all() and first[samples:, 2].all() and not first[samples:, 3].any()


@settings(max_examples=12)
@given(length=st.sampled_from([1, 4, 30]), seed=st.integers(0, 99))
def test_the_prior_draws_whole_segmentations(length, seed):
    uniforms = np.random.default_rng(seed).uniform(size=(2, length)).astype("float32")
    mask = np.arange(length) < np.array([[length], [max(1, length - 3)]])
    ends = numpy(
        segmentation.drawn_from_prior(
            ops.convert_to_tensor(uniforms), ops.convert_to_tensor(mask), 2.5
        )
    )
    lengths = []
    for row in range(2):
        left, expected = int(mask[row].sum()), []
        for uniform in uniforms[row]:
            # The inverse of Poisson's distribution function, at least one character.
            drawn, mass, term = 0, math.exp(-2.5), math.exp(-2.5)
            while uniform >= mass and drawn < 40:
                drawn += 1
                term *= 2.5 / drawn
                mass += term
            expected.append(max(drawn, 1))
        places, at = [], -1
        for size in expected:
            at += size
            if at >= left - 1:
                break
            places.append(at)
        assert np.flatnonzero(ends[row]).tolist() == [*places, left - 1]
        lengths.append(expected)


def test_a_new_segment_is_worth_more_than_a_known_one():
    counts = SegmentCounts(buckets=10_007)
    counts.build()
    ids = np.array([[5, 6, 7, 0], [6, 5, 5, 6]])
    ends = np.array([[False, True, True, False], [True, True, False, True]])
    assert numpy(counts(ids, ends)).tolist() == [1.0, 1.0]
    counts(ids, ends, training=True)
    # (5 6), (7) and (6), (5), (5 6): the last has been met twice, the others once.
    known = numpy(counts(ids, ends))
    once, twice = 1 / math.sqrt(2), 1 / math.sqrt(3)
    np.testing.assert_allclose(known, [(twice + once) / 2, (once + once + twice) / 3], rtol=1e-6)
    assert numpy(counts(np.array([[6, 5]]), np.array([[False, True]]))).tolist() == [
        1.0
    ]  # another order is another segment
    assert float(ops.sum(counts.counts)) == 5.0


def test_detached_it_shapes_the_states_by_imitation_alone():
    policy = make_policy(detached=True, warm_up="script")
    assert float(policy.state_gradient()) == 0.0
    policy.imitation.assign(1.0)
    assert float(policy.state_gradient()) == 1.0
    assert make_policy().state_gradient() == 1.0


def test_settings_that_make_no_sense():
    for options, words in (
        ({"baseline": "mean"}, "baseline must be"),
        ({"baseline": "samples"}, "samples must be at least 2"),
        ({"warm_up": "x"}, "warm_up must be"),
        ({"mean_length": 0.5}, "mean_length must be at least 1"),
    ):
        with pytest.raises(ValueError, match=words):
            SegmentationPolicy(UNITS, **options)
    policy = SegmentationPolicy.from_config(make_policy(epsilon=0.25).get_config())
    assert policy.epsilon == 0.25 and isinstance(policy, keras.layers.Layer)
