"""Encoder-decoders of keras-hub under our heads."""

import keras
import numpy as np
import pytest
from keras import ops

from tests.keras_models import keras_hub_presets
from tests.keras_models.backends import TENSORFLOW, numpy, outputs, randomize
from tests.keras_models.decoding.fakes import decoded
from tests.keras_models.decoding.test_beam import assert_same
from tests.keras_models.models.recurrent_cases import (
    SOURCE_V,
    V,
    edges,
    example,
    log_probs_and_losses,
    tensors,
)
from tests.keras_models.models.test_bodies import assert_learns, pairs, training_loss
from tests.keras_models.models.test_consistency import ALPHA, assert_is_that_of_its_definition
from tests.keras_models.models.test_transformer_seq2seq import forced_steps, sources

keras_hub_presets.keras_hub  # noqa: B018 - without keras-hub, the import above skips these tests

from keras_models.models import KerasHubSeq2Seq

ENCODERS = ["bert", "roberta", "distil_bert"]
KINDS = ["t5", "t5_tied", "bart", *ENCODERS]
# Ids of the preset by ours: -1 has none.
SOURCE_IDS = [0, 2, 3, 1, -1, 5, 6, 7, 8]
TARGET_IDS = [0, 2, 3, 1, 6, 12, -1, 13]


def make(kind, head="pointer_generator", seed=1, **options):
    keras.utils.set_random_seed(seed)
    return KerasHubSeq2Seq(SOURCE_V, V, keras_hub_presets.backbone(kind), head=head, **options)


@pytest.mark.parametrize(
    "kind,tie",
    [
        ("t5", "none"),
        ("t5_tied", "none"),
        ("bart", "none"),
        ("t5_tied", "target"),
        ("bart", "target"),
    ],
)
def test_gives_what_the_preset_gives(kind, tie):
    """Its layers, without our attention's part, and its softmax over the words that it has."""
    model = make(kind, head="softmax", tie_embeddings=tie)
    preset = keras_hub_presets.backbone(kind, seed=3)
    model.take_preset(preset, SOURCE_IDS, TARGET_IDS)
    inputs = example()
    # A word that the preset lacks has a vector of no token of it.
    inputs["source_ids"] = np.where(inputs["source_ids"] == 4, 5, inputs["source_ids"])
    fed = np.asarray(inputs["target_input_ids"])
    fed = inputs["target_input_ids"] = np.where(fed == 6, 5, fed)
    before = 1 if kind == "bart" else 0
    source = np.zeros((3, 5 + before + 1), "int32")
    for row, ids in enumerate(np.asarray(inputs["source_ids"])):
        real = [SOURCE_IDS[id] for id in ids if id]
        source[row, : len(real) + before + 1] = [*[3] * before, *real, 1]
    source_mask = np.arange(source.shape[1]) < (np.asarray(inputs["source_ids"]) != 0).sum(
        1, keepdims=True
    ) + (before + 1)
    expected = preset(
        {
            "encoder_token_ids": source,
            "encoder_padding_mask": source_mask.astype("int32"),
            "decoder_token_ids": np.take(TARGET_IDS, fed),
            "decoder_padding_mask": np.ones_like(fed),
        }
    )
    memory, _ = model.encode(tensors(inputs))
    states = numpy(expected["encoder_sequence_output"])[:, before : before + 5]
    real = (np.asarray(inputs["source_ids"]) != 0)[:, :, None]
    np.testing.assert_allclose(
        numpy(memory["states"]), np.where(real, states, 0), rtol=1e-4, atol=1e-4
    )
    positions = ops.arange(fed.shape[1], dtype="int32")
    state, _ = model.decode_steps(model.embed_target(fed), positions, memory)
    hidden = expected["decoder_sequence_output"]
    np.testing.assert_allclose(numpy(state["hidden"]), numpy(hidden), rtol=1e-4, atol=1e-4)
    scale = 8**-0.5 if kind == "t5_tied" else 1.0
    logits = numpy(preset.token_embedding(hidden * scale, reverse=True))
    ours = numpy(model.head.vocabulary.logits(state["hidden"]))
    shared = [word for word, id in enumerate(TARGET_IDS) if id >= 0]
    np.testing.assert_allclose(
        ours[..., shared], logits[..., np.take(TARGET_IDS, shared)], rtol=1e-3, atol=1e-3
    )


