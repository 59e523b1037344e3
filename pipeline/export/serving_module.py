"""The served functions of a sequence-to-sequence model."""

import dataclasses
import functools
from collections.abc import Callable, Sequence

import keras
import tensorflow as tf
import tensorflow_transform as tft

from pipeline.common.traced_once import TracedOnce
from pipeline.export import long_texts
from pipeline.export.answer_writer import AnswerWriter, Outputs, best
from pipeline.export.decoder import HYPOTHESES_TYPES, Decoder
from pipeline.export.long_texts import DROPPED, OF_TEXTS
from pipeline.export.pass_through import PassThrough
from pipeline.export.text_encoder import Features, TextEncoder
from pipeline.features import feature_names, transform_assets, vocabulary_files
from pipeline.recipes import views
from pipeline.recipes.recipe import Recipe
from pipeline.text import tokenization, white_space


@dataclasses.dataclass(frozen=True)
class _Read:
    """What is answered: M texts, or parts of texts.

    Attributes:
        source: string `[M]`, without white space at the ends.
        before, behind: string `[M]`, that white space.
        features: theirs.
        splits: int64 `[N + 1]`, the row splits of the parts of N texts; None if they are whole.
    """

    source: tf.Tensor
    before: tf.Tensor
    behind: tf.Tensor
    features: Features
    splits: tf.Tensor | None = None


