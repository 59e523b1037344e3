"""First weights of deep Transformers, and vectors that were trained elsewhere."""

import keras
import numpy as np
import pytest

from keras_models import losses
from keras_models.models import RecurrentSeq2Seq, TransformerSeq2Seq
from tests.keras_models.backends import numpy
from tests.keras_models.models.test_bodies import TRANSFORMER, pairs


def deep(depth_scaled, **options):
    keras.utils.set_random_seed(1)
    sizes = {**TRANSFORMER, "encoder_layers": 6, "decoder_layers": 6, **options}
    return TransformerSeq2Seq(9, 8, depth_scaled=depth_scaled, **sizes)


def test_what_each_part_adds_starts_smaller_by_the_depth_of_its_stack():
    plain, scaled = deep(False), deep(True)
    ratios = {}
    for first, second in zip(plain.trainable_weights, scaled.trainable_weights, strict=True):
        first, second = numpy(first.value), numpy(second.value)
        some = first != 0
        ratio = np.unique((second[some] / first[some]).round(4))
        assert len(ratio) <= 1
        for value in ratio:
            key = round(float(value), 4)
            ratios[key] = ratios.get(key, 0) + 1
    counts = {round(12**-0.5, 4): 12, round(18**-0.5, 4): 18}
    assert {ratio: ratios[ratio] for ratio in counts} == counts and set(ratios) == {1.0, *counts}
    assert scaled.get_config()["depth_scaled"] is True


def test_a_deep_stack_trains():
    model, inputs = deep(True), pairs()
    model.compile(keras.optimizers.Adam(0.01), loss=losses.negative_log_likelihood)
    labels = inputs["target_extended_ids"]
    before = float(model.evaluate(inputs, labels, verbose=0))
    model.fit(inputs, labels, epochs=20, verbose=0)
    assert float(model.evaluate(inputs, labels, verbose=0)) < 0.6 * before


def test_vectors_trained_elsewhere():
    values = np.random.default_rng(0).normal(3, 2, (2, 6))
    for tie in ("none", "target"):
        model = RecurrentSeq2Seq(
            300, 400, embedding_size=6, hidden_size=8, head="softmax", tie_embeddings=tie
        )
        others = numpy(model.target_embedding.embeddings.value)
        model.set_word_vectors("target", np.array([5, 350]), values)
        table = numpy(model.target_embedding.embeddings.value)
        np.testing.assert_array_equal(np.delete(table, [5, 350], 0), np.delete(others, [5, 350], 0))
        found = table[[5, 350]]
        np.testing.assert_allclose(found / found[0, 0], values / values[0, 0], rtol=1e-4)
        np.testing.assert_allclose(np.sqrt(np.mean(found**2)), others.std(), rtol=1e-3)
    with pytest.raises(ValueError, match=r"must have the shape \(1, 6\); got \(1, 5\)"):
        model.set_word_vectors("source", [4], np.ones((1, 5)))
    options = {"composition": "sum", "composition_options": {"word_length": 3, "characters": 9}}
    composed = RecurrentSeq2Seq(9, 8, embedding_size=6, hidden_size=8, **options)
    with pytest.raises(ValueError, match="Source words have no vectors of their own"):
        composed.set_word_vectors("source", [4], np.ones((1, 6)))
