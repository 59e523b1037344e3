"""Rules of the network: bodies, heads, and compositions."""

import pytest

from pipeline.recipes import views
from pipeline.recipes.choices import (
    ATTENTIVE_HEADS,
    CHARACTER_COMPOSITIONS,
    COMPOSITIONS,
    HEADS,
    LEXICON_HEADS,
)
from pipeline.recipes.recipe import recipe_from_dict
from tests.pipeline.recipes.refusals import refusal

PRESET = {"model.body": "keras_hub", "model.preset": "t5", "data.units": "preset"}
SHARED = {"model.tie_embeddings": "all", "vocabulary.joint": True}


@pytest.mark.parametrize(
    "settings, words",
    [
        (
            {
                "training.guided_alignment_weight": 0.1,
                "model.head": "softmax",
                "model.attention": "none",
            },
            "'training.guided_alignment_weight' needs a 'model.attention' other than",
        ),
        (
            {
                "training.guided_alignment_weight": 0.1,
                "model.head": "softmax",
                "model.encoder": "segmenting",
                "data.source_tokenization": "characters",
            },
            "'training.guided_alignment_weight' needs another 'model.encoder'",
        ),
        ({"training.frozen": ["encoders"]}, "'training.frozen' cannot name 'encoders'"),
        ({"training.frozen": ["encoder"]}, "'training.frozen' needs 'model.body'"),
        ({"training.layer_decay": 0.9}, "'training.layer_decay' needs 'model.body'"),
        ({"model.preset": "t5"}, "'model.preset' needs 'model.body'"),
        ({"data.units": "preset"}, "'data.units' = \"preset\" needs 'model.body'"),
        ({"model.body": "keras_hub"}, "the name or the folder of a pre-trained model"),
        ({"model.body": "keras_hub", "model.preset": "t5"}, "needs 'data.units' = \"preset\""),
        ({**PRESET, "data.source_units": "words"}, "needs 'data.source_units' = \"\""),
        ({**PRESET, "model.composition": "lookup+cnn"}, "needs 'model.composition' = \"lookup\""),
        ({**PRESET, "model.source_vectors": "glove.txt"}, "needs no 'model.source_vectors'"),
        ({**PRESET, "model.attention": "none"}, "'model.attention' (none) needs 'model.body'"),
        ({**PRESET, "model.depth_scaled": True}, "'model.depth_scaled' needs 'model.body'"),
        (
            {"model.decoder": "bahdanau", "model.body": "transformer"},
            "'model.decoder' (bahdanau) needs 'model.body' = \"rnn\"",
        ),
        (
            {"model.decoder": "bahdanau", "model.attention": "none", "model.head": "softmax"},
            "'model.decoder' = \"bahdanau\" needs a 'model.attention'",
        ),
        ({"model.norm_first": False}, "'model.norm_first' = false needs 'model.body' ="),
        ({"model.depth_scaled": True}, "'model.depth_scaled' needs 'model.body' = \"transformer\""),
        (
            {
                "model.source_vectors": "x",
                "model.tie_embeddings": "all",
                "vocabulary.joint": True,
            },
            "'model.source_vectors' cannot be combined with 'model.tie_embeddings'",
        ),
        (
            {"model.source_vectors": "x", "model.composition": "bilstm"},
            "'model.source_vectors' needs a 'model.composition' that looks words up",
        ),
        (
            {"model.attention_dropout": 0.1},
            "'model.attention_dropout' (0.1) needs 'model.body' = \"transformer\"",
        ),
        (
            {"model.recurrent_dropout": 0.1, "model.body": "transformer"},
            "'model.recurrent_dropout' (0.1) needs 'model.body' = \"rnn\"",
        ),
        (
            {"model.head": "pointer_softmax", "model.attention": "none"},
            "'model.head' (pointer_softmax) needs a 'model.attention'",
        ),
        (
            {
                "model.head": "joint_copy",
                "model.attention": "none",
                "baseline.head": "pointer_generator",
            },
            "'baseline.head' (pointer_generator) needs a 'model.attention'",
        ),
        (
            {"model.selective_read": True},
            "'model.selective_read' needs 'model.head' = \"joint_copy\"; got 'pointer_generator'",
        ),
        (
            {"model.body": "transformer", "model.head": "joint_copy", "model.selective_read": True},
            "'model.selective_read' (true) needs 'model.body' = \"rnn\"",
        ),
        (
            {"model.body": "transformer", "model.initial_range": 0.1},
            "'model.initial_range' (0.1) needs 'model.body' = \"rnn\" and 'model.encoder' = "
            '"rnn"',
        ),
        ({"model.encoder": "cnn", "model.initial_range": 0.1}, "'model.initial_range' (0.1) needs"),
        (
            {"model.body": "transformer", "model.attention": "none"},
            "'model.attention' (none) needs 'model.body'",
        ),
        (
            {"model.body": "transformer", "model.encoder": "cnn"},
            "'model.encoder' (cnn) needs 'model.body'",
        ),
        (
            {"model.body": "transformer", "model.hidden_size": 10},
            "'model.hidden_size' (10) must be even and divisible",
        ),
        ({"model.encoder": "cnn", "model.kernel_size": 4}, "'model.kernel_size' must be odd"),
        ({"model.hidden_size": 7}, "'model.hidden_size' must be even"),
        (
            {"training.large_vocabulary_size": 515},
            "'training.large_vocabulary_size' (515) must be at least 516",
        ),
        (
            {"training.large_vocabulary_size": 100, "training.batch_tokens": 64},
            "must be at least 132",
        ),
        (
            {"training.scheduled_sampling_floor": 1.5},
            "'training.scheduled_sampling_floor' must be between",
        ),
        (
            {"training.scheduled_sampling": "cosine"},
            "'training.scheduled_sampling' must be one of 'none', 'linear'",
        ),
        ({"model.copying_context": "end"}, "'model.copying_context' must be one of"),
        (
            {"model.tie_embeddings": "target", "baseline.head": "pointer_network"},
            "softmax over words, which 'baseline.head' = \"pointer_network\" lacks",
        ),
        ({"model.tie_embeddings": "all"}, "needs 'vocabulary.joint' = true"),
        (
            {**SHARED, "vocabulary.target_size": 900},
            "'vocabulary.source_size' (8000) and 'vocabulary.target_size' (900) to be equal",
        ),
        ({**SHARED, "model.composition": "sum"}, '"lookup" or "lookup+sum"'),
        (
            {
                **SHARED,
                "model.head": "pointer_softmax",
                "model.pointers": "entities",
                "model.entity_feature": "ner",
                "data.source_features": ["ner"],
                "data.tokenization": "whitespace",
            },
            "cannot be combined with 'model.pointers' = \"entities\"",
        ),
    ],
)
def test_bodies_and_heads_that_do_not_fit_together(settings, words):
    tree = {"name": "test"}
    for key, value in settings.items():
        section, name = key.split(".")
        tree.setdefault(section, {})[name] = value
    assert words in refusal(recipe_from_dict, tree)