@pytest.mark.parametrize("kind", ENCODERS)
def test_an_encoder_reads_as_the_preset_does(kind):
    model = make(kind, tie_embeddings="target", decoder_layers=2)
    preset = keras_hub_presets.backbone(kind, seed=3)
    model.take_preset(preset, SOURCE_IDS, TARGET_IDS)
    inputs = example()
    inputs["source_ids"] = np.where(inputs["source_ids"] == 4, 5, inputs["source_ids"])
    ids = np.asarray(inputs["source_ids"])
    lengths = (ids != 0).sum(1, keepdims=True)
    # The start, the words and the end.
    read = np.zeros((len(ids), ids.shape[1] + 2), "int32")
    for row, words in enumerate(ids):
        real = [SOURCE_IDS[word] for word in words if word]
        read[row, : len(real) + 2] = [3, *real, 1]
    mask = (np.arange(read.shape[1]) < lengths + 2).astype("int32")
    given = {"token_ids": read, "padding_mask": mask}
    if kind == "bert":
        given["segment_ids"] = np.zeros_like(read)
    expected = preset(given)
    expected = numpy(expected["sequence_output"] if kind == "bert" else expected)[:, 1:-1]
    memory, _ = model.encode(tensors(inputs))
    real = (ids != 0)[:, :, None]
    np.testing.assert_allclose(
        numpy(memory["states"]), np.where(real, expected, 0), rtol=1e-4, atol=1e-4
    )
    # The target's words begin with the preset's vectors, and the decoder with random weights.
    vectors = numpy(preset.token_embedding.embeddings)
    np.testing.assert_allclose(
        numpy(model.embed_target(np.array([4, 5]))), vectors[[6, 12]], rtol=1e-5
    )
    assert len(model.stacks()["decoder"]) == 2


@pytest.mark.parametrize(
    "kind,head,options",
    [
        ("bert", "pointer_generator", {"coverage_loss_weight": 0.3}),
        ("roberta", "joint_copy", {"tie_embeddings": "target", "decoder_layers": 2}),
        ("t5", "pointer_generator", {}),
        ("t5_tied", "joint_copy", {"coverage_loss_weight": 0.3, "tie_embeddings": "target"}),
        ("bart", "softmax", {}),
        ("bart", "pointer_softmax", {"source_features": {"source_tags": 4}, "feature_size": 2}),
    ],
)
def test_a_step_gives_what_training_computes_also_from_a_file(kind, head, options, tmp_path):
    model, inputs = make(kind, head, **options), example()
    randomize(model, 5, 0.4)
    for name, size in options.get("source_features", {}).items():
        tags = np.random.default_rng(2).integers(1, size, inputs["source_ids"].shape)
        inputs[name] = np.where(inputs["source_ids"] != 0, tags, 0).astype("int32")
    real = inputs["target_extended_ids"] != 0
    log_prob, _ = log_probs_and_losses(model, inputs)
    log_probs, copies, attentions = forced_steps(model, inputs)
    np.testing.assert_allclose(np.exp(log_probs).sum(-1), 1, atol=1e-5)
    labels = inputs["target_extended_ids"]
    if head == "softmax":
        labels = np.where(labels >= V, 1, labels)
    for b in range(len(real)):
        stepwise = [log_probs[t, b, labels[b, t]] for t in np.flatnonzero(real[b])]
        if head != "pointer_softmax":  # which learns from labels that these inputs lack
            np.testing.assert_allclose(stepwise, log_prob[b][real[b]], rtol=1e-4, atol=1e-4)
        padding = inputs["source_ids"][b] == 0
        assert (attentions[:, b, padding] == 0).all() and (np.exp(copies[:, b, padding]) == 0).all()
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.get_config() == model.get_config()
    np.testing.assert_array_equal(log_probs_and_losses(loaded, inputs)[0], log_prob)


@pytest.mark.parametrize("kind", KINDS)
def test_padding_changes_nothing(kind):
    model = make(kind)
    randomize(model, 2, 0.4)
    short, long = (
        log_probs_and_losses(model, example(**more))[0]
        for more in ({}, {"more_source": 3, "more_target": 2})
    )
    real = example()["target_extended_ids"] != 0
    np.testing.assert_allclose(long[:, : short.shape[1]][real], short[real], rtol=0, atol=1e-4)
    found, padded = (
        decoded(model, sources(example(more_source=more)), max_length=5, beam_size=2)
        for more in (0, 3)
    )
    assert_same(found, padded, tolerance=1e-4)


