"""The first part of a served model: raw text to ids."""

from collections.abc import Mapping, Sequence

import tensorflow as tf
import tensorflow_transform as tft

from pipeline.common import progress
from pipeline.common.traced_once import TracedOnce
from pipeline.export import checks, transform_graph
from pipeline.export.default_glossary import DefaultGlossary
from pipeline.export.long_texts import DROPPED
from pipeline.features import protected_classes, protected_roles, source_features
from pipeline.recipes import views
from pipeline.recipes.recipe import Recipe
from pipeline.text import characters, sentences, terms, tokenization, units, white_space
from serving.glossary_files import read_glossary

_NO_TERMS = (
    "This model takes no glossary: its head cannot copy, or its recipe has decoding.keep_protected "
    "= false."
)

#: The features of texts: ragged tensors `[N, (tokens)]` by name.
Features = Mapping[str, tf.RaggedTensor]


class TextEncoder(tf.Module):
    """Makes features of texts, with the Transform graph that made those of the training.

    Args:
        transform_output: the Transform graph.
        recipe: the `Recipe`.
        takes_terms: whether the search can keep the terms of a glossary.

    Attributes:
        columns: columns of tags, which are inputs of every signature after the texts.
    """

    def __init__(
        self, transform_output: tft.TFTransformOutput, recipe: Recipe, takes_terms: bool = True
    ) -> None:
        super().__init__(name="text_encoder")
        self.transform = transform_graph.TransformGraph(transform_output)
        self.columns = recipe.data.source_features
        self._source_tokenizer = tokenization.Tokenizer.of(recipe.data, "source")
        self._longest = recipe.decoding.length_buckets[-1]
        self._long_texts = recipe.decoding.long_texts
        self._widths = {characters.FEATURE: recipe.model.word_length}
        self._takes_terms = takes_terms
        self._has_pieces = views.rules_of_pieces(recipe)
        # All signatures share its graph.
        self._features = TracedOnce(self._made_features)
        self.glossary = None
        if recipe.decoding.glossary and takes_terms:
            self.glossary = DefaultGlossary(read_glossary(recipe.decoding.glossary).terms)
        elif recipe.decoding.glossary:
            progress.warn(
                f"The head {recipe.model.head} cannot copy: its model is without the glossary of "
                "decoding.glossary."
            )

    def of_sources(self, source: tf.Tensor, columns: Sequence[tf.Tensor]) -> Features:
        """Returns the features of sources, after checking that there is at least one and none is
        too long.

        Args:
            source: string `[N]`.
            columns: string `[N]` for each column of tags.
        """
        if self.glossary:
            source = self.glossary.mark(source)
        features = self._features(source, tf.zeros_like(source), columns)
        if self._long_texts == "truncate":
            features = self._truncated(features)
        self._check("source text", features["source_ids"].row_lengths())
        self._check_terms(features)
        return features

    def of_sentences(self, source: tf.Tensor) -> tuple[tf.RaggedTensor, Features]:
        """Cuts the sources that are too long into sentences; `of_sources` of the others.

        Returns:
            Ragged string `[N, (parts)]`, and the features of the parts, without the white space
            around them.
        """
        if self.glossary:
            source = self.glossary.mark(source)
        lengths = self._features(source, tf.zeros_like(source), ())["source_ids"].row_lengths()
        is_long = lengths > self._longest
        cut = sentences.split_in_graph(source, self._source_tokenizer.syntax)
        whole = tf.RaggedTensor.from_row_lengths(source, tf.ones_like(lengths), validate=False)
        rows = tf.range(tf.size(source))
        place = tf.where(is_long, rows + tf.size(source), rows)
        parts = tf.gather(tf.concat([whole, cut], axis=0), place)
        _, texts, _ = white_space.split_outer(parts.flat_values)
        features = self._features(texts, tf.zeros_like(texts), ())
        longest = tf.reduce_max(
            parts.with_flat_values(features["source_ids"].row_lengths()), axis=1
        )
        note = " in one sentence"
        checks.check_lengths("source text", "token", longest, self._longest, note)
        self._check_terms(features)
        return parts, features

    def _truncated(self, features: Features) -> Features:
        """Returns features of the first tokens of each source, and how many follow them."""
        lengths = features["source_ids"].row_lengths()
        cut = {
            name: value[:, : self._longest * self._widths.get(name, 1)]
            for name, value in features.items()
            if name.startswith("source_")
        }
        cut[DROPPED] = tf.cast(tf.maximum(lengths - self._longest, 0), tf.int32)
        # What closes a pair of tags may be cut off.
        cut["source_roles"], cut["source_links"] = protected_roles.roles_and_links(
            cut["source_copy_tokens"], cut["source_protected"]
        )
        return {**features, **cut}

    def _check_terms(self, features: Features) -> None:
        if not self._takes_terms:
            has_term = tf.reduce_any(terms.is_term(features["source_tokens"].flat_values))
            checks.check(~has_term, _NO_TERMS)

    def of_pairs(
        self, source: tf.Tensor, target: tf.Tensor, columns: Sequence[tf.Tensor]
    ) -> Features:
        """Returns the features of pairs, checked as in `of_sources`."""
        numbers = (tf.size(source), tf.size(target))
        checks.check(
            tf.equal(*numbers),
            "There are {} source and {} target texts; give one target per source.",
            *numbers,
        )
        features = self._features(source, target, columns)
        self._check("source text", features["source_ids"].row_lengths())
        self._check("target text", features["target_extended_ids"].row_lengths() - 1)
        return features

    def _made_features(
        self, source: tf.Tensor, target: tf.Tensor, columns: Sequence[tf.Tensor]
    ) -> Features:
        self._check_columns(source, columns)
        texts = {"source": source, "target": target, **dict(zip(self.columns, columns))}
        raw = {name: tf.expand_dims(text, -1) for name, text in texts.items()}
        features = {
            name: tf.RaggedTensor.from_sparse(
                tf.cast(value, tf.int32) if value.dtype == tf.int64 else value
            )
            for name, value in self.transform(raw).items()
        }
        # The text that a copy writes: the token, unless a lexicon has another surface for it.
        tokens = features.setdefault("source_copy_tokens", features["source_tokens"])
        protected = tokens.with_flat_values(
            protected_classes.is_protected(tokens.flat_values, self._source_tokenizer.syntax)
        )
        features["source_protected"] = protected
        features["source_roles"], features["source_links"] = protected_roles.roles_and_links(
            tokens, protected
        )
        if self._has_pieces:
            pieces = features["source_tokens"]
            features["source_continues"] = pieces.with_flat_values(
                units.continues_word(pieces.flat_values)
            )
        return features

    def _check_columns(self, source: tf.Tensor, columns: Sequence[tf.Tensor]) -> None:
        """Asserts that each source has one tag of each column for each of its tokens."""
        tokens = self._source_tokenizer.tokenize(source).row_lengths()
        for name, texts in zip(self.columns, columns):
            numbers = (tf.size(source), tf.size(texts))
            sentence = "There are {} source texts and {} texts of " + name + "; give as many."
            checks.check(tf.equal(*numbers), sentence, *numbers)
            # Of different numbers, as many as both have: the sentence above must come, not an error
            # of shapes.
            number = tf.minimum(*numbers)
            # A fitting pair at the end, so that the vector is never empty.
            tags = checks.with_last(source_features.split_tags(texts).row_lengths()[:number], 1)
            sizes = checks.with_last(tokens[:number], 1)
            at = tf.argmax(tf.not_equal(tags, sizes))
            sentence = (
                f"The source text {{}} has {{}} tokens and {{}} tags of {name}; give one tag for "
                "each token."
            )
            checks.check(tf.equal(tags[at], sizes[at]), sentence, at, sizes[at], tags[at])

    def _check(self, name: str, lengths: tf.Tensor) -> None:
        checks.check_lengths(name, "token", lengths, self._longest)
