"""Raw pairs to ids in the extended space."""

import dataclasses
import os
from collections.abc import Mapping

import tensorflow as tf

from keras_models.heads import copy_head
from keras_models.layers.segmentation_policy import WORD_ENDS
from pipeline.features import (
    copy_lexicon,
    feature_names,
    matching,
    pointer_labels,
    source_features,
    span_labels,
    term_phrases,
    training_terms,
    vocabulary_files,
)
from pipeline.features.lookup_tables import (
    FeatureTables,
    Load,
    load_tables,
    needed,
    vocabulary_table,
)
from pipeline.features.multigram_ends import multigram_ends
from pipeline.features.protected_classes import is_protected, protected_class_ids
from pipeline.features.table import Table
from pipeline.lexicons import translation_lexicon
from pipeline.recipes.settings import TransformConfig, TransformSettings
from pipeline.text import characters, scripts, tokenization, units
from pipeline.text.placeholders.syntax import PLACEHOLDER, TERM_CLASS
from pipeline.text.units import GraphTokenizer


def _text_settings() -> TransformSettings:
    return {"tokenizer": {"kind": "text", "lowercase": False}}


@dataclasses.dataclass(frozen=True)
class PairPreprocessor:
    """Makes the id features of pairs, in a TensorFlow graph.

    Attributes:
        source_table: the source vocabulary, -1 for unknown tokens.
        target_table: the same for the target, of V entries.
        tokenizer: cuts the source, and the target by default.
        target_tokenizer: cuts the target, if it differs.
        settings: which features are made beside `feature_names.FEATURES`.
        tables: the tables for them.
    """

    source_table: Table
    target_table: Table
    tokenizer: GraphTokenizer = tokenization.Tokenizer()
    target_tokenizer: GraphTokenizer | None = None
    settings: TransformSettings = dataclasses.field(default_factory=_text_settings)
    tables: FeatureTables = dataclasses.field(default_factory=FeatureTables)

    @classmethod
    def of(
        cls, config: TransformConfig, tokenizers: Mapping[str, GraphTokenizer], load: Load
    ) -> "PairPreprocessor":
        """Returns that of some settings.

        Args:
            config: the settings, and the folders of what the tables are made of.
            tokenizers: those of `"source"` and `"target"`.
            load: loads one table.
        """
        folder = config["vocabulary_uri"]
        source_table, target_table = (
            load(os.path.join(folder, vocabulary_files.vocabulary_file(side)), vocabulary_table)
            for side in vocabulary_files.SIDES
        )
        tables = load_tables(folder, config, load)
        return cls(
            source_table, target_table, tokenizers["source"], tokenizers["target"], config, tables
        )

    def features(
        self,
        source: tf.Tensor,
        target: tf.Tensor,
        tags: Mapping[str, tf.Tensor] | None = None,
        is_training: tf.Tensor | None = None,
    ) -> dict[str, tf.RaggedTensor]:
        """Makes the features of a batch of pairs.

        Args:
            source: string `[batch]`.
            target: string `[batch]`; empty when only the source is known, as in serving.
            tags: from each of the settings' `source_features` to string `[batch]`.
            is_training: bool `[batch]`, which pairs may get terms; none by default.

        Returns:
            Dict of ragged tensors `[batch, (length)]`, one for each name in
            `feature_names.FEATURES` and for those that the settings ask for.
        """
        settings, target_tokenizer = self.settings, self.target_tokenizer or self.tokenizer
        source_tokens = self.tokenizer.tokenize(source)
        target_tokens = target_tokenizer.tokenize(target)
        if settings.get("term_share") and is_training is not None:
            source_tokens, target_tokens = training_terms.with_terms(
                source_tokens,
                target_tokens,
                needed(self.tables.term_translations).lookup,
                settings["term_share"],
                is_training,
            )
        if settings.get("term_share"):
            source_tokens = term_phrases.behind_phrases(source_tokens, self.tokenizer)
        features = self.features_of_tokens(source_tokens, target_tokens, tags)
        if settings.get("words"):
            features[feature_names.WORDS["source"]] = units.words_of(self.tokenizer, source)
            features[feature_names.WORDS["target"]] = units.words_of(target_tokenizer, target)
        return features

    def features_of_tokens(
        self,
        source_tokens: tf.RaggedTensor,
        target_tokens: tf.RaggedTensor,
        tags: Mapping[str, tf.Tensor] | None = None,
    ) -> dict[str, tf.RaggedTensor]:
        """Makes the features of pairs that are cut already: ragged string `[batch, (length)]`.

        The other arguments, and what is returned, are those of `features`.
        """
        settings, tags = self.settings, tags or {}
        # What a copy writes: the token, except for phrases of a copy lexicon. The encoder reads the
        # token.
        copy_tokens = source_tokens
        if settings.get("copy_lexicon"):
            copy_tokens = copy_lexicon.phrase_surfaces(
                source_tokens, needed(self.tables.copy_lexicon).lookup, self.tables.longest_phrase
            )
        is_unknown, features = self._ids(source_tokens, copy_tokens, target_tokens)
        for name in settings.get("source_features", ()):
            features[source_features.feature_name(name)] = source_features.tag_ids(
                tags[name], self.tables.tags[name]
            )
        if "case" in settings.get("surface_features", ()):
            cases = source_features.case_ids(source_tokens.flat_values)
            features[source_features.feature_name("case")] = source_tokens.with_flat_values(cases)
        self._add_labels(features, copy_tokens, target_tokens, is_unknown, tags)
        if settings.get("lexicon_rows"):
            line = needed(self.tables.lexicon_rows).lookup(source_tokens.flat_values)
            uncovered = tf.constant(translation_lexicon.UNCOVERED_ROW, tf.int64)
            row = tf.where(line < 0, uncovered, line + translation_lexicon.FIRST_ROW)
            features[feature_names.LEXICON_ROWS] = source_tokens.with_flat_values(row)
        if "word_length" in settings:
            features[characters.FEATURE] = self._characters(source_tokens, settings["word_length"])
        if settings.get("word_ends"):
            features[WORD_ENDS] = self._word_ends(source_tokens, settings["word_ends"])
        if settings.get("translate"):
            keep = is_protected(source_tokens.flat_values, self.tokenizer.syntax)
            lookup = needed(self.tables.translations).lookup
            copy_tokens = copy_lexicon.translated_surfaces(source_tokens, copy_tokens, lookup, keep)
        if settings.get("copy_lexicon") or settings.get("translate"):
            features["source_copy_tokens"] = copy_tokens
        return features

    def _ids(
        self,
        source_tokens: tf.RaggedTensor,
        copy_tokens: tf.RaggedTensor,
        target_tokens: tf.RaggedTensor,
    ) -> tuple[tf.Tensor, dict[str, tf.RaggedTensor]]:
        """Returns which target tokens are unknown, over the flat values, and `FEATURES`."""
        vocabulary_size = self.target_table.size()
        _, source_ids = self._ids_and_feed(source_tokens, self.source_table)
        source_known, source_feed = self._ids_and_feed(copy_tokens, self.target_table)
        target_known, target_feed = self._ids_and_feed(target_tokens, self.target_table)
        if self.settings.get("term_share"):
            source_feed, target_feed = (
                term_phrases.fed_translations(
                    tokens, feed, self.target_tokenizer or self.tokenizer, self.target_table
                )
                for tokens, feed in ((copy_tokens, source_feed), (target_tokens, target_feed))
            )
        is_unknown = target_known.flat_values < 0

        # A surface form's first position. Comparing every pair of positions would take memory to
        # the square of the tokens.
        source_keys, target_keys = matching.token_keys(copy_tokens, target_tokens)

        def copy_ids(tokens: tf.RaggedTensor, keys: tf.Tensor, absent: tf.Tensor) -> tf.Tensor:
            _, _, first = matching.first_occurrences(source_keys, keys)
            position = first - tf.gather(source_tokens.row_starts(), tokens.value_rowids())
            return tf.where(first >= 0, vocabulary_size + position, absent)

        source_extended = tf.where(
            source_known.flat_values >= 0,
            source_known.flat_values,
            copy_ids(source_tokens, source_keys, tf.constant(0, tf.int64)),
        )
        unknown = tf.constant(tokenization.UNK_ID, tf.int64)
        labels = tf.where(
            is_unknown, copy_ids(target_tokens, target_keys, unknown), target_known.flat_values
        )
        column = tf.ones([source_tokens.nrows(), 1], tf.int64)
        return is_unknown, {
            "source_tokens": source_tokens,
            "source_ids": source_ids,
            "source_extended_ids": source_tokens.with_flat_values(source_extended),
            "source_feed_ids": source_feed,
            "target_input_ids": tf.concat([column * tokenization.START_ID, target_feed], axis=1),
            "target_extended_ids": tf.concat(
                [target_tokens.with_flat_values(labels), column * tokenization.END_ID], axis=1
            ),
        }

    def _ids_and_feed(
        self, tokens: tf.RaggedTensor, table: Table
    ) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
        """Returns ids, -1 for unknown tokens, and ids to feed, a protected class's for these."""
        known = table.lookup(tokens.flat_values)
        joiner_id = tf.constant(tokenization.SPECIAL_TOKENS.index(tokenization.JOINER), tf.int64)
        # A token that reads `[PAD]` is a word of a text that is already tokenized: it is unknown,
        # so it is copied.
        known = tf.where(known < joiner_id, tf.constant(-1, tf.int64), known)
        if self.tokenizer.syntax.classes[0][0] == TERM_CLASS:
            known = tf.where(known == joiner_id + 1, tf.constant(-1, tf.int64), known)
        if table is self.source_table and "entities" in self.settings:
            known = tf.where(known < table.size() - self.settings["entities"], known, -1)
        classes = protected_class_ids(tokens.flat_values, self.tokenizer.syntax)
        feed = tf.where(known >= 0, known, classes)
        return tokens.with_flat_values(known), tokens.with_flat_values(feed)

    def _add_labels(
        self,
        features: dict[str, tf.RaggedTensor],
        copy_tokens: tf.RaggedTensor,
        target_tokens: tf.RaggedTensor,
        is_unknown: tf.Tensor,
        tags: Mapping[str, tf.Tensor],
    ) -> None:
        """Adds the labels of spans and pointers; entities get ids of their own."""
        settings = self.settings
        if "spans" in settings:
            starts, lengths = span_labels.span_labels(
                copy_tokens, target_tokens, is_unknown, **settings["spans"]
            )
            features.update({copy_head.SPAN_STARTS: starts, copy_head.SPAN_LENGTHS: lengths})
        if settings.get("pointers") == "dictionary":
            lookup = needed(self.tables.dictionary_sources).lookup
            features[copy_head.POINTERS] = pointer_labels.dictionary_pointers(
                copy_tokens, target_tokens, is_unknown, lookup
            )
        if settings.get("pointers") == "entities":
            entity_tags = _tags_of_tokens(
                features["source_tokens"],
                source_features.split_tags(tags[settings["entity_feature"]]),
            )
            numbers, features[copy_head.POINTERS] = pointer_labels.entity_labels(
                copy_tokens, target_tokens, pointer_labels.is_entity(entity_tags)
            )
            source_ids = features["source_ids"]
            ids = pointer_labels.entity_ids(
                source_ids.flat_values, numbers, self.source_table.size(), settings["entities"]
            )
            features["source_ids"] = source_ids.with_flat_values(ids)

    def _word_ends(self, characters: tf.RaggedTensor, kind: str) -> tf.RaggedTensor:
        """Returns where the words end that a segmentation begins with, 1 or 0."""
        if kind == "multigrams":
            alone = is_protected(characters.flat_values, self.tokenizer.syntax)
            return multigram_ends(characters, needed(self.tables.multigrams), alone)
        return scripts.script_ends(characters, kana_alone=kind == "kana")

    def _characters(self, tokens: tf.RaggedTensor, word_length: int) -> tf.RaggedTensor:
        """Returns the characters of each token, ragged `[batch, (length * word_length)]`."""
        classes = protected_class_ids(tokens.flat_values, self.tokenizer.syntax)
        # Where words are composed of characters, a term looks like a placeholder.
        term, placeholder = (
            tf.constant(tokenization.CLASS_TOKENS.index(name), tf.int64)
            for name in (TERM_CLASS, PLACEHOLDER)
        )
        classes = tf.where(classes == term, placeholder, classes)
        unknown = self.source_table.lookup(tokens.flat_values) < 0
        unseen = unknown & (classes != tokenization.UNK_ID)
        lines = tf.where(unseen, characters.class_lines(classes), 0)
        table = needed(self.tables.characters)
        ids = characters.character_ids(tokens.flat_values, table, lines, word_length)
        return tf.RaggedTensor.from_row_splits(
            tf.reshape(ids, [-1]), tokens.row_splits * word_length
        )


def _tags_of_tokens(tokens: tf.RaggedTensor, tags: tf.RaggedTensor) -> tf.Tensor:
    """Returns a tag for each of the flat tokens.

    It is `O` if a served text has fewer tags than tokens, which is refused later.
    """
    places = tf.range(tf.size(tokens.flat_values, out_type=tf.int64))
    rows = tokens.value_rowids()
    index = tf.gather(tags.row_starts(), rows) + places - tf.gather(tokens.row_starts(), rows)
    inside = index < tf.gather(tags.row_limits(), rows)
    tag = tf.gather(tf.concat([tags.flat_values, ["O"]], axis=0), tf.where(inside, index, 0))
    return tf.where(inside, tag, "O")
