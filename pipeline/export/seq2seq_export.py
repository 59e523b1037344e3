"""Exports a trained model as a SavedModel that takes and gives raw text.

The signatures are listed in `docs/architecture.md`. The Transform graph that made the training
features is part of the SavedModel; only core and tf.text operations are used, so a stock TF Serving
runs it.
"""

import importlib.metadata
import json
import os

import tensorflow as tf

from keras_models import decoding
from keras_models.decoding.sampling import draw_uniforms
from keras_models.layers.shortlist import choose_words
from pipeline.export import buckets, checks, kept_weights, transform_graph
from pipeline.features import preprocessing, source_features
from pipeline.recipes import views
from pipeline.text import characters, tokenization, units

DECODER_INPUTS = ("source_ids", "source_extended_ids", "source_feed_ids", "source_protected")
EXTRA_DIRECTORY = "assets.extra"
FACTS_FILE = "verbatim.json"
WARMUP_FILE = "tf_serving_warmup_requests"
# Bytes of what a model may hold besides its weights so that decoding is faster.
LARGEST_TABLES = 2**28
# What a search without attention matrices returns.
_FOUND_TYPES = {
    "tokens": tf.int32,
    "lengths": tf.int32,
    "scores": tf.float32,
    "log_probs": tf.float32,
    "copied_from": tf.int32,
    "copy_probability": tf.float32,
}
# Those whose last axis is time.
_SEQUENCES = ("tokens", "copied_from", "copy_probability")


def longest_output(source_length, config):
    """Returns the longest output, in tokens, of a source padded to `source_length`:
    factor * length + offset.
    """
    scaled = tf.cast(tf.cast(source_length, tf.float32) * config.max_length_factor, tf.int32)
    return scaled + config.max_length_offset


