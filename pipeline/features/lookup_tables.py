"""The lookup tables of the graph, read from the files of artifacts."""

import dataclasses
import os
from collections.abc import Callable
from typing import TypeAlias

import tensorflow as tf

from pipeline.features import source_features
from pipeline.features.multigram_ends import multigram_table
from pipeline.features.table import Table
from pipeline.lexicons import dictionaries, translation_lexicon
from pipeline.recipes.settings import TransformConfig
from pipeline.text import characters, multigrams

#: A function of a path and of a function that makes a table of it, which loads the table.
Load: TypeAlias = Callable[[str, Callable[[str], Table]], Table]


@dataclasses.dataclass(frozen=True)
class FeatureTables:
    """The tables that a recipe's features need beside the vocabularies.

    Attributes:
        tags: from each column of tags to the numbers of its tags.
        copy_lexicon: from phrase to entity.
        longest_phrase: how many tokens the longest phrase of `copy_lexicon` has.
        dictionary_sources: from target word to its source words.
        translations: from source word to target word.
        lexicon_rows: from source word to the number of its line.
        term_translations: from source word to the translation that a term of training has.
        characters: from character to its number.
        multigrams: from word, its characters separated by spaces, to log p.
    """

    tags: dict[str, Table] = dataclasses.field(default_factory=dict)
    copy_lexicon: Table | None = None
    longest_phrase: int = 0
    dictionary_sources: Table | None = None
    translations: Table | None = None
    lexicon_rows: Table | None = None
    term_translations: Table | None = None
    characters: Table | None = None
    multigrams: Table | None = None


def needed(table: Table | None) -> Table:
    """Returns a table that the settings need."""
    if table is None:
        raise ValueError("A table that the recipe's settings need is missing.")
    return table


def vocabulary_table(path: str) -> Table:
    """Returns a lookup table from token to line number, -1 for tokens that the file lacks."""
    initializer = tf.lookup.TextFileInitializer(
        path,
        tf.string,
        tf.lookup.TextFileIndex.WHOLE_LINE,
        tf.int64,
        tf.lookup.TextFileIndex.LINE_NUMBER,
    )
    table: Table = tf.lookup.StaticHashTable(initializer, default_value=-1)
    return table


def key_table(path: str) -> Table:
    """Returns a lookup table from the first column of a TSV file to its line number, else -1."""
    initializer = tf.lookup.TextFileInitializer(
        path, tf.string, 0, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER, delimiter="\t"
    )
    table: Table = tf.lookup.StaticHashTable(initializer, default_value=-1)
    return table


def text_table(path: str) -> Table:
    """Returns a lookup table from the first column of a TSV file to the second, else ""."""
    initializer = tf.lookup.TextFileInitializer(path, tf.string, 0, tf.string, 1, delimiter="\t")
    table: Table = tf.lookup.StaticHashTable(initializer, default_value="")
    return table


def longest_phrase(path: str) -> int:
    """Returns how many tokens, separated by spaces, the longest phrase of a lexicon file has."""
    with tf.io.gfile.GFile(path) as file:
        # Not splitlines, which cuts at more than line feeds.
        return max(
            (line.split("\t")[0].count(" ") + 1 for line in file.read().split("\n") if line),
            default=0,
        )


def load_tables(folder: str, settings: TransformConfig, load: Load) -> FeatureTables:
    """Loads the tables that the settings need.

    Args:
        folder: the Vocabulary artifact.
        settings: with `lexicon_uri`, the Lexicon artifact, if they ask for it.
        load: loads one table; Transform must track it.
    """

    def table(is_needed: object, name: str, make: Callable[[str], Table]) -> Table | None:
        return load(os.path.join(folder, name), make) if is_needed else None

    def lexicon_table(name: str, make: Callable[[str], Table]) -> Table:
        return load(os.path.join(settings["lexicon_uri"], name), make)

    has_copies = settings.get("copy_lexicon", False)
    translate = settings.get("translate")
    return FeatureTables(
        tags={
            name: load(os.path.join(folder, source_features.tags_file(name)), vocabulary_table)
            for name in settings.get("source_features", ())
        },
        copy_lexicon=table(has_copies, dictionaries.COPY_LEXICON_FILE, text_table),
        longest_phrase=longest_phrase(os.path.join(folder, dictionaries.COPY_LEXICON_FILE))
        if has_copies
        else 0,
        dictionary_sources=table(
            settings.get("pointers") == "dictionary", dictionaries.SOURCES_FILE, text_table
        ),
        characters=table("word_length" in settings, characters.CHARACTERS_FILE, vocabulary_table),
        multigrams=table(
            settings.get("word_ends") == "multigrams", multigrams.FILE, multigram_table
        ),
        translations=lexicon_table(translation_lexicon.BEST_FILE, text_table)
        if translate == "lexicon"
        else table(translate == "dictionary", dictionaries.TARGETS_FILE, text_table),
        lexicon_rows=lexicon_table(translation_lexicon.ROWS_FILE, key_table)
        if settings.get("lexicon_rows")
        else None,
        term_translations=lexicon_table(translation_lexicon.BEST_FILE, text_table)
        if settings.get("term_share")
        else None,
    )
