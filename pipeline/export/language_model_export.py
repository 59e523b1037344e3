"""Exports a trained language model as a SavedModel that takes raw text.

The signatures are listed in `docs/architecture.md`. As for the other models, the Transform graph
that made the training features is part of the SavedModel, inputs are padded to buckets, and only
core and tf.text operations are used.
"""

import json
import os

import tensorflow as tf

from keras_models import decoding
from keras_models.decoding.sampling import draw_uniforms
from keras_models.heads.pointer_sentinel import NO_WORD
from pipeline.export import buckets, checks, kept_weights, transform_graph
from pipeline.export.seq2seq_export import (
    EXTRA_DIRECTORY,
    FACTS_FILE,
    WARMUP_FILE,
    own_version,
    write_warmup,
)
from pipeline.features import language_model_preprocessing, preprocessing
from pipeline.text import tokenization

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

    def __init__(self, model, transform_output, recipe):
        super().__init__(name="verbatim_language_model")
        kept_weights.keep(self, model)
        self.transform = transform_graph.TransformGraph(transform_output)
        self.buckets = recipe.decoding
        self.config = recipe.language_model
        self.seed = recipe.training.seed
        self.vocabulary = tf.constant(
            preprocessing.read_vocabulary(
                transform_output, language_model_preprocessing.VOCABULARY_FILE
            )
        )
        # Of the special tokens only the end of a sentence is ever written.
        special = tf.range(tf.size(self.vocabulary)) < len(tokenization.SPECIAL_TOKENS) - 1
        self.forbidden = special & (tf.range(tf.size(self.vocabulary)) != tokenization.END_ID)
        self.continue_xla = tf.function(self._continue, jit_compile=True, autograph=False)
        # Words that the pointer sees, none under a softmax.
        self.window = model.window if model.points else 0

    def _features(self, texts):
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

    def _check(self, lengths):
        checks.check_lengths(
            "text", "word", lengths, self.buckets.length_buckets[-1], note=", line ends included"
        )

    # Ids to ids.

    def _score(self, ids, lengths):
        start = tf.fill([tf.shape(ids)[0], 1], tokenization.END_ID)
        # A row that is padding is read as one word, so that its numbers are finite.
        inputs = tf.concat([start, ids[:, :-1]], axis=1)
        log_probs, _ = self.model(inputs, targets=ids, training=False)
        inside = tf.range(tf.shape(ids)[1]) < lengths[:, tf.newaxis]
        return {"log_probability": tf.where(inside, log_probs, 0.0)}

    def _continue(self, ids, extended_ids, lengths):
        uniforms = None
        if self.config.temperature:
            uniforms = draw_uniforms(
                self.seed, tf.shape(ids)[0], 1, self.config.continuation_tokens
            )[:, 0]
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

    def _continued(self, texts, function):
        features = self._features(texts)
        self._check(features["ids"].row_lengths())
        found = buckets.map_in_buckets(
            function,
            [features["ids"], features["extended_ids"]],
            self.buckets.batch_buckets,
            self.buckets.length_buckets,
            _CONTINUED_TYPES,
        )
        size = tf.size(self.vocabulary)
        source = features["tokens"].to_tensor("")
        position = tf.clip_by_value(found["tokens"] - size, 0, tf.shape(source)[1] - 1)
        known = tf.gather(self.vocabulary, tf.minimum(found["tokens"], size - 1))
        tokens = tf.where(found["tokens"] < size, known, tf.gather(source, position, batch_dims=1))
        return {
            "text": language_model_preprocessing.detokenize(tf.RaggedTensor.from_tensor(tokens)),
            "tokens": tokens,
            "copied_from": found["copied_from"],
            "copy_probability": found["copy_probability"],
            "log_probability": found["log_probs"],
            "text_tokens": source,
        }

    def _stream(self, text, context, states, window):
        lengths = self._features(text)["ids"].row_lengths()
        self._check(lengths)
        checks.check(
            tf.equal(tf.size(text), tf.size(context)),
            "There are {} texts and {} contexts; give as many.",
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

        def aligned(ragged):
            dense = ragged.to_tensor()
            taken = tf.gather(
                dense, tf.clip_by_value(places, 0, tf.shape(dense)[1] - 1), batch_dims=1
            )
            return tf.where(inside, taken, NO_WORD)

        ids, extended = aligned(features["ids"]), aligned(features["extended_ids"])
        read, targets = slice(left - 1, left - 1 + longest), slice(left, left + longest)
        # A word without an id may be copied from the window that its step sees; the step that is
        # fed place p sees p - L + 1 .. p.
        place = tf.range(left + longest)
        seen = (place < tf.expand_dims(place, 1)) & (
            place >= tf.expand_dims(place - self.window, 1)
        )
        stands = seen & (tf.expand_dims(extended, 2) == tf.expand_dims(extended, 1))
        credited = tf.where(tf.reduce_any(stands, axis=2), extended, ids)
        # Two rows of the model for each text: all unknown words are one, and each is itself.
        carry = {"states": []}
        states = tf.concat([states, states], axis=0)
        for layer in range(len(self.model.lstms)):
            carry["states"].append(
                [tf.cast(states[:, layer, kind], self.model.compute_dtype) for kind in range(2)]
            )
        if self.model.points:
            carry["window"] = {
                "states": tf.cast(tf.concat([window, window], axis=0), self.model.compute_dtype),
                "words": tf.concat([ids[:, : self.window], extended[:, : self.window]], axis=0),
            }
        log_probs, carry = self.model(
            tf.maximum(tf.concat([ids[:, read], ids[:, read]], axis=0), 0),
            carry,
            targets=tf.maximum(tf.concat([ids[:, targets], credited[:, targets]], axis=0), 0),
            extended_ids=tf.concat([ids[:, read], extended[:, read]], axis=0),
            lengths=tf.concat([lengths, lengths], axis=0),
            training=False,
        )
        number = tf.size(lengths)
        inside = tf.range(longest) < tf.expand_dims(lengths, 1)
        log_probs = tf.where(tf.concat([inside, inside], axis=0), log_probs, 0.0)
        tokens = features["tokens"]
        kept = tf.strings.reduce_join(tokens[:, -left:], axis=-1, separator=" ")
        states = tf.stack([tf.stack(layer, axis=1) for layer in carry["states"]], axis=1)
        if self.model.points:
            window = tf.cast(carry["window"]["states"][:number], tf.float32)
        return {
            "log_probability": log_probs[:number],
            "log_probability_with_copies": log_probs[number:],
            "unknown": inside & (extended[:, targets] >= tf.size(self.vocabulary)),
            "token_count": lengths,
            "context": kept,
            "states": tf.cast(states[:number], tf.float32),
            "window": window,
        }

    # Signatures. TensorFlow binds input signatures to methods whose first argument is called self.

    @tf.function(input_signature=[_TEXTS], autograph=False)
    def score(self, text):
        features = self._features(text)
        lengths = features["ids"].row_lengths()
        self._check(lengths)
        scored = buckets.map_in_buckets(
            self._score,
            [features["ids"]],
            self.buckets.batch_buckets,
            self.buckets.length_buckets,
            {"log_probability": tf.float32},
            sequences=("log_probability",),
        )
        return {
            "log_probability": scored["log_probability"][:, : tf.reduce_max(lengths)],
            "tokens": features["tokens"].to_tensor(""),
            "token_count": tf.cast(lengths, tf.int32),
        }

    @property
    def score_stream(self):
        """The function of a text and what was carried;
        a property, because its shapes are the model's.
        """
        shapes = {
            "states": [None, len(self.model.lstms), 2, self.model.hidden_size],
            "window": [None, self.window, self.model.hidden_size],
        }
        specs = [tf.TensorSpec([None], tf.string, name=name) for name in ("text", "context")]
        specs += [tf.TensorSpec(shape, tf.float32, name=name) for name, shape in shapes.items()]
        return tf.function(self._stream, input_signature=specs, autograph=False)

    @tf.function(input_signature=[_TEXTS], autograph=False)
    def continue_text(self, text):
        return self._continued(text, self.continue_xla)

    @tf.function(input_signature=[_TEXTS], autograph=False)
    def continue_text_no_xla(self, text):
        return self._continued(text, self._continue)


# `serving_default` is what a server answers when a request names no signature.
SIGNATURES = {
    "serving_default": "continue_text",
    "continue": "continue_text",
    "continue_no_xla": "continue_text_no_xla",
    "score": "score",
    "score_stream": "score_stream",
}


def export_model(model, transform_output, recipe, directory):
    """Writes the SavedModel, its warm-up requests and its facts.

    Args:
        model: a trained `LanguageModel`.
        transform_output: `tft.TFTransformOutput` of the features it was trained on.
        recipe: the `Recipe`.
        directory: where to write.
    """
    import keras

    module = LanguageModelModule(model, transform_output, recipe)
    signatures = {name: getattr(module, method) for name, method in SIGNATURES.items()}
    tf.saved_model.save(module, directory, signatures=signatures)
    extra = os.path.join(directory, EXTRA_DIRECTORY)
    tf.io.gfile.makedirs(extra)
    write_warmup(os.path.join(extra, WARMUP_FILE), recipe.name, warmup_requests(recipe))
    facts = {
        "name": recipe.name,
        "task": recipe.task,
        "head": recipe.model.head,
        "signatures": list(SIGNATURES),
        "batch_buckets": list(recipe.decoding.batch_buckets),
        "length_buckets": list(recipe.decoding.length_buckets),
        "compilations": len(recipe.decoding.batch_buckets) * len(recipe.decoding.length_buckets),
        "versions": {
            "verbatim-text": own_version(),
            "tensorflow": tf.__version__,
            "keras": keras.__version__,
        },
        "recipe": recipe.to_dict(),
    }
    with tf.io.gfile.GFile(os.path.join(extra, FACTS_FILE), "w") as file:
        json.dump(facts, file, indent=1)


def warmup_requests(recipe):
    """Yields `export.write_warmup`'s requests:
    one for each pair of buckets, and one for each other signature that is asked by hand.
    """

    def inputs(batch, length):
        return {"text": [" ".join(["a"] * length)] * batch}

    sizes = [
        (batch, length)
        for batch in recipe.decoding.batch_buckets
        for length in recipe.decoding.length_buckets
    ]
    for size in sizes:
        yield "continue", inputs(*size)
    for signature in ("serving_default", "score"):
        yield signature, inputs(*sizes[0])
