"""The names of the features that the Transform graph makes of a pair, and their readers."""

from keras_models.heads import copy_head
from keras_models.layers.segmentation_policy import WORD_ENDS
from pipeline.features import source_features
from pipeline.recipes.choices import LEXICON_HEADS
from pipeline.recipes.recipe_keys import RecipeKeys
from pipeline.recipes.views import composes, guided_by_lexicon, imitates_words
from pipeline.text import characters

FEATURES = (
    "source_tokens",
    "source_ids",
    "source_extended_ids",
    "source_feed_ids",
    "target_input_ids",
    "target_extended_ids",
)
LABELS = "target_extended_ids"
# The features that a model reads in training; `label_features` adds the labels of its head.
ID_FEATURES = ("source_ids", "source_extended_ids", "target_input_ids", "target_extended_ids")
# The row of each source token in the lexicon of translations.
LEXICON_ROWS = "source_lexicon_rows"
# The words of both sides before they are cut into units, where training draws other cuts.
WORDS = {"source": "source_words", "target": "target_words"}
# The number of a pair's corpus in `data.corpora`, where there are some; the trainer alone reads it.
CORPUS = "corpus"
# The padding of features in a batch, if it is not 0: no position.
PADDING = {copy_head.POINTERS: -1, copy_head.SPAN_STARTS: -1}


def label_features(recipe: RecipeKeys) -> tuple[str, ...]:
    """Returns the labels, beyond the target's ids, that the recipe's head needs."""
    if recipe.model.head == "span_copy":
        return (copy_head.SPAN_STARTS, copy_head.SPAN_LENGTHS)
    if recipe.model.head == "pointer_softmax" and recipe.model.pointers != "unknown":
        return (copy_head.POINTERS,)
    return ()


def encoder_features(recipe: RecipeKeys) -> tuple[str, ...]:
    """Returns the extra inputs of a recipe's encoder, and of the lexicon of its head."""
    names = (*recipe.data.source_features, *recipe.data.surface_features)
    rows = (LEXICON_ROWS,) if recipe.model.head in LEXICON_HEADS else ()
    composed = (characters.FEATURE,) if composes(recipe) else ()
    imitated = (WORD_ENDS,) if imitates_words(recipe) else ()
    return (*map(source_features.feature_name, names), *rows, *composed, *imitated)


def training_features(recipe: RecipeKeys) -> tuple[str, ...]:
    """Returns all that a recipe's network reads in training."""
    names = [*ID_FEATURES, *label_features(recipe), *encoder_features(recipe)]
    if guided_by_lexicon(recipe):
        names.append(LEXICON_ROWS)
    if recipe.training.scheduled_sampling != "none":
        names.append("source_feed_ids")
    return tuple(dict.fromkeys(names))
