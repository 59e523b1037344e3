"""What a network must know of its data before it can be built."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow_transform as tft
from numpy.typing import NDArray

from pipeline.features import transform_assets, vocabulary_files
from pipeline.lexicons import pretrained_vectors
from pipeline.lexicons.pretrained_vectors import PretrainedVectors
from pipeline.recipes import views
from pipeline.recipes.choices import LEXICON_HEADS
from pipeline.recipes.fields import RecipeError
from pipeline.recipes.recipe import Recipe
from pipeline.training.preset_words import PresetWords


@dataclasses.dataclass(frozen=True)
class ModelInputs:
    """Sizes and tables of a sequence-to-sequence network's inputs.

    Attributes:
        source_vocabulary_size, target_vocabulary_size: numbers of ids.
        source_features: what `transform_assets.encoder_feature_sizes` gives, or None.
        lexicon: what `transform_assets.read_lexicon` gives, for heads and guided alignment.
        characters: number of character ids, where words are composed of them.
        preset: which words a pre-trained model knows, where the network is one.
        vectors: from `"source"` or `"target"` to the first vectors of that side's words.
    """

    source_vocabulary_size: int
    target_vocabulary_size: int
    source_features: Mapping[str, int] | None = None
    lexicon: tuple[NDArray[np.int32], NDArray[np.float32]] | None = None
    characters: int = 0
    preset: PresetWords | None = None
    vectors: Mapping[str, PretrainedVectors] = dataclasses.field(default_factory=dict)

    def arrays(self) -> list[NDArray[Any]]:
        """Returns the tables that the first weights depend on."""
        vectors = [part for side in self.vectors.values() for part in (side.ids, side.values)]
        known = (self.preset.source, self.preset.target) if self.preset else ()
        return [*(self.lexicon or ()), *vectors, *known]

    @classmethod
    def of(cls, recipe: Recipe, transform_output: tft.TFTransformOutput) -> "ModelInputs":
        """Returns those of a recipe's model, from the Transform graph of its features.

        Raises:
            RecipeError: source and target are to share their embeddings, and have other words; or
                a file of vectors cannot be used.
            PresetError: the recipe's preset cannot be used.
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
        if recipe.model.head in LEXICON_HEADS or views.guided_by_lexicon(recipe):
            lexicon = transform_assets.read_lexicon(transform_output)
        if views.composes(recipe):
            characters = transform_assets.count_characters(transform_output)
        features = transform_assets.encoder_feature_sizes(transform_output, recipe)
        words = {"source": source, "target": target}
        vectors = {
            side: PretrainedVectors.read(recipe, key, words[side])
            for key, side in pretrained_vectors.KEYS.items()
            if getattr(recipe.model, key)
        }
        preset = None
        if recipe.model.body == "keras_hub":
            preset = PresetWords.read(recipe.model.preset, source, target)
        return cls(len(source), len(target), features, lexicon, characters, preset, vectors)