@pytest.mark.parametrize("head", HEADS)
def test_every_head_has_a_body(head):
    tree = {"name": "x", "lexicon": {"kind": "learned"}, "baseline": {"head": head}}
    assert recipe_from_dict({**tree, "model": {"head": head, "body": "transformer"}})
    assert recipe_from_dict({**tree, "model": {"head": head, "encoder": "cnn", "hidden_size": 7}})


def test_the_recipe_knows_the_heads_that_there_are():
    from keras_models.heads import registry

    assert set(HEADS) == set(registry.HEADS)
    assert set(ATTENTIVE_HEADS) == {
        name for name, head in registry.HEADS.items() if head.needs_attention
    }
    assert set(LEXICON_HEADS) == {
        name for name, head in registry.HEADS.items() if head.needs_lexicon
    }


def test_a_baseline_of_another_head_reads_nothing_selectively():
    from pipeline.graph import baseline_recipe

    model = {"head": "joint_copy", "selective_read": True}
    other = baseline_recipe(
        recipe_from_dict({"name": "x", "model": model, "baseline": {"head": "softmax"}})
    )
    assert other.model.head == "softmax" and not other.model.selective_read
    same = baseline_recipe(
        recipe_from_dict({"name": "x", "model": model, "baseline": {"head": "joint_copy"}})
    )
    assert same.model.selective_read


def test_thirteen_compositions():
    assert len(COMPOSITIONS) == 13
    for name in COMPOSITIONS:
        recipe = recipe_from_dict({"name": "x", "model": {"composition": name, "word_length": 9}})
        assert views.composes(recipe) == (name != "lookup")
        assert views.transform_settings(recipe).get("word_length") == (
            None if name == "lookup" else 9
        )
        assert ("characters" in views.vocabulary_settings(recipe)) == (name != "lookup")
    from keras_models.layers import CharacterComposition

    assert CHARACTER_COMPOSITIONS == CharacterComposition.FUNCTIONS
    odd = {"name": "x", "model": {"composition": "lookup+bilstm", "embedding_size": 9}}
    assert "'model.embedding_size' must be even" in refusal(recipe_from_dict, odd)
