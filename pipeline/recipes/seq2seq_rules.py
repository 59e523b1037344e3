"""Rules of the task `seq2seq` that span several keys:
what does not fit together is a `RecipeError` that names the keys.
"""

import re

from pipeline.recipes.choices import ATTENTIVE_HEADS, LEXICON_HEADS, METRICS, SLICES
from pipeline.recipes.fields import RecipeError, suggestion

# `source_ids` and its like are features of the graph itself.
_OWN_SOURCE_FEATURES = (
    "ids",
    "tokens",
    "extended_ids",
    "feed_ids",
    "copy_tokens",
    "protected",
    "lexicon_rows",
    "characters",
)


def check_together(recipe):
    """Checks a recipe of this task by the rules that span several keys.

    Raises:
        RecipeError: keys do not fit together.
    """
    if recipe.data.format == "text":
        raise RecipeError(
            "The recipe key 'data.format' = \"text\" needs 'task' = \"language_model\": plain "
            "text has no pairs."
        )
    _check_data(recipe.data)
    _check_units(recipe)
    _check_slice_features(recipe.data)
    _check_evaluation(recipe.evaluation, recipe.data)
    # What is read must be trainable (the end takes one place) and decodable: nothing is left out
    # later.
    for key, longest in (
        ("training.bucket_lengths", recipe.training.bucket_lengths[-1] - 1),
        ("decoding.length_buckets", recipe.decoding.length_buckets[-1]),
    ):
        if recipe.data.max_tokens > longest:
            raise RecipeError(
                f"The recipe key 'data.max_tokens' ({recipe.data.max_tokens}) must be at most "
                f"{longest} to fit the last of "
                f"'{key}'."
            )
    shortest_limit = int(recipe.decoding.length_buckets[0] * recipe.decoding.max_length_factor)
    if recipe.decoding.min_length > shortest_limit + recipe.decoding.max_length_offset:
        raise RecipeError(
            f"The recipe key 'decoding.min_length' ({recipe.decoding.min_length}) exceeds the "
            "longest output of the first "
            "of 'decoding.length_buckets'."
        )
    if not recipe.decoding.temperature and recipe.decoding.n_best > recipe.decoding.beam_size:
        raise RecipeError(
            f"The recipe key 'decoding.n_best' ({recipe.decoding.n_best}) cannot exceed "
            f"'decoding.beam_size' ({recipe.decoding.beam_size})."
        )
    _check_model(recipe)
    _check_segmentation(recipe)
    if recipe.model.min_span > recipe.model.max_span:
        raise RecipeError(
            f"The recipe key 'model.min_span' ({recipe.model.min_span}) cannot exceed "
            "'model.max_span' "
            f"({recipe.model.max_span})."
        )
    _check_lexicons(recipe)
    if recipe.training.learning_rate <= 0:
        raise RecipeError("The recipe key 'training.learning_rate' must be above 0.")
    if recipe.training.deterministic and recipe.training.workers > 1:
        raise RecipeError(
            "The recipe key 'training.deterministic' needs 'training.workers' = 1: in which order "
            "several workers add up is not said."
        )


