"""The user's lexicon files: words to translations, and phrases to entities.

The keys `data.dictionary` and `data.copy_lexicon` name them. Plain Python, so that errors in a file
are reported before TensorFlow is imported. The Vocabulary component writes the lexicons into its
artifact, in the form that the graph's tables load.
"""

import os
import typing
from collections.abc import Iterable, Iterator
from typing import IO

from pipeline.common.whole_files import is_remote
from pipeline.readers import DataError
from pipeline.recipes.recipe_keys import RecipeKeys
from pipeline.text.tokenization import Tokenizer

# In the Vocabulary artifact.
# Target word, its source words separated by spaces.
SOURCES_FILE = "dictionary_sources.tsv"
# Source word, its first target word.
TARGETS_FILE = "dictionary_targets.tsv"
# Phrase, its tokens separated by spaces; entity.
COPY_LEXICON_FILE = "copy_lexicon.tsv"

_ENTITY_MARK = ":-"


class Dictionary(typing.NamedTuple):
    """A dictionary of single words.

    Attributes:
        pairs: (source word, target word), in the file's order.
        entries: how many translations the file has.
        skipped: how many of them are not one plain word on either side.
        lines: how many lines the file has, without empty ones.
        malformed: (number, error) of the malformed lines.
    """

    pairs: list[tuple[str, str]]
    entries: int
    skipped: int
    lines: int
    malformed: list[tuple[int, str]]


class CopyLexicon(typing.NamedTuple):
    """Phrases and the entities that a copy of them writes.

    Attributes:
        phrases: from phrase, as the file has it, to entity; the first of several entities.
        ambiguous: how many entries name another entity for a phrase that has one.
    """

    phrases: dict[str, str]
    ambiguous: int


def _lines(path: str, what: str) -> Iterator[tuple[int, str | None]]:
    """Yields (number, text) of the lines of a file that are not empty.

    The text of a line that is not UTF-8 is None.

    Raises:
        DataError: the file cannot be read.
    """
    # TFX's file system knows buckets too, but takes seconds to import.
    opened: IO[bytes]
    if is_remote(path):
        from tfx.dsl.io import fileio

        opened = fileio.open(path, "rb")
    else:
        try:
            opened = open(path, "rb")
        except OSError as error:
            raise DataError(
                f"The file of {what}, {path}, cannot be read: {error.strerror}."
            ) from None
    with opened as file:
        for number, raw in enumerate(file, 1):
            try:
                text = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
            except UnicodeDecodeError:
                yield number, None
                continue
            if text.strip():
                yield number, text


def read_dictionary(path: str | os.PathLike[str], tokenizer: Tokenizer) -> Dictionary:
    """Reads a dictionary; a malformed line affects no other.

    A line is source word TAB target word, or word TAB reading TAB meaning TAB level (JLPT lists).

    Args:
        path: the file.
        tokenizer: the recipe's; only entries of one token on either side can be pointed at.
            Protected tokens such as placeholders stay as they are, so they are not entries either.

    Raises:
        DataError: the file cannot be read.
    """

    def is_plain_word(text: str) -> bool:
        return (
            tokenizer.count(text) == 1
            and tokenizer.words(text) == [text]
            and not tokenizer.protected_tokens(text)
        )

    pairs: list[tuple[str, str]] = []
    malformed: list[tuple[int, str]] = []
    entries = lines = 0
    for number, text in _lines(os.fspath(path), "data.dictionary"):
        lines += 1
        if text is None:
            malformed.append((number, "it is not valid UTF-8"))
            continue
        cells = [cell.strip() for cell in text.split("\t")]
        chosen = {2: (0, 1), 4: (0, 2)}.get(len(cells))
        if chosen is None or not all(cells[index] for index in chosen):
            malformed.append(
                (
                    number,
                    "it must be a source word, a tab and a target word (or four columns: word, "
                    f"reading, meaning, level); got {text[:80]!r}",
                )
            )
            continue
        # A meaning column lists synonyms, separated by commas: `limit, restriction`.
        translations = cells[chosen[1]].split(",") if len(cells) == 4 else [cells[chosen[1]]]
        for translation in translations:
            entries += 1
            source, target = (
                tokenizer.normalize(word.strip()) for word in (cells[chosen[0]], translation)
            )
            if is_plain_word(source) and is_plain_word(target):
                pairs.append((source, target))
    return Dictionary(pairs, entries, entries - len(pairs), lines, malformed)


