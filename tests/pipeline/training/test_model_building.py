"""The network that a recipe describes."""

import pytest

from pipeline.recipes.recipe import Recipe
from pipeline.recipes.sections import DataConfig, ModelConfig, TrainingConfig


def test_the_recipe_reaches_the_model():
    from pipeline.training.model_building import build_model
    from pipeline.training.model_inputs import ModelInputs

    config = ModelConfig(
        head="softmax",
        cell="lstm",
        attention="dot",
        embedding_size=6,
        hidden_size=4,
        encoder_layers=2,
        coverage=False,
        embedding_dropout=0.1,
        word_dropout=0.2,
        output_dropout=0.3,
        recurrent_dropout=0.4,
        decoder_layers=2,
        decoder="bahdanau",
    )
    made = Recipe(
        name="x", data=DataConfig(), model=config, training=TrainingConfig(coverage_loss_weight=0.7)
    )
    built = build_model(made, ModelInputs(30, 40)).get_config()
    for key in (
        "head",
        "cell",
        "attention",
        "embedding_size",
        "hidden_size",
        "encoder_layers",
        "coverage",
        "dropout",
        "embedding_dropout",
        "word_dropout",
        "output_dropout",
        "recurrent_dropout",
        "decoder_layers",
        "decoder",
    ):
        assert built[key] == getattr(config, key)
    assert (built["source_vocabulary_size"], built["target_vocabulary_size"]) == (30, 40)
    assert built["coverage_loss_weight"] == 0.0


@pytest.mark.parametrize(
    "model, training, expected",
    [
        (
            {
                "body": "transformer",
                "decoder_layers": 2,
                "attention_heads": 2,
                "feed_forward_size": 9,
                "encoder_layers": 2,
                "tie_embeddings": "target",
                "attention_dropout": 0.1,
                "feed_forward_dropout": 0.3,
                "depth_scaled": True,
                "norm_first": False,
            },
            {"coverage_loss_weight": 0.3, "large_vocabulary_size": 600},
            {
                "tie_embeddings": "target",
                "attention_dropout": 0.1,
                "feed_forward_dropout": 0.3,
                "depth_scaled": True,
                "norm_first": False,
                "decoder_layers": 2,
                "attention_heads": 2,
                "feed_forward_size": 9,
                "encoder_layers": 2,
                "coverage_loss_weight": 0.3,
            },
        ),
        (
            {
                "head": "joint_copy",
                "selective_read": True,
                "copy_tanh": False,
                "encoder": "cnn",
                "kernel_size": 5,
            },
            {"scheduled_sampling": "linear", "guided_alignment_weight": 0.5},
            {
                "selective_read": True,
                "head_options": {"tanh": False},
                "encoder": "cnn",
                "kernel_size": 5,
                "scheduled_sampling": True,
                "guided_alignment_weight": 0.5,
            },
        ),
        (
            {
                "head": "pointer_softmax",
                "inverse_temperature": 2.0,
                "switch_activation": "noisy_tanh",
            },
            {},
            {
                "head_options": {"inverse_temperature": 2.0, "activation": "noisy_tanh"},
                "scheduled_sampling": False,
            },
        ),
        (
            {
                "head": "span_copy",
                "max_span": 3,
                "copying_context": "start",
                "attention": "none",
                "initial_range": 0.1,
            },
            {},
            {
                "head_options": {"max_span": 3, "copying_context": "start"},
                "attention": "none",
                "initial_range": 0.1,
            },
        ),
    ],
)
def test_bodies_and_the_options_of_heads_reach_the_model(model, training, expected):
    from pipeline.training.model_building import build_model
    from pipeline.training.model_inputs import ModelInputs

    config = ModelConfig(embedding_size=6, hidden_size=4, **model)
    made = Recipe(name="x", model=config, training=TrainingConfig(**training))
    built = build_model(made, ModelInputs(30, 1200))
    assert type(built).__name__ == (
        "TransformerSeq2Seq" if config.body == "transformer" else "RecurrentSeq2Seq"
    )
    assert {key: built.get_config()[key] for key in expected} == expected
    assert built.large_vocabulary_size == training.get("large_vocabulary_size", 0)


@pytest.mark.parametrize("settings", [{"tie_weights": True}, {}])
def test_the_embeddings_of_a_language_model_reach_it(settings):
    from pipeline.recipes.recipe import recipe_from_dict
    from pipeline.training.language_model_trainer import build_model

    model = {"head": "softmax", "embedding_size": 6, "hidden_size": 6}
    if not settings:
        model["tie_embeddings"] = "target"
    tree = {
        "name": "x",
        "task": "language_model",
        "data": {"train_files": ["t"], "eval_files": ["e"], "tokenization": "whitespace"},
        "model": model,
        "language_model": {**settings, "first_embeddings": "unit"},
    }
    built = build_model(recipe_from_dict(tree), 20).get_config()
    assert built["tie_weights"] and built["unit_embeddings"]


def test_source_and_target_that_share_vectors_have_the_same_words(tmp_path):
    from pipeline.recipes.fields import RecipeError
    from pipeline.training.model_inputs import ModelInputs
    from tests.pipeline.export.tiny_models import make_recipe, transform_tiny, untrained

    rows = [("greet ada and bob", "ada and bob")]
    made = make_recipe(model={"tie_embeddings": "all"}, vocabulary={"joint": True})
    for name in ("same", "other"):
        (tmp_path / name).mkdir()
    same = transform_tiny(tmp_path / "same", made, rows, ["greet", "and"], ["greet", "and"])
    model = untrained(made, same)
    assert model.source_embedding is model.target_embedding
    other = transform_tiny(tmp_path / "other", made, rows, ["greet", "and"], ["and", "greet"])
    with pytest.raises(RecipeError, match='set it to "target"'):
        ModelInputs.of(made, other)


@pytest.mark.parametrize("body", ["rnn", "transformer"])
def test_vectors_of_a_file_are_the_first_ones_of_their_words(body):
    """They are scaled to the variance that the other words start with."""
    import numpy as np

    from pipeline.lexicons.pretrained_vectors import PretrainedVectors
    from pipeline.training.model_building import build_model
    from pipeline.training.model_inputs import ModelInputs

    config = ModelConfig(body=body, embedding_size=16, hidden_size=16, attention_heads=2)
    made = Recipe(name="x", data=DataConfig(), model=config, training=TrainingConfig())
    rng = np.random.default_rng(0)
    vectors = {
        side: PretrainedVectors(
            np.array([4, 7, 30], np.int32), rng.normal(0, 5, (3, 16)).astype(np.float32)
        )
        for side in ("source", "target")
    }
    inputs = ModelInputs(200, 300, vectors=vectors)
    assert len(inputs.arrays()) == 4
    model = build_model(made, inputs)
    for side, given in vectors.items():
        table = np.asarray(getattr(model, f"{side}_embedding").embeddings.value)
        scaled = table[given.ids] / given.values
        np.testing.assert_allclose(scaled, scaled[0, 0], rtol=1e-4)
        expected = 1.0 if body == "rnn" else 0.25
        assert abs(table[given.ids].std() / expected - 1) < 0.2
        assert abs(np.delete(table, given.ids, axis=0).std() / expected - 1) < 0.1
