"""The middle of a served model: ids to ids, compiled by XLA."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf
import tensorflow_transform as tft

from keras_models import decoding
from keras_models.decoding.sampling import draw_uniforms
from keras_models.layers.shortlist import choose_words
from pipeline.common.traced_once import TracedOnce
from pipeline.export import buckets, kept_weights
from pipeline.export.text_encoder import Features
from pipeline.features import (
    feature_names,
    protected_classes,
    protected_roles,
    transform_assets,
)
from pipeline.features.written_ids import longest_output
from pipeline.recipes import views
from pipeline.recipes.recipe import Recipe
from pipeline.text import characters, tokenization, units

DECODER_INPUTS = ("source_ids", "source_extended_ids", "source_feed_ids", "source_protected")
ORDER_INPUTS = ("source_roles", "source_links")
WORD_INPUTS = ("source_continues",)
# The most bytes of tables beside the weights that make decoding faster.
LARGEST_TABLES = 2**28
# Whether the tables of one text's search have the kernels in panels. XLA computes their parts side
# by side from this TensorFlow on; before it one product of the whole kernel is as fast or faster.
PANELS_ARE_FASTER = tuple(map(int, tf.__version__.split(".")[:2])) >= (2, 21)
#: The outputs of a search without attention matrices.
HYPOTHESES_TYPES = {
    "tokens": tf.int32,
    "lengths": tf.int32,
    "scores": tf.float32,
    "log_probs": tf.float32,
    "copied_from": tf.int32,
    "copy_probability": tf.float32,
}
# Those whose last axis is time.
_SEQUENCES = ("tokens", "copied_from", "copy_probability")

#: The fields of `decoding.Hypotheses` by name.
Hypotheses = dict[str, tf.Tensor]


class Decoder(tf.Module):
    """Searches for the answers of a trained model.

    Inputs are padded to a bucket in both batch and length, so the search is compiled at most once
    per pair of buckets. A batch beyond the largest bucket is decoded in chunks of it, texts of
    similar length together.

    Args:
        model: the trained model.
        transform_output: the Transform graph of its features.
        recipe: the `Recipe`.
        vocabulary: string `[V]`, the target's.
    """

    def __init__(
        self,
        model: keras.Model,
        transform_output: tft.TFTransformOutput,
        recipe: Recipe,
        vocabulary: tf.Tensor,
    ) -> None:
        super().__init__(name="decoder")
        self.model: keras.Model
        kept_weights.keep(self, model)
        self.config = recipe.decoding
        self.seed = recipe.training.seed
        order = ORDER_INPUTS if self.config.keep_protected else ()
        self._has_pieces = views.rules_of_pieces(recipe)
        words = WORD_INPUTS if self._has_pieces else ()
        encoder = feature_names.encoder_features(recipe)
        self.inputs = (*DECODER_INPUTS, *order, *words, *encoder)
        self._vocabulary_size = vocabulary.shape[0]
        # Variables, because a constant would be part of every signature's graph.
        self.tables = {
            name: tf.Variable(table, trainable=False) for name, table in self._make_tables().items()
        }
        self.shortlist_lexicon = []
        if self.config.shortlist_size:
            lexicon = transform_assets.read_lexicon(transform_output)
            self.shortlist_lexicon = [tf.Variable(part, trainable=False) for part in lexicon]
            if feature_names.LEXICON_ROWS not in self.inputs:
                self.inputs += (feature_names.LEXICON_ROWS,)
        # The characters of a word have as many places for each.
        self._widths = [
            recipe.model.word_length if name == characters.FEATURE else 1 for name in self.inputs
        ]
        # The graphs that several signatures share.
        self._once = TracedOnce(self._decode)
        self._among_all_once = TracedOnce(self._decode_among_all)
        # The classes of unknown protected tokens are only inputs: no source owes them, so they are
        # never output.
        syntax = tokenization.Tokenizer.of(recipe.data).syntax
        classes = tf.constant(sorted({name for name, _ in syntax.classes}))
        is_class = tf.reduce_any(vocabulary[:, tf.newaxis] == classes, axis=1)
        self._protected_vocabulary = protected_classes.is_protected(vocabulary, syntax) | is_class
        if self._has_pieces:
            self._piece_vocabulary = units.continues_with_letters(vocabulary)
        # A replacement of [UNK] may be a joiner.
        self._blank_vocabulary = protected_roles.is_blank(vocabulary) | (
            vocabulary == tokenization.UNK
        )

    def _make_tables(self) -> dict[str, tf.Tensor]:
        """Returns what makes decoding faster: all tables, those without panels, or none."""
        wants_panels = PANELS_ARE_FASTER and 1 in self.config.batch_buckets
        for few_rows in (True, False) if wants_panels else (False,):
            tables: dict[str, tf.Tensor] = self.model.decoding_tables(
                shortlist=bool(self.config.shortlist_size), few_rows=few_rows
            )
            sizes = [table.dtype.size * table.shape.num_elements() for table in tables.values()]
            if sum(sizes) <= LARGEST_TABLES:
                return tables
        return {}

    def dense_inputs(self, features: Features) -> dict[str, tf.Tensor]:
        """Returns the features that the decoder reads, padded to the longest text."""
        return {name: features[name].to_tensor() for name in self.inputs}

    def decode(self, features: Features, compiled: bool) -> Hypotheses:
        """Decodes; with a shortlist, decodes uncertain answers again among all words.

        The second search does not use XLA: its batch size is unknown beforehand, and a request must
        not wait for a compilation.
        """
        search: Callable[..., Hypotheses] = self._once
        if compiled:
            search = tf.function(search, jit_compile=True, autograph=False)
            search = _with_one_alone(search, self.config.batch_buckets)
        hypotheses = self._decode_in_buckets(features, search)
        if not self._asks_again:
            return hypotheses
        rows = tf.where(self._is_unsure(hypotheses))[:, 0]

        def among_all() -> Hypotheses:
            unsure = {name: tf.gather(features[name], rows) for name in self.inputs}
            return buckets.scatter_rows(
                hypotheses, rows, self._decode_in_buckets(unsure, self._among_all_once), _SEQUENCES
            )

        return tf.cond(tf.size(rows) > 0, among_all, lambda: hypotheses)

    def explain(self, features: Features) -> Hypotheses:
        """Decodes as `decode` does, not compiled, and returns attention too."""
        inputs = self.dense_inputs(features)
        hypotheses = self._search(
            inputs, return_attention=True, shortlist=self._shortlist(*inputs.values())
        )
        if not self._asks_again:
            return hypotheses
        unsure = self._is_unsure(hypotheses)
        among_all = self._search(inputs, return_attention=True)
        return {
            name: tf.where(
                tf.reshape(unsure, [-1] + [1] * (value.shape.rank - 1)), among_all[name], value
            )
            for name, value in hypotheses.items()
        }

    @property
    def _asks_again(self) -> bool:
        """Whether uncertain answers are searched again among all words."""
        return bool(self.config.shortlist_size and self.config.shortlist_confidence)

    def _decode(self, *inputs: tf.Tensor) -> Hypotheses:
        return self._search(dict(zip(self.inputs, inputs)), shortlist=self._shortlist(*inputs))

    def _decode_among_all(self, *inputs: tf.Tensor) -> Hypotheses:
        return self._search(dict(zip(self.inputs, inputs)))

    def _shortlist(self, *inputs: tf.Tensor) -> tf.Tensor | None:
        """Returns the shortlist of each source, `[batch, N]`; None for all words."""
        if not 0 < self.config.shortlist_size < self._vocabulary_size:
            return None
        named = dict(zip(self.inputs, inputs))
        lexicon = [
            tf.gather(part, named[feature_names.LEXICON_ROWS]) for part in self.shortlist_lexicon
        ]
        return choose_words(
            named["source_extended_ids"],
            self._vocabulary_size,
            self.config.shortlist_size,
            *lexicon,
        )

    def _search(
        self,
        inputs: Mapping[str, tf.Tensor],
        return_attention: bool = False,
        shortlist: tf.Tensor | None = None,
    ) -> Hypotheses:
        batch, source_length = tf.unstack(tf.shape(inputs["source_ids"]))
        max_length = longest_output(source_length, self.config)
        drawing: dict[str, Any] = {}
        if self.config.temperature:
            drawing["sampling"] = {
                name: getattr(self.config, name) for name in ("temperature", "top_k", "top_p")
            }
            drawing["uniforms"] = draw_uniforms(self.seed, batch, self.config.n_best, max_length)
        hypotheses = decoding.decode(
            self.model,
            inputs,
            max_length=max_length,
            beam_size=self.config.beam_size,
            n_best=self.config.n_best,
            min_length=self.config.min_length,
            length_alpha=self.config.length_penalty,
            coverage_beta=self.config.coverage_penalty,
            **(self._kept_words() if self.config.keep_protected else {}),
            **(self._rules_of_pieces() if self._has_pieces else {}),
            return_attention=return_attention,
            replace_unknown=self.config.replace_unknown != "none",
            no_repeat_ngram=self.config.no_repeat_ngram,
            length_unit=self.config.length_unit,
            shortlist=shortlist,
            # Few texts are explained at a time.
            compact=not return_attention,
            tables={name: tf.convert_to_tensor(table) for name, table in self.tables.items()},
            **drawing,
        )
        return {name: value for name, value in hypotheses._asdict().items() if value is not None}

    def _kept_words(self) -> dict[str, tf.Tensor]:
        return {
            "protected_vocabulary": self._protected_vocabulary,
            "blank_vocabulary": self._blank_vocabulary,
        }

    def _rules_of_pieces(self) -> dict[str, Any]:
        return {
            "copy_whole_words": self.config.copy_whole_words,
            "max_piece_repeats": self.config.max_piece_repeats,
            "piece_vocabulary": self._piece_vocabulary,
        }

    def _decode_in_buckets(
        self, features: Features, decode: Callable[..., Hypotheses]
    ) -> Hypotheses:
        """Pads to buckets, decodes chunk by chunk, and cuts the padding off again."""
        return buckets.map_in_buckets(
            # The mask is computed from the ids.
            lambda *inputs: decode(*inputs[:-1]),
            [features[name] for name in self.inputs],
            buckets.Buckets.of(self.config),
            buckets.OutputSpec(
                HYPOTHESES_TYPES, _SEQUENCES, lambda length: longest_output(length, self.config)
            ),
            self._widths,
        )

    def _is_unsure(self, hypotheses: Hypotheses) -> tf.Tensor:
        """Returns whether the best answers' tokens have too small a mean probability: bool `[N]`.

        The end is one of the tokens.
        """
        mean = hypotheses["log_probs"][:, 0] / tf.cast(hypotheses["lengths"][:, 0] + 1, tf.float32)
        return tf.exp(mean) < self.config.shortlist_confidence


def _with_one_alone(
    search: Callable[..., Hypotheses], batches: Sequence[int]
) -> Callable[..., Hypotheses]:
    """Returns the same search, with a graph of its own for a batch of one text.

    A search of several texts has a second loop, for the texts that are left when half have ended.
    For one text it would only take time and memory to compile. Also, its few hypotheses are
    multiplied by kernels that stand in panels. Without XLA there is nothing to compile, and panels
    are slower.

    Args:
        search: of `[batch, length]` tensors.
        batches: the numbers of rows that it is called with.
    """
    if 1 not in batches:
        return search

    def of_one(*inputs: tf.Tensor) -> Hypotheses:
        return search(*(tf.ensure_shape(part, [1, *part.shape[1:]]) for part in inputs))

    def of_batch(*inputs: tf.Tensor) -> Hypotheses:
        is_one = tf.equal(tf.shape(inputs[0])[0], 1)
        return tf.cond(is_one, lambda: of_one(*inputs), lambda: search(*inputs))

    return of_one if len(batches) == 1 else of_batch
