"""The served functions of a language model."""

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf
import tensorflow_transform as tft

from keras_models import decoding
from keras_models.decoding.sampling import draw_uniforms
from keras_models.heads.pointer_sentinel_window import NO_WORD
from pipeline.export import buckets, checks, kept_weights, transform_graph
from pipeline.features import language_model_preprocessing, transform_assets
from pipeline.recipes.recipe import Recipe
from pipeline.text import tokenization

#: Tensors by name: features of the Transform graph, and outputs of a signature.
Features = dict[str, tf.RaggedTensor]
Outputs = dict[str, tf.Tensor]

_TEXTS = tf.TensorSpec([None], tf.string)
_CONTINUED_TYPES = {
    "tokens": tf.int32,
    "log_probs": tf.float32,
    "copied_from": tf.int32,
    "copy_probability": tf.float32,
}
_RAW = (("text", tf.string), ("context", tf.int64), ("order", tf.int64))


class LanguageModelModule(tf.Module):
    """The served functions of a language model.

    Strings and tables stay outside the function that XLA compiles; it is compiled at most once for
    each pair of buckets.
    """

    model: keras.Model

    def __init__(
        self, model: keras.Model, transform_output: tft.TFTransformOutput, recipe: Recipe
    ) -> None:
        super().__init__(name="verbatim_language_model")
        kept_weights.keep(self, model)
        self.transform = transform_graph.TransformGraph(transform_output)
        self.buckets = buckets.Buckets.of(recipe.decoding)
        self.config = recipe.language_model
        self.seed = recipe.training.seed
        self.vocabulary = tf.constant(
            transform_assets.read_vocabulary(
                transform_output, language_model_preprocessing.VOCABULARY_FILE
            )
        )
        # The only special token that is ever written is the end of a sentence.
        special = tf.range(tf.size(self.vocabulary)) < len(tokenization.SPECIAL_TOKENS) - 1
        self.forbidden = special & (tf.range(tf.size(self.vocabulary)) != tokenization.END_ID)
        self.continue_xla = tf.function(self._continue, jit_compile=True, autograph=False)
        # Words that the pointer sees, none under a softmax.
        self.window = model.window if model.points else 0

    def _features(self, texts: tf.Tensor) -> Features:
        column = tf.expand_dims(texts, -1)
        raw = {
            name: column if dtype == tf.string else tf.zeros_like(column, dtype)
            for name, dtype in _RAW
        }
        features = self.transform(raw)
        ragged = {
            name: tf.RaggedTensor.from_sparse(features[name])
            for name in language_model_preprocessing.FEATURES
        }
        return {
            name: value if value.dtype == tf.string else tf.cast(value, tf.int32)
            for name, value in ragged.items()
        }

    def _check(self, lengths: tf.Tensor) -> None:
        longest = self.buckets.length[-1]
        checks.check_lengths("text", "word", lengths, longest, note=", line ends included")

    # Ids to ids.

    def _score(self, ids: tf.Tensor, lengths: tf.Tensor) -> Outputs:
        start = tf.fill([tf.shape(ids)[0], 1], tokenization.END_ID)
        # A row that is padding is read as one word, so that its numbers are finite.
        inputs = tf.concat([start, ids[:, :-1]], axis=1)
        log_probs, _ = self.model(inputs, targets=ids, training=False)
        inside = tf.range(tf.shape(ids)[1]) < lengths[:, tf.newaxis]
        return {"log_probability": tf.where(inside, log_probs, 0.0)}

    def _continue(self, ids: tf.Tensor, extended_ids: tf.Tensor, lengths: tf.Tensor) -> Outputs:
        uniforms = None
        if self.config.temperature:
            words = self.config.continuation_tokens
            uniforms = draw_uniforms(self.seed, tf.shape(ids)[0], 1, words)[:, 0, :words]
        return decoding.continue_text(
            self.model,
            ids,
            extended_ids,
            tf.maximum(lengths, 1),
            self.config.continuation_tokens,
            forbidden=self.forbidden,
            uniforms=uniforms,
            temperature=self.config.temperature or 1.0,
            top_k=self.config.top_k,
            top_p=self.config.top_p,
        )

    # Text to text.

    def _continued(
        self, texts: tf.Tensor, function: Callable[[tf.Tensor, tf.Tensor, tf.Tensor], Outputs]
    ) -> Outputs:
        features = self._features(texts)
        self._check(features["ids"].row_lengths())
        answers = buckets.map_in_buckets(
            function,
            [features["ids"], features["extended_ids"]],
            self.buckets,
            buckets.OutputSpec(_CONTINUED_TYPES),
        )
        size = tf.size(self.vocabulary)
        source = features["tokens"].to_tensor("")
        position = tf.clip_by_value(answers["tokens"] - size, 0, tf.shape(source)[1] - 1)
        known = tf.gather(self.vocabulary, tf.minimum(answers["tokens"], size - 1))
        tokens = tf.where(
            answers["tokens"] < size, known, tf.gather(source, position, batch_dims=1)
        )
        return {
            "text": language_model_preprocessing.detokenize(tf.RaggedTensor.from_tensor(tokens)),
            "tokens": tokens,
            "copied_from": answers["copied_from"],
            "copy_probability": answers["copy_probability"],
            "log_probability": answers["log_probs"],
            "text_tokens": source,
        }

    def _stream(
        self, text: tf.Tensor, context: tf.Tensor, states: tf.Tensor, window: tf.Tensor
    ) -> Outputs:
        lengths = self._features(text)["ids"].row_lengths()
        self._check(lengths)
        checks.check(
            tf.equal(tf.size(text), tf.size(context)),
            "There are {} texts and {} contexts; give one context per text.",
            tf.size(text),
            tf.size(context),
        )
        # What was read before and what is new as one text: a word has the same extended id in both.
        features = self._features(tf.strings.join([context, text], separator=" "))
        before = tf.cast(features["ids"].row_lengths() - lengths, tf.int32)
        lengths = tf.cast(lengths, tf.int32)
        # The context ends where the texts begin; its last word has not been fed yet.
        left, longest = self.window + 1, tf.reduce_max(lengths)
        places = tf.range(left + longest) - tf.expand_dims(left - before, 1)
        inside = (places >= 0) & (places < tf.expand_dims(before + lengths, 1))

        def aligned(ragged: tf.RaggedTensor) -> tf.Tensor:
            dense = ragged.to_tensor()
            last = tf.shape(dense)[1] - 1
            taken = tf.gather(dense, tf.clip_by_value(places, 0, last), batch_dims=1)
            return tf.where(inside, taken, NO_WORD)

        ids, extended = aligned(features["ids"]), aligned(features["extended_ids"])
        credited = self._credited(ids, extended)
        read, targets = slice(left - 1, left - 1 + longest), slice(left, left + longest)
        # Two rows of the model for each text: all unknown words are one, and each is itself.
        log_probs, carry = self.model(
            tf.maximum(tf.concat([ids[:, read], ids[:, read]], axis=0), 0),
            self._carry(states, window, ids, extended),
            targets=tf.maximum(tf.concat([ids[:, targets], credited[:, targets]], axis=0), 0),
            extended_ids=tf.concat([ids[:, read], extended[:, read]], axis=0),
            lengths=tf.concat([lengths, lengths], axis=0),
            training=False,
        )
        number = tf.size(lengths)
        inside = tf.range(longest) < tf.expand_dims(lengths, 1)
        log_probs = tf.where(tf.concat([inside, inside], axis=0), log_probs, 0.0)
        last_words = features["tokens"][:, -left:]
        states = tf.stack([tf.stack(layer, axis=1) for layer in carry["states"]], axis=1)
        if self.model.points:
            window = tf.cast(carry["window"]["states"][:number], tf.float32)
        return {
            "log_probability": log_probs[:number],
            "log_probability_with_copies": log_probs[number:],
            "unknown": inside & (extended[:, targets] >= tf.size(self.vocabulary)),
            "token_count": lengths,
            "context": tf.strings.reduce_join(last_words, axis=-1, separator=" "),
            "states": tf.cast(states[:number], tf.float32),
            "window": window,
        }

    def _credited(self, ids: tf.Tensor, extended: tf.Tensor) -> tf.Tensor:
        """Returns the ids that words are scored by; a word without an id may be copied.

        It may be from the window that its step sees; the step that is fed place p sees
        p - L + 1 .. p.
        """
        place = tf.range(tf.shape(ids)[1])
        seen = (place < tf.expand_dims(place, 1)) & (
            place >= tf.expand_dims(place - self.window, 1)
        )
        stands = seen & (tf.expand_dims(extended, 2) == tf.expand_dims(extended, 1))
        return tf.where(tf.reduce_any(stands, axis=2), extended, ids)

    def _carry(
        self, states: tf.Tensor, window: tf.Tensor, ids: tf.Tensor, extended: tf.Tensor
    ) -> dict[str, Any]:
        """Returns what the model carries, with two rows for each text."""
        dtype = self.model.compute_dtype
        states = tf.concat([states, states], axis=0)
        carry: dict[str, Any] = {
            "states": [
                [tf.cast(states[:, layer, kind], dtype) for kind in range(2)]
                for layer in range(len(self.model.lstms))
            ]
        }
        if self.model.points:
            carry["window"] = {
                "states": tf.cast(tf.concat([window, window], axis=0), dtype),
                "words": tf.concat([ids[:, : self.window], extended[:, : self.window]], axis=0),
            }
        return carry

    # Signatures. TensorFlow binds input signatures to methods whose first argument is called self.

    @tf.function(input_signature=[_TEXTS], autograph=False)
    def score(self, text: tf.Tensor) -> Outputs:
        features = self._features(text)
        lengths = features["ids"].row_lengths()
        self._check(lengths)
        scored = buckets.map_in_buckets(
            self._score,
            [features["ids"]],
            self.buckets,
            buckets.OutputSpec({"log_probability": tf.float32}, ("log_probability",)),
        )
        return {
            "log_probability": scored["log_probability"][:, : tf.reduce_max(lengths)],
            "tokens": features["tokens"].to_tensor(""),
            "token_count": tf.cast(lengths, tf.int32),
        }

    @property
    def score_stream(self) -> Callable[..., Outputs]:
        """The function of a text and the carried state.

        It is a property, because its shapes are the model's.
        """
        shapes = {
            "states": [None, len(self.model.lstms), 2, self.model.hidden_size],
            "window": [None, self.window, self.model.hidden_size],
        }
        specs = [tf.TensorSpec([None], tf.string, name=name) for name in ("text", "context")]
        specs += [tf.TensorSpec(shape, tf.float32, name=name) for name, shape in shapes.items()]
        return tf.function(self._stream, input_signature=specs, autograph=False)

    @tf.function(input_signature=[_TEXTS], autograph=False)
    def continue_text(self, text: tf.Tensor) -> Outputs:
        return self._continued(text, self.continue_xla)

    @tf.function(input_signature=[_TEXTS], autograph=False)
    def continue_text_no_xla(self, text: tf.Tensor) -> Outputs:
        return self._continued(text, self._continue)