def _check_model(recipe):
    """Rules that span several keys of the model section, and those of training that depend on it."""
    model, training = recipe.model, recipe.training
    if model.composition.endswith("bilstm") and model.embedding_size % 2:
        raise RecipeError(
            "The recipe key 'model.embedding_size' must be even: 'bilstm' composes words in two "
            "directions."
        )
    if model.body == "transformer":
        for key, default in (
            ("attention", "none"),
            ("encoder", "cnn"),
            ("encoder", "segmenting"),
            ("selective_read", True),
        ):
            if getattr(model, key) == default:
                raise RecipeError(
                    f"The recipe key 'model.{key}' ({str(default).lower()}) needs 'model.body' = "
                    '"rnn": the transformer has none.'
                )
        if model.hidden_size % model.attention_heads or model.hidden_size % 2:
            raise RecipeError(
                f"The recipe key 'model.hidden_size' ({model.hidden_size}) must be even and "
                "divisible by 'model.attention_heads' "
                f"({model.attention_heads})."
            )
    elif model.encoder in ("rnn", "segmenting") and model.hidden_size % 2:
        raise RecipeError(
            "The recipe key 'model.hidden_size' must be even: the encoder has two directions."
        )
    elif model.encoder == "cnn" and model.kernel_size % 2 == 0:
        raise RecipeError(
            "The recipe key 'model.kernel_size' must be odd: as many words on either side."
        )
    if model.initial_range and (model.body, model.encoder) != ("rnn", "rnn"):
        raise RecipeError(
            f"The recipe key 'model.initial_range' ({model.initial_range}) needs 'model.body' = "
            '"rnn" and \'model.encoder\' = "rnn": other layers '
            "are drawn by sizes of their own."
        )
    for key, head in (("model.head", model.head), ("baseline.head", recipe.baseline.head)):
        if model.attention == "none" and head in ATTENTIVE_HEADS:
            raise RecipeError(
                f"The recipe key '{key}' ({head}) needs a 'model.attention' other than \"none\": "
                "it copies by it."
            )
    if model.selective_read and model.head != "joint_copy":
        raise RecipeError(
            "The recipe key 'model.selective_read' needs 'model.head' = \"joint_copy\"; got "
            f"{model.head!r}."
        )
    if training.large_vocabulary_size:
        # No target may be missing: a batch has at most so many words, and there are the special
        # ids.
        least = max(training.batch_tokens // 2, training.bucket_lengths[-1]) + 4
        if training.large_vocabulary_size < least:
            raise RecipeError(
                "The recipe key 'training.large_vocabulary_size' "
                f"({training.large_vocabulary_size}) must be at least {least}, so "
                "that it holds all words of an update: half of 'training.batch_tokens', or the "
                "last of 'training.bucket_lengths', "
                "and 4 more."
            )


def _check_segmentation(recipe):
    """Rules of the encoder that finds words, `model.encoder = "segmenting"`."""
    if not recipe.model.segments:
        return
    if recipe.data.source_tokenization != "characters":
        raise RecipeError(
            "The recipe key 'model.encoder' = \"segmenting\" needs 'data.source_tokenization' = "
            '"characters": it finds words among them.'
        )
    for key, head in (("model.head", recipe.model.head), ("baseline.head", recipe.baseline.head)):
        if head not in ("", "softmax"):
            raise RecipeError(
                f"The recipe key '{key}' must be \"softmax\" for 'model.encoder' = "
                '"segmenting", which would copy single '
                f"characters; got {head!r}."
            )
    if recipe.model.attention == "none":
        raise RecipeError(
            "The recipe key 'model.encoder' = \"segmenting\" needs a 'model.attention' other than "
            '"none".'
        )
    if recipe.decoding.replace_unknown != "none":
        raise RecipeError(
            "The recipe key 'decoding.replace_unknown' must be \"none\" for 'model.encoder' = "
            '"segmenting": it would put single characters.'
        )
    if recipe.decoding.temperature and recipe.segmentation.decoding_samples > 1:
        raise RecipeError(
            "The recipe key 'segmentation.decoding_samples' must be 1 with a "
            "'decoding.temperature' above 0: drawn outputs do not compete."
        )
    if recipe.segmentation.baseline == "samples" and recipe.segmentation.samples < 2:
        raise RecipeError(
            "The recipe key 'segmentation.samples' must be at least 2 for 'segmentation.baseline' "
            '= "samples": a sample is compared '
            "with the others."
        )


def _check_data(data):
    """Rules that span several keys of the data section."""
    shares = {
        f"data.{split}_share": getattr(data, f"{split}_share")
        for split in ("eval", "test")
        if not getattr(data, f"{split}_files")
    }
    if any(share <= 0 for share in shares.values()):
        raise RecipeError(
            f"The recipe keys {' and '.join(map(repr, shares))} must be above 0 where no files "
            "are given for these splits: "
            "all splits are used."
        )
    if sum(shares.values()) >= 1:
        raise RecipeError(
            "The recipe keys 'data.eval_share' and 'data.test_share' must leave something to "
            "train on: their sum must be below 1."
        )
    if (data.eval_files or data.test_files) and not data.train_files:
        raise RecipeError(
            "The recipe keys 'data.eval_files' and 'data.test_files' need 'data.train_files': "
            "name the training files too."
        )
    if data.columns and (missing := [c for c in _named_columns(data) if c not in data.columns]):
        raise RecipeError(
            f"The recipe key 'data.columns' lacks {', '.join(map(repr, missing))}, which "
            "'data.source_column', "
            "'data.target_column', 'data.source_features' or 'data.slice_features' name."
        )
    if data.source_features and data.tokenization != "whitespace":
        raise RecipeError(
            "The recipe key 'data.source_features' needs 'data.tokenization' = \"whitespace\": "
            "tags belong to the tokens of a "
            "text that is tokenized already."
        )
    if reserved := set(data.extra_columns) & {
        "source",
        "target",
        "file",
        "line",
        data.source_column,
        data.target_column,
    }:
        raise RecipeError(
            "The recipe keys 'data.source_features' and 'data.slice_features' cannot name "
            f"{', '.join(map(repr, sorted(reserved)))}: "
            "this column has another use; rename it."
        )


def _check_units(recipe):
    """What goes by words needs words as units."""
    data = recipe.data
    if data.source_units and data.units == "words":
        raise RecipeError(
            "The recipe key 'data.source_units' needs 'data.units' other than \"words\": it "
            "spares the source what cuts the target."
        )
    if data.source_units and recipe.vocabulary.joint:
        raise RecipeError(
            "The recipe key 'vocabulary.joint' must be false: 'data.source_units' cuts the two "
            "sides differently."
        )
    if data.units == "words" and not data.source_tokenization:
        return
    if data.units != "words" and data.source_tokenization:
        raise RecipeError(
            "The recipe key 'data.source_tokenization' needs 'data.units' = \"words\": each cuts "
            "the source."
        )
    if recipe.vocabulary.joint and data.source_tokenization:
        raise RecipeError(
            "The recipe key 'vocabulary.joint' must be false: 'data.source_tokenization' cuts the "
            "two sides differently."
        )
    blamed = (
        "'data.source_tokenization' = \"\""
        if data.source_tokenization
        else "'data.units' = \"words\""
    )
    for key, uses_words in (
        # What is learned may be of units; a dictionary lists words.
        (
            "lexicon.kind",
            recipe.lexicon.kind != "none"
            and not (recipe.lexicon.kind == "learned" and data.units != "words"),
        ),
        ("data.dictionary", bool(recipe.data.dictionary)),
        ("data.copy_lexicon", bool(recipe.data.copy_lexicon)),
        ("data.source_features", bool(recipe.data.source_features)),
        ("data.surface_features", bool(recipe.data.surface_features)),
        ("evaluation.slices", "unknown_words" in recipe.evaluation.slices),
    ):
        if uses_words:
            raise RecipeError(f"The recipe key '{key}' goes by words: it needs {blamed}.")


def _check_slice_features(data):
    """Rules of `data.slice_features`:
    they become features of the examples beside the texts and their tags.
    """
    for name in data.slice_features:
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) or name in SLICES:
            raise RecipeError(
                f"The recipe key 'data.slice_features' cannot name {name!r}: a column must be "
                "called by letters, digits and '_', and "
                f"none of {', '.join(SLICES)}; rename the column."
            )
        if name in data.source_features:
            raise RecipeError(
                "The recipe keys 'data.source_features' and 'data.slice_features' both name "
                f"{name!r}."
            )