class ServingModule(tf.Module):
    """The served functions of a model.

    Strings and tables stay outside the function that XLA compiles; what goes in is padded to a
    bucket in both batch and length, so it is compiled at most once for each pair of buckets. A
    batch beyond the largest bucket is decoded in chunks of it, texts of similar length together.
    """

    def __init__(self, model, transform_output, recipe):
        super().__init__(name="verbatim")
        kept_weights.keep(self, model)
        self.transform = transform_graph.TransformGraph(transform_output)
        self.config = recipe.decoding
        self.seed = recipe.training.seed
        self.segments = views.segments(recipe)
        # Columns of tags are inputs of every signature, after the texts.
        self.columns = recipe.data.source_features
        encoder_features = preprocessing.encoder_features(recipe)
        self.decoder_inputs = (*DECODER_INPUTS, *encoder_features)
        # Variables, because a constant would be part of every signature's graph.
        tables = model.decoding_tables(shortlist=bool(self.config.shortlist_size))
        if (
            sum(table.dtype.size * table.shape.num_elements() for table in tables.values())
            > LARGEST_TABLES
        ):
            tables = {}
        self.tables = {name: tf.Variable(table, trainable=False) for name, table in tables.items()}
        self.shortlist_lexicon = []
        if self.config.shortlist_size:
            lexicon = preprocessing.read_lexicon(transform_output)
            self.shortlist_lexicon = [tf.Variable(part, trainable=False) for part in lexicon]
            if preprocessing.LEXICON_ROWS not in self.decoder_inputs:
                self.decoder_inputs += (preprocessing.LEXICON_ROWS,)
        # The characters of a word have as many places for each.
        self.widths = [
            recipe.model.word_length if name == characters.FEATURE else 1
            for name in self.decoder_inputs
        ]
        self.score_inputs = (
            *preprocessing.ID_FEATURES,
            *preprocessing.label_features(recipe),
            *encoder_features,
        )
        self.tokenizer = tokenization.Tokenizer.of(recipe.data)
        self.source_tokenizer = tokenization.Tokenizer.of(recipe.data, "source")
        self.byte_table = units.byte_table() if recipe.data.units != "words" else None
        self.vocabulary = tf.constant(
            preprocessing.read_vocabulary(transform_output, preprocessing.TARGET_VOCABULARY_FILE)
        )
        # The classes of unknown protected tokens are inputs only: a kind that no source owes, so
        # never output.
        classes = tf.constant([name for name, _ in tokenization.PROTECTED_PATTERNS])
        is_class = tf.reduce_any(self.vocabulary[:, tf.newaxis] == classes, axis=1)
        self.protected_vocabulary = preprocessing.is_protected(self.vocabulary) | is_class
        # The graphs that several signatures share, traced when the first of them asks. Concrete
        # functions, because a nested `tf.function` is traced anew by its second caller.
        self._predictions = {}

    # Text to ids.

    def _features(self, source, target, columns):
        self._check_columns(source, columns)
        raw = {"source": source, "target": target, **dict(zip(self.columns, columns))}
        raw = {name: tf.expand_dims(texts, -1) for name, texts in raw.items()}
        features = {
            name: tf.RaggedTensor.from_sparse(
                tf.cast(value, tf.int32) if value.dtype == tf.int64 else value
            )
            for name, value in self.transform(raw).items()
        }
        # What a copy writes: the token, where no lexicon has another surface for it.
        tokens = features.setdefault("source_copy_tokens", features["source_tokens"])
        features["source_protected"] = tokens.with_flat_values(
            preprocessing.is_protected(tokens.flat_values)
        )
        return features

    def _check_columns(self, source, columns):
        """Asserts that each source has one tag of each column for each of its tokens."""
        tokens = self.source_tokenizer.tokenize(source).row_lengths()
        for name, texts in zip(self.columns, columns):
            numbers = (tf.size(source), tf.size(texts))
            sentence = "There are {} source texts and {} texts of " + name + "; give as many."
            checks.check(tf.equal(*numbers), sentence, *numbers)
            # Of different numbers, as many as both have: the sentence above must come, not an error
            # of shapes.
            number = tf.minimum(*numbers)
            # One pair that fits, last, so that there is always one to look at.
            tags = checks.with_last(source_features.split_tags(texts).row_lengths()[:number], 1)
            sizes = checks.with_last(tokens[:number], 1)
            at = tf.argmax(tf.not_equal(tags, sizes))
            sentence = (
                "The source text {} has {} tokens and {} tags of "
                + name
                + "; give one tag for each token."
            )
            checks.check(tf.equal(tags[at], sizes[at]), sentence, at, sizes[at], tags[at])

    def _check(self, name, lengths):
        checks.check_lengths(name, "token", lengths, self.config.length_buckets[-1])

    # Ids to ids: what XLA compiles.

    def _decode(self, *inputs):
        return self._search(
            dict(zip(self.decoder_inputs, inputs)), shortlist=self._shortlist(*inputs)
        )

    def _decode_among_all(self, *inputs):
        return self._search(dict(zip(self.decoder_inputs, inputs)))

    def _shortlist(self, *inputs):
        """The words that each source's answer is made of, int32 `[batch, N]`; None for all."""
        vocabulary_size = self.vocabulary.shape[0]
        if not 0 < self.config.shortlist_size < vocabulary_size:
            return None
        inputs = dict(zip(self.decoder_inputs, inputs))
        lexicon = [
            tf.gather(part, inputs[preprocessing.LEXICON_ROWS]) for part in self.shortlist_lexicon
        ]
        return choose_words(
            inputs["source_extended_ids"], vocabulary_size, self.config.shortlist_size, *lexicon
        )

    def _search(self, inputs, return_attention=False, shortlist=None):
        batch, source_length = tf.unstack(tf.shape(inputs["source_ids"]))
        max_length = longest_output(source_length, self.config)
        drawing = {}
        if self.config.temperature:
            drawing["sampling"] = {
                name: getattr(self.config, name) for name in ("temperature", "top_k", "top_p")
            }
            drawing["uniforms"] = draw_uniforms(self.seed, batch, self.config.n_best, max_length)
        found = decoding.decode(
            self.model,
            inputs,
            max_length=max_length,
            beam_size=self.config.beam_size,
            n_best=self.config.n_best,
            min_length=self.config.min_length,
            length_alpha=self.config.length_penalty,
            coverage_beta=self.config.coverage_penalty,
            protected_vocabulary=self.protected_vocabulary if self.config.keep_protected else None,
            return_attention=return_attention,
            replace_unknown=self.config.replace_unknown != "none",
            no_repeat_ngram=self.config.no_repeat_ngram,
            length_unit=self.config.length_unit,
            shortlist=shortlist,
            tables={name: tf.convert_to_tensor(table) for name, table in self.tables.items()},
            **drawing,
        )
        return {name: value for name, value in found._asdict().items() if value is not None}

    def _target_log_prob(self, inputs):
        return self.model(inputs, training=False)

    def _decode_in_buckets(self, features, decode):
        """Pads to buckets, decodes chunk by chunk, and cuts the padding off again."""
        return buckets.map_in_buckets(
            lambda *inputs: decode(*inputs[:-1]),  # the mask is made of the ids
            [features[name] for name in self.decoder_inputs],
            self.config.batch_buckets,
            self.config.length_buckets,
            _FOUND_TYPES,
            sequences=_SEQUENCES,
            output_length=lambda length: longest_output(length, self.config),
            widths=self.widths,
        )

    def _decode_surely(self, features, compiled):
        """Decodes; of a shortlist, the answers that are not sure once more, among all words.

        That without XLA: which texts they are, nobody knows before, and a compilation is nothing
        that a request may wait for.
        """
        found = self._decode_in_buckets(
            features, tf.function(self._decode, jit_compile=compiled, autograph=False)
        )
        if not (self.config.shortlist_size and self.config.shortlist_confidence):
            return found
        again = tf.function(self._decode_among_all, autograph=False)
        rows = tf.where(self._is_unsure(found))[:, 0]

        def among_all():
            unsure = {name: tf.gather(features[name], rows) for name in self.decoder_inputs}
            return buckets.scatter_rows(
                found, rows, self._decode_in_buckets(unsure, again), _SEQUENCES
            )

        return tf.cond(tf.size(rows) > 0, among_all, lambda: found)

    def _is_unsure(self, found):
        """Whether the tokens of the best answers, the end included, have too small a mean
        probability: bool `[N]`.
        """
        mean = found["log_probs"][:, 0] / tf.cast(found["lengths"][:, 0] + 1, tf.float32)
        return tf.exp(mean) < self.config.shortlist_confidence

    # Ids to text.

    def _surfaces(self, tokens, lengths, copy_tokens):
        """Surface strings of extended ids:
        tokens int32 `[N,K,T]`, copy_tokens `[N,S]` to string `[N,K,T]`, "" at padding.
        """
        size = tf.size(self.vocabulary)
        known = tf.gather(self.vocabulary, tf.minimum(tokens, size - 1))
        position = tf.clip_by_value(tokens - size, 0, tf.shape(copy_tokens)[1] - 1)
        surface = tf.where(tokens < size, known, tf.gather(copy_tokens, position, batch_dims=1))
        inside = tf.range(tf.shape(tokens)[2]) < lengths[:, :, tf.newaxis]
        return tf.where(inside, surface, "")

    def _detokenize(self, tokens):
        return (
            units.detokenize(tokens, self.byte_table)
            if self.byte_table
            else self.tokenizer.detokenize(tokens)
        )

    def _texts(self, surfaces, lengths):
        flat = tf.reshape(surfaces, [-1, tf.shape(surfaces)[2]])
        ragged = tf.RaggedTensor.from_tensor(flat, lengths=tf.reshape(lengths, [-1]))
        return tf.reshape(self._detokenize(ragged), tf.shape(lengths))

    def _words_found(self, features):
        """The words that a segmenting encoder finds, ragged string `[N, (words)]`, and the number
        of each character's word, ragged.
        """
        tokens = features["source_tokens"]
        inputs = {name: features[name].to_tensor() for name in self.decoder_inputs}
        ends = tf.cast(
            tf.RaggedTensor.from_tensor(self.model.segment(inputs), tokens.row_lengths()), tf.int64
        )
        number = tf.cumsum(ends.flat_values, exclusive=True)
        words = tf.strings.unsorted_segment_join(
            tokens.flat_values, number, tf.reduce_sum(ends.flat_values)
        )
        words = tf.RaggedTensor.from_row_lengths(words, tf.reduce_sum(ends, axis=1), validate=False)
        first = tf.gather(words.row_starts(), tokens.value_rowids())
        return words, tokens.with_flat_values(number - first)

    def _answers(self, features, found):
        tokens = self._words_found(features)[0] if self.segments else features["source_tokens"]
        source_tokens = tokens.to_tensor("")
        lengths = found["lengths"]
        longest = tf.reduce_max(lengths)
        inside = tf.range(longest) < lengths[:, :, tf.newaxis]
        copy_tokens = features["source_copy_tokens"].to_tensor("")
        surfaces = self._surfaces(found["tokens"][:, :, :longest], lengths, copy_tokens)
        return {
            "text": self._texts(surfaces, lengths),
            "score": found["scores"],
            "tokens": surfaces,
            "copied_from": tf.where(inside, found["copied_from"][:, :, :longest], -1),
            "copy_probability": tf.where(inside, found["copy_probability"][:, :, :longest], 0.0),
            "source_tokens": source_tokens,
        }

    def _predict(self, source, columns, compiled):
        """The `n_best` answers, by a graph that all signatures share."""
        key = "xla" if compiled else "no_xla"
        if key not in self._predictions:

            def predict(source, *columns):
                features = self._features(source, tf.zeros_like(source), columns)
                self._check("source text", features["source_ids"].row_lengths())
                return self._answers(features, self._decode_surely(features, compiled))

            specs = self._specs("source")
            function = tf.function(predict, input_signature=specs, autograph=False)
            with tf.init_scope():
                self._predictions[key] = function.get_concrete_function()
        return self._predictions[key](source, *columns)

    @staticmethod
    def _best(answers):
        return {
            name: value if name == "source_tokens" else value[:, 0]
            for name, value in answers.items()
        }

    # Signatures; `signature` makes a function of strings of each.

    def serving_default(self, source, *columns):
        return self._best(self._predict(source, columns, compiled=True))

    def serving_default_no_xla(self, source, *columns):
        return self._best(self._predict(source, columns, compiled=False))

    def n_best(self, source, *columns):
        return self._predict(source, columns, compiled=True)

    def n_best_no_xla(self, source, *columns):
        return self._predict(source, columns, compiled=False)

    def explain(self, source, *columns):
        features = self._features(source, tf.zeros_like(source), columns)
        self._check("source text", features["source_ids"].row_lengths())
        inputs = {name: features[name].to_tensor() for name in self.decoder_inputs}
        found = self._search(
            inputs, return_attention=True, shortlist=self._shortlist(*inputs.values())
        )
        if self.config.shortlist_size and self.config.shortlist_confidence:
            unsure = self._is_unsure(found)
            among_all = self._search(inputs, return_attention=True)
            found = {
                name: tf.where(
                    tf.reshape(unsure, [-1] + [1] * (value.shape.rank - 1)), among_all[name], value
                )
                for name, value in found.items()
            }
        answers = self._best(self._answers(features, found))
        answers["attention"] = found["attention"][:, 0, : tf.shape(answers["tokens"])[1]]
        if self.segments:
            words, number = self._words_found(features)
            member = tf.one_hot(number.to_tensor(-1), tf.cast(words.bounding_shape()[1], tf.int32))
            answers["attention"] = tf.matmul(answers["attention"], member)
        return answers

    def score(self, source, target, *columns):
        numbers = (tf.size(source), tf.size(target))
        checks.check(
            tf.equal(*numbers), "There are {} source and {} target texts; give pairs.", *numbers
        )
        features = self._features(source, target, columns)
        self._check("source text", features["source_ids"].row_lengths())
        self._check("target text", features["target_extended_ids"].row_lengths() - 1)
        inputs = {
            name: features[name].to_tensor(preprocessing.PADDING.get(name, 0))
            for name in self.score_inputs
        }
        log_prob = self._target_log_prob(inputs)
        inside = tf.not_equal(inputs["target_extended_ids"], tokenization.PAD_ID)
        return {
            "log_probability": tf.reduce_sum(tf.where(inside, log_prob, 0.0), axis=1),
            "token_count": tf.cast(features["target_extended_ids"].row_lengths(), tf.int32),
        }

    def _specs(self, *texts):
        return [tf.TensorSpec([None], tf.string, name=name) for name in (*texts, *self.columns)]

    def signature(self, name):
        """Returns the signature of that name:
        a function of string tensors `[N]`, the columns of tags last.
        """
        specs = self._specs(*(("source", "target") if name == "score" else ("source",)))
        return tf.function(getattr(self, name), input_signature=specs, autograph=False)


