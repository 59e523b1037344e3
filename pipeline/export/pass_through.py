"""Returns texts without anything to translate as they are, and counts tokens that others lose.

A source token is *fixed* if it is protected or has no letter (numbers, punctuation, symbols). It is
*unknown* if the encoder sees `[UNK]` for it, or, where words are cut into units, if it is a byte of
a character that the units lack. A text of only such tokens gives the model no information, so its
answer is a copy. Known words are translated by the model, and entries of a lexicon are not unknown.
"""

from collections.abc import Mapping

import tensorflow as tf

from pipeline.export.decoder import Hypotheses
from pipeline.export.text_encoder import Features
from pipeline.features import feature_names
from pipeline.recipes import views
from pipeline.recipes.recipe import Recipe
from pipeline.text import terms, tokenization

_NO_LETTER = r"(?s:[^\p{L}]*)"
_BYTE = f"{tokenization.JOINER}?<0x[0-9A-F]{{2}}>{tokenization.JOINER}?"
# Rows of the lexicon that hold no translation: padding, and words that it does not cover.
_UNCOVERED_ROWS = 2


class PassThrough(tf.Module):
    """Copies texts that the model cannot translate, and counts tokens that answers lose.

    Args:
        recipe: the `Recipe`.
    """

    def __init__(self, recipe: Recipe) -> None:
        super().__init__(name="pass_through")
        self._is_on = recipe.decoding.pass_through
        self._has_bytes = recipe.data.units != "words"
        self._reads_rows = views.reads_lexicon_rows(recipe)
        # Composed of its characters, a word that the vocabulary lacks is not unknown.
        self._has_unknown = not views.composes(recipe)

    def unknown(self, features: Features) -> tf.RaggedTensor:
        """Returns which source tokens are unknown to the model, bool like the tokens."""
        ids, tokens = features["source_ids"], features["source_tokens"].flat_values
        unknown = tf.equal(ids.flat_values, tokenization.UNK_ID)
        if self._has_bytes:
            unknown |= tf.strings.regex_full_match(tokens, _BYTE)
        if self._reads_rows and feature_names.LEXICON_ROWS in features:
            unknown &= features[feature_names.LEXICON_ROWS].flat_values < _UNCOVERED_ROWS
        if not self._has_unknown:
            unknown = tf.zeros_like(unknown)
        return ids.with_flat_values(unknown)

    def passes(self, features: Features) -> tf.Tensor:
        """Returns which texts are copied instead of translated, bool `[N]`."""
        tokens, copies = features["source_tokens"], features["source_copy_tokens"]
        if not self._is_on:
            return tf.zeros([tokens.nrows()], tf.bool)
        bare = tokens.flat_values
        kept = features["source_protected"].flat_values | self.unknown(features).flat_values
        kept |= tf.strings.regex_full_match(bare, _NO_LETTER)
        # If a lexicon writes something else for a token, the text is not copied.
        kept &= tf.equal(bare, copies.flat_values)
        return tf.reduce_all(tokens.with_flat_values(kept), axis=1)

    def lost(self, features: Features, hypotheses: Hypotheses) -> tf.Tensor:
        """Returns how many unknown source tokens each answer neither copies nor replaces.

        Args:
            features: of N texts.
            hypotheses: the result of a `Decoder` for them, K each.

        Returns:
            int32 `[N, K]`.
        """
        # An additional column, so that a text without tokens fails in its check, not here.
        ids = tf.pad(features["source_extended_ids"].to_tensor(), [[0, 0], [0, 1]])
        unknown = tf.pad(self.unknown(features).to_tensor(False), [[0, 0], [0, 1]])
        places = hypotheses["copied_from"]
        last = tf.shape(ids)[1] - 1
        copied = tf.gather(ids, tf.clip_by_value(places, 0, last), batch_dims=1)
        said = tf.where(places >= 0, copied, hypotheses["tokens"])
        inside = tf.range(tf.shape(said)[2]) < hypotheses["lengths"][:, :, tf.newaxis]
        said = tf.where(inside, said, -1)
        is_said = tf.reduce_any(
            tf.equal(ids[:, tf.newaxis, :, tf.newaxis], said[:, :, tf.newaxis, :]), axis=3
        )
        lost = unknown[:, tf.newaxis, :] & ~is_said
        return tf.reduce_sum(tf.cast(lost, tf.int32), axis=2)

    def apply(
        self,
        source: tf.Tensor,
        tokens: tf.RaggedTensor,
        passes: tf.Tensor,
        answers: Mapping[str, tf.Tensor],
    ) -> dict[str, tf.Tensor]:
        """Returns the answers, with a copy of the source for each text that passes through.

        Each of its `n_best` answers is that copy, with the score 0.

        Args:
            source: string `[N]`, the texts, with the translations of their terms.
            tokens: ragged string `[N, (tokens)]`, theirs.
            passes: bool `[N]`, which texts.
            answers: the answers of an `AnswerWriter`, and `unknown_not_copied`.
        """
        passes = passes[:, tf.newaxis]
        lengths = tf.cast(tokens.row_lengths(), tf.int32)[:, tf.newaxis]
        longest = tf.reduce_max(tf.where(passes, lengths, 0))
        width = tf.maximum(tf.shape(answers["tokens"])[2], longest)
        copies = _padded(terms.written(tokens.to_tensor(""))[:, :width], width)
        places = tf.range(width)[tf.newaxis]
        inside = places < lengths
        rows = {
            "tokens": copies,
            "copied_from": tf.where(inside, places, -1),
            "copy_probability": tf.cast(inside, tf.float32),
        }
        changed = dict(answers)
        for name, row in rows.items():
            padded = _padded(answers[name], width, -1 if name == "copied_from" else None)
            changed[name] = tf.where(passes[:, :, tf.newaxis], row[:, tf.newaxis], padded)
        changed["text"] = tf.where(passes, source[:, tf.newaxis], answers["text"])
        for name in ("score", "unknown_not_copied"):
            zero = tf.zeros([], answers[name].dtype)
            changed[name] = tf.where(passes, zero, answers[name])
        return changed

    def attention(self, attention: tf.Tensor, passes: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
        """Returns `[N, width, S]`: a copied token looks at its own place.

        Args:
            attention: float32 `[N, T, S]`, of the best answers.
            passes: bool `[N]`.
            width: the longest answer.
        """
        padding = tf.maximum(width - tf.shape(attention)[1], 0)
        padded = tf.pad(attention, [[0, 0], [0, padding], [0, 0]])[:, :width]
        own = tf.eye(width, tf.shape(attention)[2])
        return tf.where(passes[:, tf.newaxis, tf.newaxis], own, padded)


def _padded(value: tf.Tensor, width: tf.Tensor, filling: int | None = None) -> tf.Tensor:
    """Pads the last axis to a width, with "" or 0 by default."""
    paddings = [[0, 0]] * (value.shape.rank - 1) + [[0, width - tf.shape(value)[-1]]]
    if filling is None:
        return tf.pad(value, paddings, constant_values="" if value.dtype == tf.string else 0)
    return tf.pad(value, paddings, constant_values=filling)
