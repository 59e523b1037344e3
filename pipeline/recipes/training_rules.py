"""The rules of the section `training`."""

import dataclasses

from pipeline.recipes.choices import PARTS
from pipeline.recipes.fields import RecipeError, suggestion
from pipeline.recipes.recipe_keys import RecipeKeys
from pipeline.recipes.sections import TrainingConfig

#: Keys that a language model's training reads.
_OF_LANGUAGE_MODELS = (
    "epochs",
    "learning_rate",
    "gradient_clip_norm",
    "seed",
    "initialize_from",
    "deterministic",
    "mixed_precision",
    "max_seconds",
)

#: Why it does not read another key, or what to use instead.
_NOT_OF_LANGUAGE_MODELS = {
    "batch_tokens": ": use 'language_model.batch_size'",
    "bucket_lengths": ": use 'language_model.window'",
    "label_smoothing": ": its perplexity would rise",
    "max_updates": ", whose training ends by its epochs",
    "select_by": ", which is chosen by its perplexity",
    "keep": ", whose best epoch is kept",
    "patience": ": use 'language_model.patience'",
    "optimizer": ": use 'language_model.optimizer'",
    "schedule": ", whose learning rate is halved after each epoch that is no better",
    "corpus_weights": ": it is one text",
    "corpus_temperature": ": it is one text",
}

#: What makes two passes over a pair differ.
_DROPOUTS = (
    "dropout",
    "embedding_dropout",
    "word_dropout",
    "output_dropout",
    "recurrent_dropout",
    "attention_dropout",
    "feed_forward_dropout",
)


def check_training(recipe: RecipeKeys) -> None:
    """Checks how a sequence-to-sequence network is trained.

    Raises:
        RecipeError: keys do not fit together.
    """
    training = recipe.training
    _check_learning_rate(training)
    _check_optimizer(training)
    if training.deterministic and training.workers > 1:
        raise RecipeError(
            "The recipe key 'training.deterministic' needs 'training.workers' = 1: the order in "
            "which several workers add up gradients is not fixed."
        )
    _check_parts(recipe)
    if training.keep == "last":
        _check_last_epoch(training)
    if training.label_smoothing:
        _check_label_smoothing(recipe)
    if training.subword_sampling != "none":
        _check_subword_sampling(recipe)
    if training.consistency_weight:
        _check_consistency(recipe)
    if training.ensemble > 1:
        _check_ensemble(recipe)


def check_language_model_training(training: TrainingConfig) -> None:
    """Checks how a language model is trained.

    Raises:
        RecipeError: keys that a language model's training does not have, or that do not fit.
    """
    for field in dataclasses.fields(TrainingConfig):
        if field.name in _OF_LANGUAGE_MODELS or getattr(training, field.name) == field.default:
            continue
        raise RecipeError(
            f"The recipe key 'training.{field.name}' must be {field.default!r} for a language "
            f"model{_NOT_OF_LANGUAGE_MODELS.get(field.name, '')}."
        )
    _check_learning_rate(training)


def _check_learning_rate(training: TrainingConfig) -> None:
    if training.learning_rate <= 0:
        raise RecipeError("The recipe key 'training.learning_rate' must be above 0.")


def _check_optimizer(training: TrainingConfig) -> None:
    if training.optimizer == "adam" and training.weight_decay:
        raise RecipeError(
            "The recipe key 'training.weight_decay' needs 'training.optimizer' = \"adamw\", "
            '"adadelta" or "sgd".'
        )
    if training.optimizer == "adamw" and not training.weight_decay:
        raise RecipeError(
            "The recipe key 'training.optimizer' = \"adamw\" needs a 'training.weight_decay' above "
            "0, such as 0.01."
        )
    if training.optimizer != "sgd" and training.momentum:
        raise RecipeError(
            "The recipe key 'training.momentum' needs 'training.optimizer' = \"sgd\"."
        )


def _check_last_epoch(training: TrainingConfig) -> None:
    for key, is_set in (
        ("patience", bool(training.patience)),
        ("average", training.average == "best"),
    ):
        if is_set:
            raise RecipeError(
                f"The recipe key 'training.keep' = \"last\" does not go with 'training.{key}' = "
                f"{getattr(training, key)!r}, which looks for the best epochs: choose one of them."
            )


def _check_parts(recipe: RecipeKeys) -> None:
    training = recipe.training
    for part in training.frozen:
        if part not in PARTS:
            raise RecipeError(
                f"The recipe key 'training.frozen' cannot name {part!r}{suggestion(part, PARTS)} "
                f"The parts are: {', '.join(PARTS)}."
            )
    for key, is_set in (
        ("frozen", bool(training.frozen)),
        ("layer_decay", training.layer_decay != 1.0),
    ):
        if is_set and recipe.model.body == "rnn":
            raise RecipeError(
                f"The recipe key 'training.{key}' needs 'model.body' = \"transformer\" or "
                '"keras_hub": only these can train their layers differently.'
            )


def _check_ensemble(recipe: RecipeKeys) -> None:
    for key, is_set, reason in (
        ("training.initialize_from", recipe.training.initialize_from, "its members start apart"),
        ("decoding.shortlist_size", recipe.decoding.shortlist_size, "it decodes among all words"),
        ("model.encoder", recipe.model.segments, "it cannot average segmentations"),
    ):
        if is_set:
            raise RecipeError(
                f"The recipe key 'training.ensemble' must be 1 with this '{key}': {reason}."
            )


def _check_label_smoothing(recipe: RecipeKeys) -> None:
    training, model = recipe.training, recipe.model
    if "span_copy" in recipe.heads.values() and model.copying_context == "start":
        raise RecipeError(
            "The recipe key 'training.label_smoothing' must be 0 for head span_copy with "
            "'model.copying_context' = \"start\", whose spans are not all scored in training; "
            'use "expected".'
        )
    if training.large_vocabulary_size and not training.large_vocabulary_drawn:
        raise RecipeError(
            "The recipe key 'training.label_smoothing' with a 'training.large_vocabulary_size' "
            "needs a 'training.large_vocabulary_drawn' above 0, or it would raise the scores of "
            "words that no softmax runs over."
        )


def _check_consistency(recipe: RecipeKeys) -> None:
    training, model = recipe.training, recipe.model
    for key, is_set, reason in (
        ("training.scheduled_sampling", training.scheduled_sampling != "none", "read other words"),
        ("training.large_vocabulary_size", training.large_vocabulary_size, "lack most words"),
        ("model.encoder", model.segments, "cut the source into other words"),
    ):
        if is_set:
            raise RecipeError(
                f"The recipe key 'training.consistency_weight' must be 0 with this '{key}': the "
                f"two distributions that it compares would {reason}."
            )
    if not any(getattr(model, key) for key in _DROPOUTS):
        raise RecipeError(
            "The recipe key 'training.consistency_weight' needs a 'model.dropout' above 0: without "
            "dropout its two passes are the same."
        )


def _check_subword_sampling(recipe: RecipeKeys) -> None:
    sampling, data = recipe.training.subword_sampling, recipe.data
    if data.units != "subwords":
        raise RecipeError(
            "The recipe key 'training.subword_sampling' needs 'data.units' = \"subwords\"."
        )
    if data.term_share:
        raise RecipeError(
            "The recipe key 'training.subword_sampling' must be \"none\" with a 'data.term_share': "
            "the words of a training pair's terms are not cut."
        )
    if sampling != "target" and data.source_units:
        raise RecipeError(
            'The recipe key \'training.subword_sampling\' must be "target" or "none" with '
            "'data.source_units' = \"words\": no source word is cut."
        )
