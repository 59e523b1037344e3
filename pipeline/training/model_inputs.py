"""What a network must know of its data before it can be built."""

import dataclasses
from collections.abc import Mapping

import numpy as np
import tensorflow_transform as tft
from numpy.typing import NDArray

from pipeline.features import transform_assets, vocabulary_files
from pipeline.recipes import views
from pipeline.recipes.choices import LEXICON_HEADS
from pipeline.recipes.fields import RecipeError
from pipeline.recipes.recipe import Recipe


@dataclasses.dataclass(frozen=True)
class ModelInputs:
    """Sizes and tables of a sequence-to-sequence network's inputs.

    Attributes:
        source_vocabulary_size, target_vocabulary_size: numbers of ids.
        source_features: what `transform_assets.encoder_feature_sizes` gives, or None.
        lexicon: what `transform_assets.read_lexicon` gives, for heads that read it.
        characters: number of character ids, where words are composed of them.
    """

    source_vocabulary_size: int
    target_vocabulary_size: int
    source_features: Mapping[str, int] | None = None
    lexicon: tuple[NDArray[np.int32], NDArray[np.float32]] | None = None
    characters: int = 0

    @classmethod
    def of(cls, recipe: Recipe, transform_output: tft.TFTransformOutput) -> "ModelInputs":
        """Returns those of a recipe's model, from the Transform graph of its features.

        Raises:
            RecipeError: source and target are to share their embeddings, and have other words.
        """
        source, target = (
            transform_assets.read_vocabulary(transform_output, name)
            for name in (
                vocabulary_files.SOURCE_VOCABULARY_FILE,
                vocabulary_files.TARGET_VOCABULARY_FILE,
            )
        )
        if recipe.model.tie_embeddings == "all" and source != target:
            raise RecipeError(
                "The recipe key 'model.tie_embeddings' = \"all\" needs one vocabulary for source "
                'and target, and those of this run differ: set it to "target".'
            )
        lexicon, characters = None, 0
        if recipe.model.head in LEXICON_HEADS:
            lexicon = transform_assets.read_lexicon(transform_output)
        if views.composes(recipe):
            characters = transform_assets.count_characters(transform_output)
        features = transform_assets.encoder_feature_sizes(transform_output, recipe)
        return cls(len(source), len(target), features, lexicon, characters)
