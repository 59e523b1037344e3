"""What a body's first layers read has the variance that their kernels expect."""

import numpy as np
import pytest

from keras_models.layers.embeddings import token_embedding
from keras_models.models.recurrent_seq2seq import RecurrentSeq2Seq
from keras_models.models.transformer_seq2seq import TransformerSeq2Seq


@pytest.mark.parametrize("stddev", [1.0, 0.25])
def test_vectors_are_drawn_with_the_given_deviation(stddev):
    layer = token_embedding(300, 40, "float32", "words", stddev)
    values = np.asarray(layer.embeddings)
    assert values.shape == (300, 40) and layer.name == "words"
    assert values.std() == pytest.approx(stddev, rel=0.05) and values.mean() == pytest.approx(
        0, abs=0.05 * stddev
    )


@pytest.mark.parametrize(
    "body,options,factor",
    # The Transformer multiplies its embeddings by the square root of their size.
    [(RecurrentSeq2Seq, {}, 1.0), (TransformerSeq2Seq, {"attention_heads": 2}, 16**0.5)],
)
def test_every_body_reads_words_and_features_of_variance_1(body, options, factor):
    model = body(
        400,
        400,
        head="softmax",
        embedding_size=16,
        hidden_size=16,
        source_features={"case": 400},
        feature_size=16,
        **options,
    )
    for layer in (model.source_embedding, model.target_embedding, model.feature_embeddings["case"]):
        assert factor * np.asarray(layer.embeddings).std() == pytest.approx(1, rel=0.1)