class ServingModule(tf.Module):
    """The served functions of a model.

    Answers have the white space around their source.

    Strings and tables stay outside the function that XLA compiles: see `TextEncoder`, `Decoder` and
    `AnswerWriter`.

    Args:
        model: the trained model.
        transform_output: the Transform graph of its features.
        recipe: the `Recipe`.
    """

    def __init__(
        self, model: keras.Model, transform_output: tft.TFTransformOutput, recipe: Recipe
    ) -> None:
        super().__init__(name="verbatim")
        vocabulary = tf.constant(
            transform_assets.read_vocabulary(
                transform_output, vocabulary_files.TARGET_VOCABULARY_FILE
            )
        )
        takes_terms = recipe.decoding.keep_protected and model.head.copies
        self.encoder = TextEncoder(transform_output, recipe, takes_terms)
        self.decoder = Decoder(model, transform_output, recipe, vocabulary)
        self.writer = AnswerWriter(recipe, vocabulary)
        self.pass_through = PassThrough(recipe)
        self._splits = recipe.decoding.long_texts == "split"
        self._segments = views.segments(recipe)
        self._score_inputs = (
            *feature_names.ID_FEATURES,
            *feature_names.label_features(recipe),
            *feature_names.encoder_features(recipe),
        )
        # The graphs that several signatures share.
        self._compiled = TracedOnce(functools.partial(self._predicted, True))
        self._uncompiled = TracedOnce(functools.partial(self._predicted, False))
        self._answers = TracedOnce(self._written_answers)

    # Signatures; `signature` makes a function of strings of each.

    def serving_default(self, source: tf.Tensor, *columns: tf.Tensor) -> Outputs:
        """Returns the best answer of each source."""
        return best(self._predict(source, *columns, compiled=True))

    def serving_default_no_xla(self, source: tf.Tensor, *columns: tf.Tensor) -> Outputs:
        """Returns the same as `serving_default`, not compiled."""
        return best(self._predict(source, *columns, compiled=False))

    def n_best(self, source: tf.Tensor, *columns: tf.Tensor) -> Outputs:
        """Returns the `n_best` answers of each source."""
        return self._predict(source, *columns, compiled=True)

    def n_best_no_xla(self, source: tf.Tensor, *columns: tf.Tensor) -> Outputs:
        """Returns the same as `n_best`, not compiled."""
        return self._predict(source, *columns, compiled=False)

    def explain(self, source: tf.Tensor, *columns: tf.Tensor) -> Outputs:
        """Returns the best answer of each source, and its attention; not compiled."""
        read = self._read(source, columns)
        features = read.features
        hypotheses = self.decoder.explain(features)
        answers = {
            name: value if name in OF_TEXTS else value[:, :1]
            for name, value in self._answers_of_parts(read, hypotheses).items()
        }
        attention = hypotheses["attention"][:, 0]
        if self._segments:
            words, number = self._found_words(features)
            member = tf.one_hot(number.to_tensor(-1), tf.cast(words.bounding_shape()[1], tf.int32))
            attention = tf.matmul(attention, member)
        passes, width = self.pass_through.passes(features), tf.shape(answers["tokens"])[2]
        attention = self.pass_through.attention(attention, passes, width)
        if read.splits is not None:
            attention = long_texts.joined_attention(
                attention, answers["tokens"][:, 0], answers["source_tokens"], read.splits
            )
        return {**best(self._joined(read, answers)), "attention": attention}

    def score(self, source: tf.Tensor, target: tf.Tensor, *columns: tf.Tensor) -> Outputs:
        """Returns the log-probability of each target, and its number of tokens."""
        _, source, _ = white_space.split_outer(source)
        _, target, _ = white_space.split_outer(target)
        features = self.encoder.of_pairs(source, target, columns)
        inputs = {
            name: features[name].to_tensor(feature_names.PADDING.get(name, 0))
            for name in self._score_inputs
        }
        log_prob = self.decoder.model(inputs, training=False)
        inside = tf.not_equal(inputs["target_extended_ids"], tokenization.PAD_ID)
        return {
            "log_probability": tf.reduce_sum(tf.where(inside, log_prob, 0.0), axis=1),
            "token_count": tf.cast(features["target_extended_ids"].row_lengths(), tf.int32),
        }

    def examples(self, examples: tf.Tensor) -> Outputs:
        """Returns the best answer of each serialized `tf.Example`, as `serving_default` does.

        Each example has the features `source` and, if the model takes tags, those of its columns.
        `text` is `[N, 1]`: TFX's BulkInferrer cannot read strings of one axis.
        """
        names = ("source", *self.encoder.columns)
        spec = {name: tf.io.FixedLenFeature([], tf.string) for name in names}
        read = tf.io.parse_example(examples, spec)
        outputs = self.serving_default(*(read[name] for name in names))
        return {**outputs, "text": outputs["text"][:, tf.newaxis]}

    def signature(self, name: str) -> Callable[..., Outputs]:
        """Returns the signature of that name.

        It is a function of string tensors `[N]`, the columns of tags last.
        """
        specs = self._specs(*(("source", "target") if name == "score" else ("source",)))
        if name == "examples":
            specs = [tf.TensorSpec([None], tf.string, name="examples")]
        function: Callable[..., Outputs] = tf.function(
            getattr(self, name), input_signature=specs, autograph=False
        )
        return function

    def _specs(self, *texts: str) -> list[tf.TensorSpec]:
        names = (*texts, *self.encoder.columns)
        return [tf.TensorSpec([None], tf.string, name=name) for name in names]

    def _predict(self, source: tf.Tensor, *columns: tf.Tensor, compiled: bool) -> Outputs:
        """Returns the `n_best` answers, by a graph that all signatures share."""
        return (self._compiled if compiled else self._uncompiled)(source, *columns)

    def _predicted(self, compiled: bool, source: tf.Tensor, *columns: tf.Tensor) -> Outputs:
        read = self._read(source, columns)
        hypotheses = self.decoder.decode(read.features, compiled)
        return self._joined(read, self._answers_of_parts(read, hypotheses))

    def _read(self, source: tf.Tensor, columns: Sequence[tf.Tensor]) -> _Read:
        before, source, behind = white_space.split_outer(source)
        if not self._splits:
            return _Read(source, before, behind, self.encoder.of_sources(source, columns))
        parts, features = self.encoder.of_sentences(source)
        rows, splits = parts.value_rowids(), parts.row_splits
        places = tf.range(tf.size(rows, tf.int64))
        is_first = tf.equal(places, tf.gather(splits[:-1], rows))
        is_last = tf.equal(places, tf.gather(splits[1:], rows) - 1)
        own_before, texts, own_behind = white_space.split_outer(parts.flat_values)
        before = tf.where(is_first, tf.gather(before, rows), "") + own_before
        behind = own_behind + tf.where(is_last, tf.gather(behind, rows), "")
        return _Read(texts, before, behind, features, splits)

    def _answers_of_parts(self, read: _Read, hypotheses: dict[str, tf.Tensor]) -> Outputs:
        """Returns the answers of what was read, with the white space around it."""
        hypotheses = {name: hypotheses[name] for name in HYPOTHESES_TYPES}
        return self._answers(read.source, read.before, read.behind, read.features, hypotheses)

    def _written_answers(
        self,
        source: tf.Tensor,
        before: tf.Tensor,
        behind: tf.Tensor,
        features: Features,
        hypotheses: dict[str, tf.Tensor],
    ) -> Outputs:
        tokens = self._found_words(features)[0] if self._segments else features["source_tokens"]
        answers = self.writer.answers(
            hypotheses, tokens.to_tensor(""), features["source_copy_tokens"].to_tensor("")
        )
        answers["unknown_not_copied"] = self.pass_through.lost(features, hypotheses)
        if DROPPED in features:
            answers[DROPPED] = features[DROPPED]
        passes = self.pass_through.passes(features)
        copied = self.writer.copied_texts(source, tokens)
        answers = self.pass_through.apply(copied, tokens, passes, answers)
        return _with_outer(answers, before, behind)

    def _joined(self, read: _Read, answers: Outputs) -> Outputs:
        """Returns the answers of whole texts."""
        return answers if read.splits is None else long_texts.joined(answers, read.splits)

    def _found_words(self, features: Features) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
        """Returns the words that a segmenting encoder finds.

        Returns:
            Ragged string `[N, (words)]`, and ragged `[N, (characters)]`, the number of each
            character's word.
        """
        tokens = features["source_tokens"]
        is_end = self.decoder.model.segment(self.decoder.dense_inputs(features))
        ends = tf.cast(tf.RaggedTensor.from_tensor(is_end, tokens.row_lengths()), tf.int64)
        number = tf.cumsum(ends.flat_values, exclusive=True)
        words = tf.strings.unsorted_segment_join(
            tokens.flat_values, number, tf.reduce_sum(ends.flat_values)
        )
        words = tf.RaggedTensor.from_row_lengths(words, tf.reduce_sum(ends, axis=1), validate=False)
        first = tf.gather(words.row_starts(), tokens.value_rowids())
        return words, tokens.with_flat_values(number - first)


def _with_outer(answers: Outputs, before: tf.Tensor, behind: tf.Tensor) -> Outputs:
    """Returns answers with the white space of their sources around the texts.

    Args:
        answers: of N texts, K each.
        before, behind: string `[N]`.
    """
    # `tf.strings.join` does not broadcast.
    text = before[:, tf.newaxis] + answers["text"] + behind[:, tf.newaxis]
    return {**answers, "text": text}
