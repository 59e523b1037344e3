"""The files of a Vocabulary artifact: vocabularies, counts and lexicons, their readers and writers.

A vocabulary has one token per line, and the line number is the id. Files of characters and of tags
have the same form.
"""

import collections
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import IO

from pipeline.common.progress import warn
from pipeline.lexicons import dictionaries
from pipeline.recipes.settings import TextSettings, VocabularySettings
from pipeline.text import tokenization, units

SOURCE_VOCABULARY_FILE = "source_vocabulary.txt"
TARGET_VOCABULARY_FILE = "target_vocabulary.txt"
SIDES = ("source", "target")
#: A language model's examples have one text, and one vocabulary, in the target's file.
STREAM_SIDES = ("text",)


def vocabulary_file(side: str) -> str:
    """Returns the name of the file that holds the vocabulary of a side."""
    return SOURCE_VOCABULARY_FILE if side == "source" else TARGET_VOCABULARY_FILE


def counts_file(side: str) -> str:
    """Returns the name of the file that holds all training tokens of a side with their counts."""
    return f"{side}_counts.tsv"


def units_of(side: str) -> str:
    """Returns the key under which a side's units are counted."""
    return f"{side}_units"


def counted_as(settings: TextSettings, side: str) -> str:
    """Returns the key under which a side's tokens are counted: its units, or its words."""
    return units_of(side) if units.cuts(settings, side) else side


def write_lines(folder: str, name: str, lines: Iterable[str]) -> None:
    """Writes a file of the artifact, such as a vocabulary with one token per line."""
    with _open(folder, name, "w") as file:
        file.write("".join(f"{line}\n" for line in lines))


def write_counts(folder: str, side: str, counts: Mapping[str, int]) -> None:
    """Writes all training tokens of a side with their counts, by code point."""
    # JSON keeps a token with a line break on one line.
    lines = (
        f"{json.dumps(token, ensure_ascii=False)}\t{count}"
        for token, count in sorted(counts.items())
    )
    write_lines(folder, counts_file(side), lines)


def read_counts(folder: str, side: str) -> dict[str, int]:
    """Returns what `write_counts` wrote, in the file's order."""
    with _open(folder, counts_file(side), "r") as file:
        # Not splitlines: JSON leaves U+2028 and similar characters as they are.
        lines = file.read().removesuffix("\n").split("\n")
    return {
        json.loads(token): int(count)
        for token, _, count in (line.rpartition("\t") for line in lines if line)
    }


def join_counts(sides: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Returns the sum of counts of tokens."""
    joint: collections.Counter[str] = collections.Counter()
    for counts in sides:
        joint.update(counts)
    return dict(joint)


def read_training_counts(folder: str) -> collections.Counter[str]:
    """Returns how often the target side of the training data has each word, without joiners.

    A word that only the source side has is there too, with 0.
    """
    words: collections.Counter[str] = collections.Counter()
    for side in SIDES:
        for token, count in read_counts(folder, side).items():
            words[token.strip(tokenization.JOINER)] += count if side == "target" else 0
    del words[""]
    return words


def write_lexicons(
    folder: str, settings: VocabularySettings, tokenizer: tokenization.Tokenizer
) -> None:
    """Writes a recipe's lexicons as the graph's tables read them, and warns of unusable entries.

    Args:
        folder: the Vocabulary artifact.
        settings: which name the lexicons.
        tokenizer: the recipe's.

    Raises:
        DataError: a file cannot be read, or the copy lexicon is malformed.
    """
    if path := settings.get("dictionary"):
        dictionary = dictionaries.read_dictionary(path, tokenizer)
        sources, targets = dictionaries.dictionary_tables(dictionary.pairs)
        write_lines(folder, dictionaries.SOURCES_FILE, sources)
        write_lines(folder, dictionaries.TARGETS_FILE, targets)
        if malformed := dictionaries.describe_malformed(dictionary, path):
            warn(f"{malformed}. Malformed lines were skipped.")
        if dictionary.skipped:
            warn(
                f"{dictionary.skipped} of {dictionary.entries} entries of {path} do not have one "
                "plain word on each side and were skipped."
            )
    if path := settings.get("copy_lexicon"):
        lexicon = dictionaries.read_copy_lexicon(path, tokenizer)
        write_lines(folder, dictionaries.COPY_LEXICON_FILE, _copy_lines(lexicon, tokenizer))
        if lexicon.ambiguous:
            warn(
                f"{lexicon.ambiguous} entries of {path} give a second entity to a phrase: the "
                "first counts."
            )


def _copy_lines(
    lexicon: dictionaries.CopyLexicon, tokenizer: tokenization.Tokenizer
) -> Iterator[str]:
    """Yields phrase, tab and entity; a phrase is looked up as the tokens that a text has."""
    import tensorflow as tf

    tokens = tokenizer.tokenize(tf.constant(list(lexicon.phrases)))
    phrases = [b" ".join(row).decode("utf-8") for row in tokens.to_list()]
    # Two phrases may have the same tokens.
    entities: dict[str, str] = {}
    for phrase, entity in zip(phrases, lexicon.phrases.values()):
        entities.setdefault(phrase, entity)
    return (f"{phrase}\t{entity}" for phrase, entity in entities.items())


def _open(folder: str, name: str, mode: str) -> IO[str]:
    # TFX's file system knows buckets too, but takes seconds to import.
    from tfx.dsl.io import fileio

    file: IO[str] = fileio.open(os.path.join(folder, name), mode)
    return file