def _check_lexicons(recipe):
    """Rules about what is copied, what stands for a copy, and the files that this takes."""
    data, model = recipe.data, recipe.model
    if (
        model.pointers == "dictionary" or recipe.decoding.replace_unknown == "dictionary"
    ) and not data.dictionary:
        key = "model.pointers" if model.pointers == "dictionary" else "decoding.replace_unknown"
        raise RecipeError(
            f"The recipe key '{key}' = \"dictionary\" needs a file of translations: name it in "
            "'data.dictionary'."
        )
    for key, value in (("model.head", model.head), ("baseline.head", recipe.baseline.head)):
        if value in LEXICON_HEADS and recipe.lexicon.kind == "none":
            raise RecipeError(
                f"The recipe key '{key}' = \"{value}\" needs a lexicon: set 'lexicon.kind' to "
                "learned, manual or hybrid."
            )
    if recipe.decoding.replace_unknown == "lexicon" and recipe.lexicon.kind == "none":
        raise RecipeError(
            "The recipe key 'decoding.replace_unknown' = \"lexicon\" needs a lexicon: set "
            "'lexicon.kind' to learned, manual or hybrid."
        )
    if recipe.decoding.shortlist_size:
        if recipe.lexicon.kind == "none":
            raise RecipeError(
                "The recipe key 'decoding.shortlist_size' needs a lexicon, which proposes words: "
                "set 'lexicon.kind' to learned, manual or "
                "hybrid."
            )
        for key, value in (("model.head", model.head), ("baseline.head", recipe.baseline.head)):
            if value == "pointer_network":
                raise RecipeError(
                    f"The recipe key 'decoding.shortlist_size' must be 0 where '{key}' is "
                    '"pointer_network": it has no softmax over words.'
                )
    elif recipe.decoding.shortlist_confidence:
        raise RecipeError(
            "The recipe key 'decoding.shortlist_confidence' needs a 'decoding.shortlist_size' "
            "above 0."
        )
    if recipe.lexicon.kind in ("manual", "hybrid") and not data.dictionary:
        raise RecipeError(
            f"The recipe key 'lexicon.kind' = \"{recipe.lexicon.kind}\" needs a file of "
            "translations: name it in 'data.dictionary'."
        )
    if model.pointers == "entities" and model.entity_feature not in data.source_features:
        raise RecipeError(
            "The recipe key 'model.entity_feature' must name one of 'data.source_features' when "
            "'model.pointers' is \"entities\"; "
            f"got {model.entity_feature!r}."
        )
    if (
        recipe.decoding.replace_unknown != "none"
        and model.body == "rnn"
        and model.attention == "none"
    ):
        raise RecipeError(
            f"The recipe key 'decoding.replace_unknown' = \"{recipe.decoding.replace_unknown}\" "
            "puts what attention looks at: it needs a "
            "'model.attention' other than \"none\"."
        )
    if recipe.decoding.replace_unknown in ("dictionary", "lexicon"):
        for key, head in (("model.head", model.head), ("baseline.head", recipe.baseline.head)):
            # A search does not say which of the tokens of the source that it writes stand for
            # [UNK].
            copies_translations = head == "pointer_softmax" and model.pointers == "dictionary"
            if (
                head not in ("", "softmax", "lexicon_bias", "lexicon_linear")
                and not copies_translations
            ):
                raise RecipeError(
                    "The recipe key 'decoding.replace_unknown' = "
                    f'"{recipe.decoding.replace_unknown}" would translate all that is copied: it '
                    "fits heads softmax, lexicon_bias and lexicon_linear, and pointer_softmax "
                    "with 'model.pointers' = \"dictionary\"; but "
                    f"'{key}' is {head!r}."
                )
    for name in data.surface_features:
        if name not in ("case",):
            raise RecipeError(
                f"The recipe key 'data.surface_features' can name 'case' alone; got {name!r}."
            )
        if name in data.source_features:
            raise RecipeError(
                "The recipe keys 'data.surface_features' and 'data.source_features' both name "
                f"{name!r}."
            )
    if "case" in data.surface_features and data.lowercase:
        raise RecipeError(
            "The recipe key 'data.surface_features' names 'case', which 'data.lowercase' leaves "
            "nothing of."
        )
    for name in data.source_features:
        # They are names of a model's inputs, beside its own.
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) or name in _OWN_SOURCE_FEATURES:
            raise RecipeError(
                f"The recipe key 'data.source_features' cannot name {name!r}: a column of tags "
                "must be called by letters, digits and "
                f"'_', and none of {', '.join(_OWN_SOURCE_FEATURES)}; rename the column."
            )