SIGNATURES = (
    "serving_default",
    "serving_default_no_xla",
    "n_best",
    "n_best_no_xla",
    "explain",
    "score",
)


def export_model(model, transform_output, recipe, directory, signatures=SIGNATURES):
    """Writes the SavedModel, its warm-up requests and its facts.

    Args:
        model: a trained body, such as `RecurrentSeq2Seq`.
        transform_output: `tft.TFTransformOutput` of the features it was trained on.
        recipe: the `Recipe`; `decoding` fixes search and buckets.
        directory: where to write.
        signatures: names of those to write, `serving_default` among them.
    """
    module = ServingModule(model, transform_output, recipe)
    tf.saved_model.save(
        module, directory, signatures={name: module.signature(name) for name in signatures}
    )
    extra = os.path.join(directory, EXTRA_DIRECTORY)
    tf.io.gfile.makedirs(extra)
    write_warmup(os.path.join(extra, WARMUP_FILE), recipe.name, warmup_requests(recipe, signatures))
    import keras

    facts = {
        "name": recipe.name,
        "head": recipe.model.head,
        "signatures": list(signatures),
        "source_features": list(recipe.data.source_features),
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


def own_version():
    """Returns the version of this package, for a model's facts."""
    try:
        return importlib.metadata.version("verbatim-text")
    except importlib.metadata.PackageNotFoundError:  # run from a checkout that is not installed
        return "not installed"


def write_warmup(path, name, requests):
    """Writes requests that a server runs before it announces the version.

    Args:
        path: the file.
        name: the model's name.
        requests: pairs of a signature's name and its inputs, a dict from name to a list of strings.
    """
    from tensorflow_serving.apis import predict_pb2, prediction_log_pb2

    with tf.io.TFRecordWriter(path) as writer:
        for signature, inputs in requests:
            request = predict_pb2.PredictRequest()
            request.model_spec.name = name
            request.model_spec.signature_name = signature
            for key, texts in inputs.items():
                request.inputs[key].CopyFrom(tf.make_tensor_proto(texts))
            log = prediction_log_pb2.PredictionLog(
                predict_log=prediction_log_pb2.PredictLog(request=request)
            )
            writer.write(log.SerializeToString())


def warmup_requests(recipe, signatures):
    """Yields `write_warmup`'s requests:
    one for each pair of buckets, so that nobody waits for a compilation.

    What is compiled is every signature's, but a session prepares its graph for each of them anew,
    which takes a second or two: so `n_best` and `score`, which the client and the web page ask for,
    have one request.
    """

    def inputs(batch, length):
        columns = {name: [" ".join(["O"] * length)] * batch for name in recipe.data.source_features}
        return {"source": [" ".join(["a"] * length)] * batch, **columns}

    sizes = [
        (batch, length)
        for batch in recipe.decoding.batch_buckets
        for length in recipe.decoding.length_buckets
    ]
    for size in sizes:
        yield "serving_default", inputs(*size)
    if "n_best" in signatures:
        yield "n_best", inputs(*sizes[0])
    if "score" in signatures:
        yield "score", {**inputs(*sizes[0]), "target": ["a"] * sizes[0][0]}
