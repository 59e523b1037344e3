"""The first part of a served model: raw text to ids."""

from collections.abc import Mapping, Sequence

import tensorflow as tf
import tensorflow_transform as tft

from pipeline.common import progress
from pipeline.export import checks, transform_graph
from pipeline.export.default_glossary import DefaultGlossary
from pipeline.features import protected_classes, protected_roles, source_features
from pipeline.recipes.recipe import Recipe
from pipeline.text import terms, tokenization
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
        self._takes_terms = takes_terms
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
        self._check("source text", features["source_ids"].row_lengths())
        if not self._takes_terms:
            has_term = tf.reduce_any(terms.is_term(features["source_tokens"].flat_values))
            checks.check(~has_term, _NO_TERMS)
        return features

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

    def _features(
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
