"""Parts of a network that a training leaves alone, or teaches more slowly."""

import dataclasses

import numpy as np
import pytest

from keras_models.models import RecurrentSeq2Seq, TransformerSeq2Seq
from pipeline.training import learning_shares
from tests.pipeline.training import tiny_training


def transformer(**options):
    sizes = {"embedding_size": 4, "hidden_size": 4, "attention_heads": 2, "feed_forward_size": 6}
    return TransformerSeq2Seq(9, 8, **{**sizes, "encoder_layers": 2, **options})


def test_shares_fall_towards_the_input():
    model = transformer(source_features={"source_case": 3}, decoder_layers=3)
    shares = learning_shares.shares(model, 0.5)

    def of(layer):
        (share,) = {shares.get(weight.path, 1.0) for weight in layer.trainable_weights}
        return share

    assert [of(layer) for layer in model.encoder] == [0.25, 0.5]
    assert [of(layer) for layer in model.decoder] == [0.125, 0.25, 0.5]
    assert of(model.encoder_norm) == 0.5 and of(model.source_projection) == 0.25
    # Below the deepest stack.
    assert {of(layer) for layer in model.embedding_layers()} == {0.0625}
    assert {of(layer) for layer in (model.attention, model.readout, model.output_norm)} == {1.0}
    assert {of(layer) for layer in (model.head.vocabulary, model.head.gate)} == {1.0}


@pytest.mark.parametrize("norm_first", [True, False])
def test_each_weight_of_a_frozen_part_is_left_out(norm_first):
    model = transformer(norm_first=norm_first)
    learning_shares.freeze(model, ["encoder"])
    frozen = [weight.path for weight in model.weights if not weight.trainable]
    assert frozen and all(path.startswith("encoder") for path in frozen)
    learning_shares.freeze(model, ["embeddings"])
    assert not model.source_embedding.trainable_weights


def test_a_body_that_does_not_tell():
    model = RecurrentSeq2Seq(9, 8, embedding_size=4, hidden_size=4)
    assert learning_shares.shares(model, 0.5) == {}


def test_training_leaves_a_frozen_part_as_it_was(tmp_path):
    files = tiny_training.write_pairs(tmp_path / "pairs.gz")
    sizes = {"attention_heads": 2, "feed_forward_size": 8, "body": "transformer", "dropout": 0.0}

    def trained(**training):
        recipe = tiny_training.recipe(epochs=1)
        recipe = dataclasses.replace(
            recipe,
            model=dataclasses.replace(recipe.model, **sizes),
            training=dataclasses.replace(recipe.training, **training),
        )
        return tiny_training.train(recipe, files, files)[0]

    def weights_of(model, part):
        return [
            np.asarray(weight.value)
            for layers in model.stacks()[part]
            for layer in layers
            for weight in layer.weights
        ]

    free = trained()
    some = trained(frozen=("encoder", "embeddings"), layer_decay=0.9)
    all_parts = trained(frozen=("encoder", "embeddings", "decoder"))
    for part, equal in (("encoder", True), ("embeddings", True), ("decoder", False)):
        pairs = zip(weights_of(some, part), weights_of(all_parts, part), strict=True)
        assert all(np.array_equal(*pair) for pair in pairs) == equal, part
    assert not np.array_equal(weights_of(free, "encoder")[0], weights_of(some, "encoder")[0])