@pytest.mark.parametrize(
    "kind,head",
    [
        ("t5", "joint_copy"),
        ("bart", "span_copy"),
        ("t5_tied", "pointer_softmax"),
        ("bert", "span_copy"),
    ],
)
def test_heads_learn_and_decode(kind, head):
    model, inputs = make(kind, head), pairs()
    model.take_preset(keras_hub_presets.backbone(kind, seed=3), SOURCE_IDS, TARGET_IDS)
    assert_learns(model, inputs)
    found = decoded(model, sources(inputs), max_length=4, beam_size=1, min_length=1)
    assert np.isfinite(found.scores).all() and (found.scores > -1e8).all()


@pytest.mark.parametrize(
    "kind,head",
    [("t5_tied", "softmax"), ("bart", "pointer_generator"), ("roberta", "joint_copy")],
)
def test_r_drop(kind, head):
    model = make(kind, head, consistency_weight=ALPHA)
    randomize(model, 4, 0.4)
    assert_is_that_of_its_definition(model, make(kind, head), pairs())
    # Dropout makes the two passes differ, in training alone.
    penalties = []
    for dropout in (0.0, 0.5):
        made = make(kind, head, consistency_weight=ALPHA, dropout=dropout)
        made.set_weights(model.get_weights()[: len(made.weights)])
        made(pairs(), training=True)
        penalties.append(float(sum(made.losses)))
    assert abs(penalties[0]) < 1e-5 and penalties[1] > 1e-3


@pytest.mark.parametrize("kind", KINDS if TENSORFLOW else ["t5"])
def test_mixed_precision_and_edges(kind):
    model, inputs = make(kind, dtype="mixed_bfloat16"), tensors(edges())
    value, gradients = training_loss(model, inputs)()
    assert np.isfinite(value) and all(np.isfinite(gradient).all() for gradient in gradients)
    assert len(gradients) == len(model.trainable_weights)
    log_probs, _, attention = forced_steps(model, edges())
    assert np.isfinite(log_probs).all()
    # The first source is empty.
    assert (attention[:, 0] == 0).all()
    found = decoded(model, sources(inputs), max_length=3, beam_size=2)
    assert np.isfinite(found.scores).all()


def test_dropout_of_the_recipe_takes_the_preset_s_place():
    model = make("t5", dropout=0.5, embedding_dropout=0.25)
    assert model.backbone.decoder_dropout.rate == 0.5
    assert model.backbone.encoder_embedding_dropout.rate == 0.25
    first, second = (numpy(model(pairs(), training=True)) for _ in range(2))
    assert not np.allclose(first, second)
    np.testing.assert_array_equal(outputs(model, pairs()), outputs(model, pairs()))


def test_what_does_not_fit():
    model = make("t5")
    with pytest.raises(ValueError, match="not the one that the body was made for"):
        model.take_preset(keras_hub_presets.backbone("bart"), SOURCE_IDS, TARGET_IDS)
    with pytest.raises(ValueError, match=r"must have the shape \(8,\) and be below 14"):
        model.take_preset(keras_hub_presets.backbone("t5"), SOURCE_IDS, [*TARGET_IDS[:-1], 14])
    with pytest.raises(ValueError, match="tie_embeddings must be 'none', not 'target'"):
        model = make("t5", tie_embeddings="target")
        model.take_preset(keras_hub_presets.backbone("t5"), SOURCE_IDS, TARGET_IDS)
    with pytest.raises(ValueError, match="BartBackbone, or an encoder, .* the preset is a Albert"):
        sizes = {**keras_hub_presets.SIZES, "max_sequence_length": 8, "embedding_dim": 4}
        KerasHubSeq2Seq(SOURCE_V, V, keras_hub_presets.keras_hub.models.AlbertBackbone(**sizes))
    with pytest.raises(ValueError, match="composition must be 'lookup'"):
        make(
            "t5", composition="lookup+sum", composition_options={"word_length": 3, "characters": 9}
        )