def _check_evaluation(evaluation, data):
    """Rules that span several keys of the evaluation section."""
    if not evaluation.metrics:
        raise RecipeError("The recipe key 'evaluation.metrics' must name a metric at least.")
    for name in evaluation.metrics:
        if name not in METRICS:
            raise RecipeError(
                "The recipe key 'evaluation.metrics' names an unknown metric "
                f"'{name}'{suggestion(name, METRICS)} "
                f"The metrics are: {', '.join(METRICS)}."
            )
    for section in (
        "thresholds",
        "change_thresholds",
        "slice_thresholds",
        "slice_change_thresholds",
    ):
        bounds = {
            name: bound
            for name, bound in vars(getattr(evaluation, section)).items()
            if bound is not None
        }
        for name in bounds:
            if name not in evaluation.metrics:
                raise RecipeError(
                    f"The recipe key 'evaluation.{section}.{name}' needs '{name}' among "
                    "'evaluation.metrics': what is not measured "
                    "stops nothing."
                )
        if bounds and section.startswith("slice_") and not evaluation.slices:
            raise RecipeError(
                f"The recipe key 'evaluation.{section}.{next(iter(bounds))}' needs "
                "'evaluation.slices': name what to slice by."
            )
    known = (*SLICES, *data.slice_features)
    for name in evaluation.slices:
        if name not in known:
            raise RecipeError(
                "The recipe key 'evaluation.slices' names an unknown slice "
                f"'{name}'{suggestion(name, known)} It can name "
                f"{', '.join(known)}; a column of the data must be named in 'data.slice_features' "
                "too."
            )
    if "execution_accuracy" in evaluation.metrics and not evaluation.database:
        raise RecipeError(
            "The recipe key 'evaluation.database' must name an SQLite file: the metric "
            "'execution_accuracy' runs queries on it."
        )


def _named_columns(data):
    return (data.source_column, data.target_column, *data.extra_columns)


def text_settings(recipe):
    """Returns what `pipeline.recipes.views.text_settings` has for this task alone: nothing."""
    return {}


def composes(recipe):
    """Whether the vectors of source words are composed of their characters."""
    return recipe.model.composition != "lookup"


def compares_with_last_blessed(recipe):
    """Whether the Evaluator needs the last blessed model too."""
    return recipe.evaluation.compares_with_last_blessed


def check_searched(key):
    """Every key of the sections model and training can be searched."""
