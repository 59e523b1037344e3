"""The network that a recipe describes."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from keras_models.models import KerasHubSeq2Seq, RecurrentSeq2Seq, TransformerSeq2Seq
from keras_models.models.seq2seq import Seq2Seq
from pipeline.recipes import views
from pipeline.recipes.recipe import Recipe
from pipeline.recipes.sections import SegmentationConfig
from pipeline.text import presets
from pipeline.training import precision
from pipeline.training.model_inputs import ModelInputs
from pipeline.training.preset_words import PresetWords


def head_options(recipe: Recipe) -> dict[str, Any]:
    """Returns the recipe's own arguments of its head."""
    model = recipe.model
    options: dict[str, dict[str, Any]] = {
        "pointer_softmax": {
            "inverse_temperature": model.inverse_temperature,
            "activation": model.switch_activation,
        },
        "joint_copy": {"tanh": model.copy_tanh},
        "span_copy": {"max_span": model.max_span, "copying_context": model.copying_context},
        "lexicon_bias": {"epsilon": model.lexicon_epsilon},
        "lexicon_linear": {"gate": model.lexicon_gate},
    }
    return options.get(model.head, {})


def segmentation_options(config: SegmentationConfig) -> dict[str, Any]:
    """Returns the recipe's arguments of its segmentation's policy and composer."""
    led_by_callback = ("warm_up_updates", "alternate_updates")
    return {
        name: value
        for name, value in dataclasses.asdict(config).items()
        if name not in led_by_callback
    }


def build_model(recipe: Recipe, inputs: ModelInputs) -> Seq2Seq:
    """Builds the network that a recipe describes, untrained or with a preset's weights.

    Args:
        recipe: a `Recipe`.
        inputs: what the network must know of its data.

    Raises:
        PresetError: the recipe's preset cannot be used.
    """
    config, training = recipe.model, recipe.training
    options: dict[str, Any] = {
        "source_vocabulary_size": inputs.source_vocabulary_size,
        "target_vocabulary_size": inputs.target_vocabulary_size,
        "head": config.head,
        "head_options": head_options(recipe),
        "source_features": inputs.source_features,
        "feature_size": config.feature_size,
        "dropout": config.dropout,
        "embedding_dropout": config.embedding_dropout,
        "word_dropout": config.word_dropout,
        "output_dropout": config.output_dropout,
        "coverage_loss_weight": training.coverage_loss_weight if config.coverage else 0.0,
        "large_vocabulary_size": training.large_vocabulary_size,
        "large_vocabulary_drawn": training.large_vocabulary_drawn,
        "label_smoothing": training.label_smoothing,
        "consistency_weight": training.consistency_weight,
        "guided_alignment_weight": training.guided_alignment_weight,
        "scheduled_sampling": training.scheduled_sampling != "none",
        "lexicon_shape": inputs.lexicon[0].shape if inputs.lexicon else None,
        "composition": config.composition,
        "composition_options": {
            "word_length": config.word_length,
            "characters": inputs.characters,
            "buckets": config.ngram_buckets,
        },
        "tie_embeddings": config.tie_embeddings,
        "dtype": precision.policy(training),
    }
    sizes = {
        "embedding_size": config.embedding_size,
        "hidden_size": config.hidden_size,
        "encoder_layers": config.encoder_layers,
        "decoder_layers": config.decoder_layers,
    }
    model: Seq2Seq
    if config.body == "keras_hub":
        options["decoder_layers"] = config.decoder_layers
        model = _pretrained(config.preset, inputs.preset, options)
    elif config.body == "transformer":
        model = TransformerSeq2Seq(
            attention_heads=config.attention_heads,
            feed_forward_size=config.feed_forward_size,
            attention_dropout=config.attention_dropout,
            feed_forward_dropout=config.feed_forward_dropout,
            depth_scaled=config.depth_scaled,
            norm_first=config.norm_first,
            **sizes,
            **options,
        )
    else:
        segmentation = segmentation_options(recipe.segmentation) if views.segments(recipe) else None
        model = RecurrentSeq2Seq(
            cell=config.cell,
            decoder=config.decoder,
            encoder=config.encoder,
            kernel_size=config.kernel_size,
            attention=config.attention,
            input_feeding=config.input_feeding,
            selective_read=config.selective_read,
            initial_range=config.initial_range,
            recurrent_dropout=config.recurrent_dropout,
            coverage=config.coverage,
            segmentation=segmentation,
            **sizes,
            **options,
        )
    if inputs.lexicon:
        model.set_lexicon(*inputs.lexicon)
    for side, vectors in inputs.vectors.items():
        model.set_word_vectors(side, vectors.ids, vectors.values)
    return model


def _pretrained(
    preset: str, words: PresetWords | None, options: Mapping[str, Any]
) -> KerasHubSeq2Seq:
    """Returns a network with the weights of a preset.

    Args:
        preset: `model.preset`.
        words: which words the preset knows.
        options: the network's arguments.
    """
    if words is None:
        raise ValueError("A pre-trained network needs to know which words its preset knows.")
    backbone = presets.load(preset, lambda hub: hub.models.Backbone)
    try:
        model = KerasHubSeq2Seq(backbone=backbone, **options)
        model.take_preset(backbone, words.source, words.target)
    except ValueError as error:
        raise presets.PresetError(
            f"The preset {preset} of model.preset cannot be used: {error}"
        ) from error
    return model
