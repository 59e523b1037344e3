import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import ops

from keras_models.decoding import decode, draw_uniforms, greedy_search, sample_search
from keras_models.decoding.sampling import draw_actions, reshape_distribution
from keras_models.layers.numerics import LOG_ZERO
from tests.keras_models import decoding_oracles, oracles
from tests.keras_models.backends import compiled, numpy
from tests.keras_models.decoding.fakes import (
    END,
    ScriptStep,
    TableStep,
    logs,
    small_inputs,
    small_model,
)
from tests.keras_models.decoding.test_beam import assert_same


@settings(max_examples=15)
@given(
    seed=st.integers(0, 10**6),
    temperature=st.sampled_from([0.3, 1.0, 2.0]),
    top_k=st.sampled_from([0, 1, 3, 20]),
    top_p=st.sampled_from([0.1, 0.7, 1.0]),
)
def test_reshaping_agrees_with_the_definitions(seed, temperature, top_k, top_p):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(9, 0.5), size=3)
    p[rng.random(p.shape) < 0.2] = 0
    p[:, 0] += 0.01
    p[:, 1] = p[:, 5]  # a tie
    p /= p.sum(-1, keepdims=True)
    probabilities, actions = numpy(
        reshape_distribution(ops.convert_to_tensor(logs(p)), temperature, top_k, top_p)
    )
    got = np.zeros(p.shape)
    np.put_along_axis(got, actions, probabilities, axis=1)
    for row in range(3):
        expected = decoding_oracles.sampling_distribution(
            p[row], temperature, top_k or None, top_p if top_p < 1 else None
        )
        np.testing.assert_allclose(got[row], expected, rtol=1e-4, atol=1e-6)
        assert ((got[row] > 0) == (expected > 0)).all()


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10**6),
    temperature=st.sampled_from([1e-300, 1e-45, 1e-30, 1e-9, 1e-6, 1e-3, 1.0, 1e3, 1e9, 1e30]),
    options=st.sampled_from([{}, {"top_k": 4}, {"top_k": 8}, {"top_p": 0.9}, {"top_p": 0.999}]),
)
def test_nothing_banned_is_drawn_whatever_the_temperature(seed, temperature, options):
    """Nor does a temperature near 0 take anything but the likeliest."""
    rng = np.random.default_rng(seed)
    log_probs = np.log(rng.dirichlet(np.full(9, 0.3), size=64) + 1e-30).astype("float32")
    banned = rng.random(log_probs.shape) < 0.6
    banned[:, 4] = False
    # Owed tokens that the model rules out have this much.
    log_probs[:, 4] = np.where(rng.random(64) < 0.5, -1e4, log_probs[:, 4])
    log_probs[banned] = LOG_ZERO
    numbers = rng.random(64).astype("float32")
    for draw in (draw_actions, compiled_draw(temperature, **options)):
        drawn = numpy(draw(log_probs, numbers, temperature, **options))
        assert not banned[np.arange(64), drawn].any()
        if temperature <= 1e-9:
            np.testing.assert_array_equal(drawn, log_probs.argmax(axis=1))


@functools.cache
def compiled_draw(temperature, **options):
    function = compiled(lambda logs, numbers: draw_actions(logs, numbers, temperature, **options))
    return lambda logs, numbers, *_, **__: function(logs, numbers)


def test_the_nucleus_holds_the_likeliest_when_compiled():
    """An action that has nearly all of the mass is not lost by rounding."""
    p = np.random.default_rng(0).dirichlet(np.full(40, 0.02), size=200)
    log_probs = ops.convert_to_tensor(logs(p))
    plain, fast = (f(log_probs) for f in (reshaped, compiled(reshaped)))
    for probabilities, actions in (numpy(plain), numpy(fast)):
        np.testing.assert_allclose(probabilities.sum(-1), 1, rtol=1e-5)
        np.testing.assert_array_equal(actions[:, 0], p.argmax(-1))
    np.testing.assert_array_equal(numpy(plain)[0] > 0, numpy(fast)[0] > 0)


