"""The body whose encoder finds words: training, decoding, saving."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_models import losses
from keras_models.decoding import decode
from keras_models.decoding.hypotheses import Hypotheses, best_of
from keras_models.models import RecurrentSeq2Seq
from tests.keras_models.backends import TENSORFLOW, compiled, numpy, randomize
from tests.keras_models.decoding.fakes import decoded

V = 8
SETTINGS = {
    **{
        "mean_length": 1.8,
        "baseline": "samples",
        "samples": 2,
        "length_prior_weight": 0.1,
        "novelty_weight": 0.2,
    },
    **{
        "normalize_rewards": True,
        "confidence_penalty": 0.01,
        "fertility_weight": 0.01,
        "epsilon": 0.2,
    },
    **{"residual": True, "word_buckets": 11, "detached": True},
}


def make(segmentation=None, **options):
    options = {
        "head": "softmax",
        "embedding_size": 6,
        "hidden_size": 8,
        "dropout": 0.0,
        "coverage": False,
        **options,
    }
    return RecurrentSeq2Seq(9, V, encoder="segmenting", segmentation=segmentation, **options)


def example(batch=8, length=6, seed=0):
    rng = np.random.default_rng(seed)
    source = rng.integers(4, 9, size=(batch, length))
    source[:, -1] *= rng.integers(0, 2, size=batch)
    # A word of the target for each two characters of the source.
    words = 4 + source[:, ::2] % 4
    return {
        "source_ids": source.astype("int32"),
        "source_extended_ids": np.where(source > 0, 1, 0).astype("int32"),
        "source_feed_ids": np.where(source > 0, 1, 0).astype("int32"),
        "source_word_ends": (source % 2).astype("int32"),
        "target_input_ids": np.concatenate([np.full((batch, 1), 2), words], axis=1).astype("int32"),
        "target_extended_ids": np.concatenate([words, np.full((batch, 1), 3)], axis=1).astype(
            "int32"
        ),
    }


@pytest.mark.parametrize(
    "settings,options",
    [
        ({}, {}),
        (
            {**SETTINGS, "warm_up": "script"},
            {"cell": "lstm", "coverage": True, "label_smoothing": 0.1},
        ),
    ],
    ids=["plain", "everything"],
)
def test_training_reduces_the_loss(settings, options, tmp_path):
    keras.utils.set_random_seed(0)
    model = make(settings, **options)
    inputs = example(32)
    model.compile(
        keras.optimizers.Adam(0.02), loss=losses.negative_log_likelihood, jit_compile=not TENSORFLOW
    )

    def measure():
        return float(losses.negative_log_likelihood(inputs["target_extended_ids"], model(inputs)))

    before = measure()
    history = model.fit(
        inputs, inputs["target_extended_ids"], epochs=12, batch_size=16, verbose=0
    ).history["loss"]
    assert np.isfinite(history).all() and measure() < 0.75 * before
    if model.policy.counts is not None:
        # 24 updates of 16 sentences, 2 samples each: at least a segment for each.
        assert float(ops.sum(model.policy.counts.counts)) >= 24 * 16 * 2
    expected = numpy(model(inputs))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(numpy(loaded(inputs)), expected, atol=1e-6)
    np.testing.assert_array_equal(numpy(loaded.segment(inputs)), numpy(model.segment(inputs)))


@pytest.mark.parametrize("samples", [1, 3] if TENSORFLOW else [3])
def test_decoding(samples):
    model = make({"decoding_samples": samples})
    randomize(model, 1, 1.0)
    inputs = {name: value for name, value in example(3).items() if not name.startswith("target")}
    options = {"max_length": 5, "beam_size": 2, "n_best": 2}
    found = decoded(model, inputs, **options)
    assert found.tokens.shape == (3, 2, 5) and (np.diff(found.scores, axis=1) <= 0).all()
    if TENSORFLOW and samples > 1:
        again = numpy(compiled(lambda given: decode(model, given, **options))(inputs))
        np.testing.assert_array_equal(again.tokens, found.tokens)
        np.testing.assert_allclose(again.scores, found.scores, atol=1e-5)
    # No segmentation is worse than the best of several, of which it is one.
    alone = make({"decoding_samples": 1})
    alone.set_weights(model.get_weights())
    assert (found.scores[:, 0] >= decoded(alone, inputs, **options).scores[:, 0] - 1e-6).all()
    # What stands behind a source changes nothing; drawn segmentations are others, though.
    wider = {name: np.pad(value, [[0, 0], [0, 2]]) for name, value in inputs.items()}
    if samples == 1:
        np.testing.assert_array_equal(decoded(model, wider, **options).tokens, found.tokens)
    np.testing.assert_array_equal(numpy(model.segment(wider))[:, :6], numpy(model.segment(inputs)))


def test_scores_are_those_of_the_likeliest_segmentation():
    """What `score` returns depends neither on chance nor on decoding's segmentations."""
    model, several = (
        make(),
        make({"decoding_samples": 3, "samples": 2, "baseline": "samples", "epsilon": 0.5}),
    )
    randomize(model, 2, 1.0)
    several.source_embedding.set_weights(model.source_embedding.get_weights())
    several.encoder[0].set_weights(model.encoder[0].get_weights())
    inputs = example(4)
    np.testing.assert_array_equal(numpy(model(inputs)), numpy(model(inputs)))
    np.testing.assert_array_equal(numpy(several.segment(inputs)), numpy(model.segment(inputs)))


def test_the_best_of_several_stands_once():
    tokens = np.array([[[1, 2], [3, 0]], [[3, 0], [4, 4]], [[5, 0], [6, 0]], [[7, 0], [8, 0]]])
    scores = np.array([[-1.0, -3.0], [-2.0, -2.5], [-4.0, -6.0], [-4.5, -5.0]], "float32")
    arrays = {name: np.stack([scores] * 2, axis=-1) for name in ("copied_from", "copy_probability")}
    given = Hypotheses(tokens, tokens[..., 0], scores, 2 * scores, **arrays)
    best = numpy(best_of(given, 2))
    # The first source's second way says (3 0) better than its first did.
    assert best.tokens.tolist() == [[[1, 2], [3, 0]], [[5, 0], [7, 0]]]
    assert best.scores.tolist() == [[-1.0, -2.0], [-4.0, -4.5]]
    assert best.log_probs.tolist() == [[-2.0, -4.0], [-8.0, -9.0]] and best.attention is None
    np.testing.assert_array_equal(best.copied_from[..., 0], best.scores)
    twice = Hypotheses(
        tokens[:2] * 0,
        tokens[:2, :, 0],
        scores[:2],
        scores[:2],
        **{k: v[:2] for k, v in arrays.items()},
    )
    assert numpy(best_of(twice, 2)).scores[0, 0] == -1.0  # too few different ones


def test_options_that_cannot_be():
    with pytest.raises(ValueError, match="needs head 'softmax' and an attention"):
        make(head="pointer_generator")
    with pytest.raises(ValueError, match="hidden_size must be even"):
        make(hidden_size=7)
