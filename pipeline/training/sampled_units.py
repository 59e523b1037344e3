"""Training pairs whose words are cut into other units in each epoch."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_transform as tft
from numpy.typing import NDArray

from pipeline.features import feature_names, transform_assets, vocabulary_files
from pipeline.features.pair_preprocessor import PairPreprocessor
from pipeline.recipes import views
from pipeline.recipes.recipe import Recipe
from pipeline.recipes.settings import TransformConfig
from pipeline.text import units
from pipeline.text.unit_sampling import UnitSampler
from pipeline.training.epoch_order import EpochOrder
from pipeline.training.stored_pairs import StoredPairs


@dataclasses.dataclass(frozen=True)
class SampledUnits:
    """Cuts words into units that are drawn, and makes the features of the pairs anew.

    Ids and labels of copies come from the function of the Transform graph. What is drawn depends on
    seed, epoch and the number of the batch alone.

    Attributes:
        preprocessor: makes the features of tokens.
        samplers: from a side to what cuts its words; a side without one keeps them.
        names: the features that the network reads.
        seed: the training's.
    """

    preprocessor: PairPreprocessor
    samplers: Mapping[str, UnitSampler]
    names: tuple[str, ...]
    seed: int

    @classmethod
    def of(cls, recipe: Recipe, transform_output: tft.TFTransformOutput) -> "SampledUnits | None":
        """Returns those of a recipe, from the files of its Transform graph, if it samples."""
        training = recipe.training
        if training.subword_sampling == "none":
            return None
        settings = views.transform_settings(recipe)
        assets = transform_assets.folder_of(transform_output)
        # Only serving translates copies.
        settings.pop("translate", None)
        config: TransformConfig = {
            **settings,
            "vocabulary_uri": assets,
            "lexicon_uri": assets,
            "subwords_uri": assets,
        }
        # They cut nothing here; they say what is protected.
        tokenizers = {side: units.word_tokenizer(settings, side) for side in vocabulary_files.SIDES}
        samplers = {
            side: UnitSampler(
                units.read_model(assets, side),
                tokenizers[side].syntax,
                transform_assets.read_vocabulary(
                    transform_output, vocabulary_files.vocabulary_file(side)
                ),
                training.subword_alpha,
                training.subword_nbest if training.subword_sampling in (side, "both") else 1,
            )
            for side in vocabulary_files.SIDES
            if units.cuts(settings, side)
        }
        preprocessor = PairPreprocessor.of(config, tokenizers, lambda path, make: make(path))
        return cls(preprocessor, samplers, feature_names.training_features(recipe), training.seed)

    def reader(
        self, pairs: StoredPairs, order: EpochOrder, epoch: int
    ) -> Callable[[tf.Tensor], tuple[dict[str, tf.Tensor], tf.Tensor]]:
        """Returns the function from a batch's number to its inputs and labels, in an epoch."""

        def draw(number: np.int64) -> list[NDArray[Any]]:
            batch = order.batch(int(number))
            generator = np.random.default_rng((self.seed % (1 << 63), epoch, 2, int(number)))
            drawn: list[NDArray[Any]] = []
            for side, name in feature_names.WORDS.items():
                words, lengths = pairs.words_of(batch, name)
                uniforms = generator.random(len(words))
                if side in self.samplers:
                    cuts = self.samplers[side].draw(words, uniforms.tolist())
                else:
                    cuts = [(word,) for word in words]
                # How many units there are before each word, then before each row.
                before = np.cumsum([0, *map(len, cuts)], dtype="int64")
                ends = np.cumsum(np.concatenate([[0], lengths]))
                flat = [unit.encode() for cut in cuts for unit in cut]
                drawn += [np.array(flat, object), before[ends]]
            return drawn

        def read(number: tf.Tensor) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
            source, source_splits, target, target_splits = tf.numpy_function(
                draw, [number], [tf.string, tf.int64] * 2
            )
            tokens = [
                tf.RaggedTensor.from_row_splits(
                    tf.ensure_shape(flat, [None]), tf.ensure_shape(splits, [None]), validate=False
                )
                for flat, splits in ((source, source_splits), (target, target_splits))
            ]
            features = self.preprocessor.features_of_tokens(*tokens)
            inputs = {
                name: tf.cast(
                    features[name].to_tensor(feature_names.PADDING.get(name, 0)), tf.int32
                )
                for name in self.names
            }
            return inputs, inputs[feature_names.LABELS]

        return read