def reshaped(log_probs):
    return reshape_distribution(log_probs, temperature=1.2, top_p=0.9)


# The first numbers of seed 7: a change would change every served sample.
UNIFORMS_OF_SEVEN = [0.8963412046432495, 0.8117602467536926, 0.8939462304115295]


def test_uniforms():
    """Even, different for each seed, and the same compiled or not, on either backend."""
    plain = numpy(draw_uniforms(7, 50, 4, 9))
    np.testing.assert_array_equal(plain, numpy(compiled(lambda: draw_uniforms(7, 50, 4, 9))()))
    np.testing.assert_array_equal(
        plain, numpy(draw_uniforms(ops.convert_to_tensor(7, dtype="int32"), 50, 4, 9))
    )
    assert (
        plain.shape == (50, 4, 10)
        and plain.dtype == np.float32
        and plain.min() >= 0
        and plain.max() < 1
    )
    np.testing.assert_allclose(plain[0, 0, :3], UNIFORMS_OF_SEVEN)
    many = [numpy(draw_uniforms(seed, 100, 10, 9)).ravel() for seed in (0, 1, 2, -1, 2**40 + 5)]
    for numbers in many:
        counts, _ = np.histogram(numbers, bins=20, range=(0, 1))
        # Chi-squared with 19 degrees of freedom: 50 is beyond 1 in 5000.
        assert ((counts - 500) ** 2 / 500).sum() < 50
        assert len(np.unique(numbers)) > 9900
        assert abs(np.corrcoef(numbers[:-1], numbers[1:])[0, 1]) < 0.04
    for i in range(4):
        assert abs(np.corrcoef(many[i], many[i + 1])[0, 1]) < 0.04


@pytest.mark.parametrize(
    "options,message",
    [
        (
            {"temperature": 0.0},
            "temperature must be above 0; got 0.0. Greedy search takes the likeliest.",
        ),
        ({"top_k": -1}, "top_k must be at least 0; got -1."),
        ({"top_p": 0.0}, "top_p must be above 0 and at most 1; got 0.0."),
        ({"top_p": 1.5}, "top_p must be above 0 and at most 1; got 1.5."),
    ],
)
def test_settings_that_cannot_be(options, message):
    with pytest.raises(ValueError) as error:
        reshape_distribution(np.zeros((1, 3), "float32"), **options)
    assert str(error.value) == message


def script(p, copies=(0.0,)):
    """The same distribution at every step, over words and one source token."""
    step = ScriptStep(logs([p]), logs([copies]))
    ids = ops.convert_to_tensor(np.array([[len(p) - 1]], "int32"))
    return step, {}, ids, ops.ones((1, 1), "bool"), len(p)


@pytest.mark.parametrize("options", [{}, {"temperature": 0.5}, {"top_k": 2}, {"top_p": 0.6}])
def test_frequencies_are_those_of_the_distribution(options):
    p = np.array([0, 0, 0, 0, 0.35, 0.3, 0.15, 0.2])
    uniforms = draw_uniforms(0, 1, 4000, 1)
    found = numpy(sample_search(*script(p), 1, uniforms=uniforms, min_length=1, **options))
    counts = np.bincount(found.tokens[0, :, 0], minlength=len(p))
    expected = decoding_oracles.sampling_distribution(p, **options)
    assert (counts[expected == 0] == 0).all()
    # Five standard deviations.
    np.testing.assert_array_less(
        np.abs(counts / 4000 - expected), 5 * np.sqrt(expected * (1 - expected) / 4000) + 1e-9
    )


