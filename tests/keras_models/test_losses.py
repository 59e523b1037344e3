import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_models import losses
from tests.keras_models import oracles
from tests.keras_models.backends import numpy


def test_negative_log_likelihood_is_the_mean_over_real_tokens():
    targets = np.array([[5, 3, 0], [4, 0, 0]])
    log_prob = np.array([[-1.0, -2.0, -50.0], [-6.0, -70.0, -80.0]], "float32")
    np.testing.assert_allclose(
        float(losses.negative_log_likelihood(targets, log_prob)), 3.0, rtol=1e-6
    )


def test_nothing_but_padding_gives_zero():
    assert (
        float(losses.negative_log_likelihood(np.zeros((2, 3)), np.full((2, 3), -5.0, "float32")))
        == 0
    )
    assert (
        float(
            losses.coverage_loss(
                np.ones((1, 2, 3), "float32"), np.ones((1, 2, 3), "float32"), [[False, False]]
            )
        )
        == 0
    )


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), steps=st.integers(1, 6), length=st.integers(1, 5))
def test_coverage_loss_agrees_with_the_equation(seed, steps, length):
    rng = np.random.default_rng(seed)
    attention = rng.dirichlet(np.ones(length), size=(2, steps)).astype("float32")
    mask = np.arange(steps) < rng.integers(1, steps + 1, size=(2, 1))
    before = np.concatenate(
        [np.zeros((2, 1, length)), np.cumsum(attention, axis=1)[:, :-1]], axis=1
    ).astype("float32")
    total, count = np.sum([oracles.coverage_loss(a, m) for a, m in zip(attention, mask)], axis=0)
    np.testing.assert_allclose(
        numpy(losses.coverage_loss(attention, before, mask)), total / count, atol=1e-5
    )


def weighted_oracle(targets, log_prob, weights, unit, reduction):
    """Plain loops in float64."""
    terms, counts, total_weights = [], [], []
    for row, logs, row_weights in zip(targets, log_prob.astype("float64"), weights):
        real = [index for index, token in enumerate(row) if token != 0]
        terms.append(-sum(row_weights[index] * logs[index] for index in real))
        weight = sum(row_weights[index] for index in real)
        by_sentence = unit == "sentence"
        counts.append(bool(real) if by_sentence else len(real))
        total_weights.append(weight / max(len(real), 1) if by_sentence else weight)
    divisor = {"sum": 1, "mean_with_sample_weight": sum(total_weights)}.get(reduction, sum(counts))
    return sum(terms) / (divisor or 1)


@settings(max_examples=30)
@given(
    seed=st.integers(0, 10**6),
    unit=st.sampled_from(losses.UNITS),
    reduction=st.sampled_from(["sum_over_batch_size", "mean", "sum", "mean_with_sample_weight"]),
    weighted=st.sampled_from(["nothing", "sentences", "column", "tokens"]),
)
def test_weights_and_masks_agree_with_the_oracle(seed, unit, reduction, weighted):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 5, size=(3, 1))
    targets = np.where(np.arange(4) < lengths, rng.integers(1, 9, size=(3, 4)), 0)
    log_prob = -rng.exponential(3, size=(3, 4)).astype("float32")
    shape = {"nothing": None, "sentences": (3,), "column": (3, 1), "tokens": (3, 4)}[weighted]
    weights = None if shape is None else rng.integers(0, 3, size=shape).astype("float32") / 2
    full = np.ones((3, 4))
    if weights is not None:
        full = full * (weights[:, None] if weights.ndim == 1 else weights)
    loss = losses.NegativeLogLikelihood(unit, reduction)
    np.testing.assert_allclose(
        numpy(loss(targets, log_prob, sample_weight=weights)),
        weighted_oracle(targets, log_prob, full, unit, reduction),
        rtol=2e-6,
        atol=1e-6,
    )
    terms = losses.NegativeLogLikelihood(unit, "none")(targets, log_prob, sample_weight=weights)
    assert terms.shape == ((3,) if unit == "sentence" else (3, 4))
    np.testing.assert_allclose(
        numpy(terms).sum(), weighted_oracle(targets, log_prob, full, unit, "sum"), rtol=2e-6
    )


