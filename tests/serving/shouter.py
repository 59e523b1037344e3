"""A tiny model with a Verbatim model's signatures: it shouts, and copies what begins with `%`."""

import tensorflow as tf

from serving import term_markup

MAX_TOKENS = 8


class Shouter(tf.Module):
    """Upper-cases words and copies placeholders; the second-best output is lower-cased.

    The signature `count` tells how often it was called, so that a test can see a warm-up. The
    signature `serving_default_no_xla` writes "(not compiled)" behind each text.

    Args:
        mark: what stands behind each text.
        reads_terms: whether it writes the translations of terms; they are without blanks.
    """

    def __init__(self, mark, reads_terms=False):
        super().__init__()
        self.reads_terms = reads_terms
        self.mark = tf.constant(mark)
        self.calls = tf.Variable(0, dtype=tf.int32)

    def _cut(self, source):
        tokens = tf.strings.split(source).to_tensor("")
        fits = tf.debugging.assert_less_equal(
            tf.shape(tokens)[1],
            MAX_TOKENS,
            message='A text has more than 8 tokens; the model\'s limit is "8" – shorten it [now].',
        )
        with tf.control_dependencies([fits]):
            return tf.identity(tokens)

    def _answers(self, tokens, change):
        copied = tf.strings.regex_full_match(tokens, "%.*")
        out = tf.where(copied, tokens, change(tokens))
        if self.reads_terms:
            is_term = tf.strings.regex_full_match(tokens, term_markup.TERM)
            translations = tf.strings.regex_replace(tokens, term_markup.TERM, r"\2")
            copied, out = copied | is_term, tf.where(is_term, translations, out)
        position = tf.broadcast_to(tf.range(tf.shape(tokens)[1])[None], tf.shape(tokens))
        # Padding is at the end, and joins to spaces.
        text = tf.strings.strip(tf.strings.reduce_join(out, axis=1, separator=" "))
        return {
            "text": tf.strings.join([text, self.mark]),
            "score": -tf.reduce_sum(tf.cast(out != "", tf.float32), axis=1),
            "tokens": out,
            "copied_from": tf.where(copied, position, -1),
            "copy_probability": tf.where(copied, 0.984, 0.0),
        }

    def best(self, source):
        tokens = self._cut(source)
        return {**self._answers(tokens, tf.strings.upper), "source_tokens": tokens}

    def best_not_compiled(self, source):
        outputs = self.best(source)
        return {**outputs, "text": outputs["text"] + " (not compiled)"}

    def explain(self, source):
        """Each token attends to the one at its own place, with three quarters of its weight."""
        tokens = self._cut(source)
        weights = 0.75 * tf.eye(tf.shape(tokens)[1], batch_shape=[tf.shape(tokens)[0]])
        return {**self.best(source), "attention": weights}

    def n_best(self, source):
        tokens = self._cut(source)
        both = [self._answers(tokens, change) for change in (tf.strings.upper, tf.strings.lower)]
        return {
            **{key: tf.stack([one[key] for one in both], axis=1) for key in both[0]},
            "source_tokens": tokens,
        }

    def score(self, source, target):
        self._cut(source)
        count = tf.cast(tf.strings.split(target).row_lengths(), tf.int32) + 1
        return {"log_probability": -0.5 * tf.cast(count, tf.float32), "token_count": count}

    def count(self, source):
        return {"calls": tf.fill(tf.shape(source), self.calls.assign_add(1))}

    def save(self, path):
        """Writes the SavedModel with its signatures."""
        text = tf.TensorSpec([None], tf.string, name="source")
        one = {
            name: tf.function(getattr(self, name))
            for name in ("best", "best_not_compiled", "explain", "n_best", "count")
        }
        signatures = {name: function.get_concrete_function(text) for name, function in one.items()}
        signatures["serving_default"] = signatures.pop("best")
        signatures["serving_default_no_xla"] = signatures.pop("best_not_compiled")
        target = tf.TensorSpec([None], tf.string, name="target")
        signatures["score"] = tf.function(self.score).get_concrete_function(text, target)
        tf.saved_model.save(self, str(path), signatures=signatures)