def test_an_action_without_mass_is_never_drawn():
    """However the sums round, and wherever the number falls."""
    rng = np.random.default_rng(0)
    p = np.zeros(3000)
    likely = rng.choice(np.arange(4, 3000), size=7, replace=False)
    p[likely] = rng.dirichlet(np.ones(7))
    edges = np.cumsum(p)[np.sort(likely)]
    largest = 1 - 2.0**-24
    numbers = np.clip(
        np.concatenate([edges + d for d in (-1e-7, 0, 1e-7)] + [[0, largest]]), 0, largest
    )
    uniforms = np.repeat(numbers.astype("float32")[None, :, None], 2, axis=2)
    for wrap in (lambda f: f, compiled):
        found = numpy(
            wrap(
                lambda: sample_search(
                    *script(p), 1, uniforms=ops.convert_to_tensor(uniforms), min_length=1
                )
            )()
        )
        assert set(found.tokens[0, :, 0].tolist()) <= set(likely.tolist())


def test_samples_come_from_the_seed_alone_and_scores_from_the_model():
    step = TableStep(2, 3, 7, 4)
    options = dict(
        temperature=1.5, top_k=6, length_alpha=0.6, coverage_beta=0.2, return_attention=True
    )

    def search(seed):
        return step.search(sample_search, 5, uniforms=draw_uniforms(seed, 3, 4, 5), **options)

    found = numpy(search(1))
    assert found.tokens.shape == (3, 4, 5)
    assert_same(found, numpy(search(1)), tolerance=0)
    assert_same(found, numpy(compiled(lambda: search(1))()), tolerance=1e-6)
    assert (numpy(search(2)).tokens != found.tokens).any()
    assert len({tuple(tokens) for tokens in found.tokens.reshape(-1, 5)}) > 6
    for row, k in np.ndindex(3, 4):
        length = found.lengths[row, k]
        sequence = tuple(found.tokens[row, k, :length].tolist())
        total, attentions = 0.0, []
        for t, word in enumerate((*sequence, END)):
            log_probs, attention = step.distribution(row)(sequence[:t])
            total += float(log_probs[word])
            attentions.append(attention)
        np.testing.assert_allclose(found.log_probs[row, k], total, rtol=1e-5)
        score = total / oracles.length_penalty(length + 1, 0.6)
        score += oracles.coverage_penalty(attentions[:-1], step.mask[row], 0.2)
        np.testing.assert_allclose(found.scores[row, k], score, rtol=1e-5, atol=1e-5)
        # A token that was copied stands where it came from.
        for token, j, p in zip(sequence, found.copied_from[row, k], found.copy_probability[row, k]):
            assert j < 0 or (step.ids[row, j] == token and step.mask[row, j] and p > 0.5)
            assert token < 7 or j >= 0


def test_the_likeliest_alone_is_greedy_search():
    step = TableStep(4, 3, 6, 4)
    options = dict(min_length=1, coverage_beta=0.2, return_attention=True)
    greedy = numpy(step.search(greedy_search, 5, **options))
    found = numpy(
        step.search(sample_search, 5, uniforms=draw_uniforms(0, 3, 2, 5), top_k=1, **options)
    )
    for k in range(2):
        assert_same(greedy, type(found)(*(value[:, k : k + 1] for value in found)))


@pytest.mark.parametrize("head", ["pointer_generator", "span_copy"])
def test_samples_of_a_model(head):
    """Its samples are different, real, and sorted by nothing; compiled or not they are the same."""
    model = small_model(head=head)
    inputs = {name: ops.convert_to_tensor(value) for name, value in small_inputs().items()}
    uniforms = draw_uniforms(5, 3, 4, 5)

    def search(inputs):
        return decode(
            model,
            inputs,
            max_length=5,
            sampling={"temperature": 1.2, "top_p": 0.95},
            uniforms=uniforms,
        )

    found = numpy(search(inputs))
    assert_same(found, numpy(compiled(search)(inputs)), tolerance=1e-5)
    assert (
        found.tokens.shape == (3, 4, 5) and len({tuple(t) for t in found.tokens.reshape(-1, 5)}) > 4
    )
    ids, mask = numpy(inputs["source_extended_ids"]), numpy(inputs["source_ids"]) != 0
    for row, k, t in np.argwhere(found.copied_from >= 0):
        j = found.copied_from[row, k, t]
        token = found.tokens[row, k, t]
        assert mask[row, j] and ids[row, j] == (token if token < 8 else ids[row, token - 8])