def describe_malformed(dictionary: Dictionary, path: str | os.PathLike[str]) -> str:
    """Returns a sentence about malformed lines, without a full stop; "" if there are none."""
    if not dictionary.malformed:
        return ""
    number, reason = dictionary.malformed[0]
    return (
        f"{len(dictionary.malformed)} of {dictionary.lines} lines of {path} (data.dictionary) are "
        f"malformed; the first is line {number}: {reason}"
    )


def read_copy_lexicon(path: str | os.PathLike[str], tokenizer: Tokenizer) -> CopyLexicon:
    """Reads a copy lexicon.

    A line is `phrase :- CATEGORY : name:type`, which a target writes `name:_type`, or phrase TAB
    entity.

    Args:
        path: the file.
        tokenizer: the recipe's; an entity must be one token, for one source position copies it.

    Raises:
        DataError: the file is missing, or a line is malformed; the sentence names the line.
    """
    phrases: dict[str, str] = {}
    ambiguous = 0
    for number, text in _lines(os.fspath(path), "data.copy_lexicon"):
        if text is None:
            raise DataError(
                f"Line {number} of {path} (data.copy_lexicon) is not valid UTF-8: correct the file."
            )
        phrase, entity = _phrase_and_entity(text)
        phrase, entity = (tokenizer.normalize(" ".join(part.split())) for part in (phrase, entity))
        if not phrase or not entity:
            raise DataError(
                f"Line {number} of {path} (data.copy_lexicon) must be a phrase, a tab and an "
                f"entity, or 'phrase :- NP : name:type'; got {text[:80]!r}."
            )
        if tokenizer.count(entity) != 1:
            raise DataError(
                f"The entity {entity!r} in line {number} of {path} (data.copy_lexicon) must be one "
                "token, as in the targets."
            )
        if phrases.setdefault(phrase, entity) != entity:
            ambiguous += 1
    return CopyLexicon(phrases, ambiguous)


def _phrase_and_entity(text: str) -> tuple[str, str]:
    if _ENTITY_MARK not in text:
        phrase, separator, entity = text.partition("\t")
        return (phrase, entity) if separator and "\t" not in entity else ("", "")
    phrase, _, rest = text.partition(_ENTITY_MARK)
    _, _, entity = rest.partition(" : ")
    name, colon, kind = entity.strip().rpartition(":")
    return phrase, f"{name}:_{kind}" if colon and name and kind else ""


def check(recipe: RecipeKeys) -> None:
    """Reads the lexicon files that a recipe names, so that errors are known before anything runs.

    Raises:
        DataError: see `read_dictionary` and `read_copy_lexicon`; or more lines of a dictionary are
            malformed than `data.max_rejected_share` allows, or nothing in it can be used.
    """
    tokenizer = Tokenizer.of(recipe.data)
    if path := recipe.data.dictionary:
        dictionary = read_dictionary(path, tokenizer)
        allowed = recipe.data.max_rejected_share
        if len(dictionary.malformed) > allowed * dictionary.lines:
            raise DataError(
                f"{describe_malformed(dictionary, path)}. That is above data.max_rejected_share "
                f"({allowed:.1%}): correct the file or raise the share."
            )
        if not dictionary.pairs:
            raise DataError(
                f"The file {path} (data.dictionary) has no entry of one word on either side."
            )
    if recipe.data.copy_lexicon:
        if not read_copy_lexicon(recipe.data.copy_lexicon, tokenizer).phrases:
            raise DataError(f"The file {recipe.data.copy_lexicon} (data.copy_lexicon) is empty.")


def dictionary_tables(pairs: Iterable[tuple[str, str]]) -> tuple[list[str], list[str]]:
    """Returns the lines of `SOURCES_FILE` and of `TARGETS_FILE`."""
    sources: dict[str, dict[str, None]] = {}
    targets: dict[str, str] = {}
    for source, target in pairs:
        sources.setdefault(target, {})[source] = None
        targets.setdefault(source, target)
    return (
        [f"{target}\t{' '.join(words)}" for target, words in sources.items()],
        [f"{source}\t{target}" for source, target in targets.items()],
    )
