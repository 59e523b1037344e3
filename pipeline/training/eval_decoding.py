"""A metric of the outputs that a network in training writes for its eval split."""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from keras_models import decoding
from pipeline.features import feature_names
from pipeline.features.smallest_bucket import smallest_bucket
from pipeline.features.written_ids import IdWriter, longest_output
from pipeline.metrics import scoring
from pipeline.metrics.scored_texts import ScoredTexts
from pipeline.metrics.scoring_options import ScoringOptions
from pipeline.recipes import views
from pipeline.recipes.recipe import Recipe
from pipeline.text import units
from pipeline.training import training_data
from pipeline.training.drawn_pairs import draw_pairs
from pipeline.training.selection import Selection

# Pairs of one search.
_BATCH = 64


#: A greedy search: inputs to tokens `[N, T]` and lengths `[N]`.
Search = Callable[[Mapping[str, tf.Tensor]], tuple[tf.Tensor, tf.Tensor]]


@dataclasses.dataclass
class EvalDecoding:
    """Decodes pairs of the eval split and measures the outputs.

    Attributes:
        metric: the name of the metric.
        recipe: the `Recipe`.
        pairs: batches of features, each sorted by length.
        references: the target of each pair, in the order of `pairs`.
        writer: writes ids as text.
    """

    metric: str
    recipe: Recipe
    pairs: Sequence[Mapping[str, tf.Tensor]]
    references: Sequence[str]
    writer: IdWriter
    # The model that was measured last, and its search, which is traced one time for all epochs.
    _search: tuple[keras.Model, Search] | None = dataclasses.field(default=None, init=False)

    @classmethod
    def of(cls, recipe: Recipe, files: Sequence[str], vocabulary: Sequence[str]) -> "EvalDecoding":
        """Reads the pairs of a recipe's eval split.

        Args:
            recipe: the `Recipe`.
            files: patterns of files of transformed examples.
            vocabulary: the target's words by id.
        """
        config = recipe.training
        names = (
            *(name for name in feature_names.FEATURES if name != training_data.SURFACES),
            *feature_names.encoder_features(recipe),
        )
        longest = config.bucket_lengths[-1]

        def fits(parsed: dict[str, tf.RaggedTensor]) -> NDArray[np.bool_]:
            sides = [parsed[name].row_lengths() for name in ("source_ids", training_data.LABELS)]
            short: NDArray[np.bool_] = np.max(sides, axis=0) <= longest
            return short

        drawn = draw_pairs(files, names, config.select_pairs or None, fits)
        rows = sorted(drawn, key=lambda pair: int(tf.size(pair["source_ids"])))
        writer = IdWriter(recipe, tf.constant(list(vocabulary)))
        batches, references = [], []
        for start in range(0, len(rows), _BATCH):
            part = rows[start : start + _BATCH]
            batch = {
                name: tf.ragged.stack([row[name] for row in part]).to_tensor(
                    _padding_of(name, part[0][name])
                )
                for name in part[0]
            }
            batches.append(batch)
            targets = tf.ragged.stack([row[training_data.LABELS][:-1] for row in part])
            references += _texts(writer, targets, batch[training_data.SURFACES])
        return cls(config.select_by, recipe, batches, references, writer)

    def measure(self, model: keras.Model) -> float:
        """Returns the metric of the outputs of greedy searches."""
        search = self._search_of(model)
        outputs: list[str] = []
        inputs = ("source_ids", "source_extended_ids", "source_feed_ids")
        names = (*inputs, *feature_names.encoder_features(self.recipe))
        for batch in self.pairs:
            given = {name: batch[name] for name in names}
            if self._has_pieces:
                given["source_continues"] = units.continues_word(batch[training_data.SURFACES])
            tokens, lengths = search(given)
            ragged = tf.RaggedTensor.from_tensor(tokens, lengths=lengths)
            outputs += _texts(self.writer, ragged, batch[training_data.SURFACES])
        texts = ScoredTexts(outputs, self.references)
        options = ScoringOptions.of(self.recipe, bootstrap_samples=0)
        value = scoring.score(self.metric, texts, options)[self.metric].value
        return math.nan if value is None else value

    def _search_of(self, model: keras.Model) -> Search:
        if self._search is None or self._search[0] is not model:
            self._search = model, self._make_search(model)
        return self._search[1]

    @property
    def _has_pieces(self) -> bool:
        return views.rules_of_pieces(self.recipe)

    def _make_search(self, model: keras.Model) -> Search:
        config = self.recipe.decoding
        rules: dict[str, Any] = {}
        if self._has_pieces:
            rules = {
                "copy_whole_words": config.copy_whole_words,
                "max_piece_repeats": config.max_piece_repeats,
                "piece_vocabulary": units.continues_with_letters(self.writer.vocabulary),
            }

        @tf.function(reduce_retracing=True, autograph=False)
        def search(inputs: Mapping[str, tf.Tensor]) -> tuple[tf.Tensor, tf.Tensor]:
            length = tf.shape(inputs["source_ids"])[1]
            # As in the served model; a source beyond its last bucket keeps its length.
            padded = tf.maximum(length, smallest_bucket(length, config.length_buckets))
            found = decoding.decode(
                model,
                inputs,
                max_length=longest_output(padded, config),
                min_length=config.min_length,
                no_repeat_ngram=config.no_repeat_ngram,
                **rules,
            )
            return found.tokens[:, 0], found.lengths[:, 0]

        made: Search = search
        return made


class DecodedMetric(keras.callbacks.Callback):
    """Adds a metric of the eval split's outputs to the logs of each epoch.

    Args:
        pairs: the eval split's.
        selection: whose measure it is.
    """

    def __init__(self, pairs: EvalDecoding, selection: Selection) -> None:
        super().__init__()
        self._pairs = pairs
        self._selection = selection

    def measure(self) -> float:
        """Measures the model as it is."""
        return self._pairs.measure(self.model)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if logs is not None:
            # As Keras' own callbacks do, for those after this one.
            logs[self._selection.log] = self.measure()


def _padding_of(name: str, value: tf.Tensor) -> tf.Tensor:
    if value.dtype == tf.string:
        return tf.constant("")
    return tf.constant(feature_names.PADDING.get(name, 0), value.dtype)


def _texts(writer: IdWriter, ids: tf.RaggedTensor, surfaces: tf.Tensor) -> list[str]:
    """Returns the texts of extended ids, `[N, (T)]`, with the surfaces of their sources."""
    texts = writer.texts_of(ids.to_tensor(), tf.cast(ids.row_lengths(), tf.int32), surfaces)
    return [text.decode() for text in texts.numpy().tolist()]