@pytest.mark.parametrize("shape", [(3,), (3, 4)])
def test_weights_mean_what_they_mean_in_keras_own_loss(shape):
    rng = np.random.default_rng(1)
    targets = np.array([[5, 3, 0, 0], [4, 1, 2, 3], [3, 0, 0, 0]])
    probabilities = rng.dirichlet(np.ones(6), size=(3, 4)).astype("float32")
    log_prob = np.log(np.take_along_axis(probabilities, targets[..., None], axis=-1))[..., 0]
    weights = rng.random(shape).astype("float32")
    keras_loss = keras.losses.SparseCategoricalCrossentropy(ignore_class=0)
    column = weights if len(shape) == 2 else weights[:, None]
    expected = numpy(keras_loss(targets, probabilities, sample_weight=column))
    got = losses.negative_log_likelihood(targets, log_prob, sample_weight=weights)
    np.testing.assert_allclose(numpy(got), expected, rtol=1e-5)


class Scores(keras.Model):
    """Predicts its only weights, a log-probability for each token of each sentence."""

    def __init__(self):
        super().__init__()
        self.table = self.add_weight(shape=(6, 3), initializer="zeros", name="table")
        self.built = True

    def call(self, rows):
        return keras.ops.take(self.table, rows[:, 0], axis=0)


@pytest.mark.parametrize("shape", [(6,), (6, 3)])
def test_fit_weighs_samples_and_tokens(shape):
    """A token's gradient is its weight over the number of its batch's tokens."""
    rows = np.arange(6, dtype="int32")[:, None]
    targets = np.array([[5, 3, 0], [4, 3, 0], [3, 0, 0], [5, 6, 3], [7, 3, 0], [3, 0, 0]])
    weights = np.random.default_rng(0).integers(0, 4, size=shape).astype("float32")
    model = Scores()
    model.compile(keras.optimizers.SGD(1.0), loss=losses.negative_log_likelihood, jit_compile=False)
    model.fit(
        rows, targets, sample_weight=weights, batch_size=3, epochs=1, shuffle=False, verbose=0
    )
    inside = (targets != 0).astype("float64")
    full = inside * (weights if len(shape) == 2 else weights[:, None])
    tokens = np.repeat([inside[:3].sum(), inside[3:].sum()], 3)[:, None]
    np.testing.assert_allclose(numpy(model.table), full / tokens, rtol=1e-6)


def test_a_loss_comes_back_from_its_config_and_by_its_former_name():
    loss = losses.NegativeLogLikelihood("sentence", "sum")
    again = keras.losses.deserialize(keras.losses.serialize(loss))
    assert again.get_config() == loss.get_config()
    # As a file says that was saved when the loss was a function.
    name = "verbatim>negative_log_likelihood"
    former = {"module": "builtins", "class_name": "function", "config": name}
    former["registered_name"] = "function"
    loaded = keras.saving.deserialize_keras_object(former)
    assert loaded is losses.negative_log_likelihood


@pytest.mark.parametrize(
    ("shapes", "name"),
    [
        (((2, 3), (2, 4), None), "target_log_prob"),
        (((2, 3), (2, 3, 9), None), "target_log_prob"),
        (((2, 3), (2, 3), (3,)), "sample_weight"),
        (((2, 3), (2, 3), (3, 2)), "sample_weight"),
        (((2, 3), (2, 3), (2, 3, 1)), "sample_weight"),
    ],
)
def test_shapes_that_do_not_fit_are_named(shapes, name):
    targets, log_prob, weights = (None if s is None else np.ones(s) for s in shapes)
    with pytest.raises(ValueError, match=name):
        losses.negative_log_likelihood(targets, log_prob, sample_weight=weights)


def test_unknown_units_are_refused():
    with pytest.raises(ValueError, match="unit must be one of token, sentence"):
        losses.NegativeLogLikelihood("word")
