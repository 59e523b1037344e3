"""The user's lexicon files:
word to translation (`data.dictionary`), phrase to entity (`data.copy_lexicon`).

Plain Python, so that a faulty file is reported before TensorFlow is imported. The Vocabulary
component writes what it read into its artifact, in the form that the graph's tables load.
"""

import typing

from pipeline.readers import DataError

# In the Vocabulary artifact.
SOURCES_FILE = "dictionary_sources.tsv"  # target word, its source words parted by spaces
TARGETS_FILE = "dictionary_targets.tsv"  # source word, its first target word
COPY_LEXICON_FILE = "copy_lexicon.tsv"  # phrase, the tokens parted by spaces; entity

_ENTITY_MARK = ":-"


class Dictionary(typing.NamedTuple):
    """A dictionary of single words.

    pairs: list of (source word, target word), in the file's order.
    entries: how many translations the file has.
    skipped: how many of them are not one plain word on either side.
    lines: how many lines the file has, empty ones not counted.
    malformed: list of (number, what is wrong) of the lines that are no entry at all.
    """

    pairs: list
    entries: int
    skipped: int
    lines: int
    malformed: list


class CopyLexicon(typing.NamedTuple):
    """Phrases and what a copy of them writes.

    phrases: dict from phrase, as the file has it, to entity; the first of several entities.
    ambiguous: how many entries name another entity for a phrase that has one.
    """

    phrases: dict
    ambiguous: int


def _lines(path, what):
    """Yields (number, text) of the lines of a file that are not empty;
    the text of one that is not UTF-8 is None.

    Raises:
        DataError: the file cannot be read.
    """
    # TFX's file system knows buckets too, but takes seconds to import.
    if "://" in str(path):
        from tfx.dsl.io import fileio

        opened = fileio.open(str(path), "rb")
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


def read_dictionary(path, tokenizer):
    """Reads a dictionary:
    source word TAB target word, or word TAB reading TAB meaning TAB level (JLPT lists).

    Args:
        path: the file.
        tokenizer: the recipe's `tokenization.Tokenizer`; only entries of one token on either side
            can be pointed at. Placeholders and their like are kept as they are, so they are no
            entries either.

    Returns:
        A `Dictionary`; a malformed line costs that line alone.

    Raises:
        DataError: the file cannot be read.
    """

    def is_plain_word(text):
        return (
            tokenizer.count(text) == 1
            and tokenizer.words(text) == [text]
            and not tokenizer.protected_tokens(text)
        )

    pairs, entries, lines, malformed = [], 0, 0, []
    for number, text in _lines(path, "data.dictionary"):
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
                    "reading, meaning, level); "
                    f"got {text[:80]!r}",
                )
            )
            continue
        # A meaning column lists synonyms, parted by commas: `limit, restriction`.
        translations = cells[chosen[1]].split(",") if len(cells) == 4 else [cells[chosen[1]]]
        for translation in translations:
            entries += 1
            source, target = (
                tokenizer.normalize(word.strip()) for word in (cells[chosen[0]], translation)
            )
            if is_plain_word(source) and is_plain_word(target):
                pairs.append((source, target))
    return Dictionary(pairs, entries, entries - len(pairs), lines, malformed)


def describe_malformed(dictionary, path):
    """Returns what people are told of a dictionary's malformed lines, without a full stop; "" where
    there are none.
    """
    if not dictionary.malformed:
        return ""
    number, reason = dictionary.malformed[0]
    return (
        f"{len(dictionary.malformed)} of {dictionary.lines} lines of {path} (data.dictionary) are "
        "malformed; the first is line "
        f"{number}: {reason}"
    )


def read_copy_lexicon(path, tokenizer):
    """Reads a copy lexicon: `phrase :- CATEGORY :
    name:type`, which a target writes `name:_type`, or phrase TAB entity.

    Args:
        path: the file.
        tokenizer: the recipe's `tokenization.Tokenizer`; an entity must be one token, for one
            source position copies it.

    Returns:
        A `CopyLexicon`.

    Raises:
        DataError: the file is missing, or a line is malformed; the sentence names the line.
    """
    phrases, ambiguous = {}, 0
    for number, text in _lines(path, "data.copy_lexicon"):
        if text is None:
            raise DataError(
                f"Line {number} of {path} (data.copy_lexicon) is not valid UTF-8: mend the file."
            )
        phrase, entity = _phrase_and_entity(text)
        phrase, entity = (tokenizer.normalize(" ".join(part.split())) for part in (phrase, entity))
        if not phrase or not entity:
            raise DataError(
                f"Line {number} of {path} (data.copy_lexicon) must be a phrase, a tab and an "
                "entity, or "
                f"'phrase :- NP : name:type'; got {text[:80]!r}."
            )
        if tokenizer.count(entity) != 1:
            raise DataError(
                f"The entity {entity!r} in line {number} of {path} (data.copy_lexicon) must be "
                "one token, as it stands in the targets."
            )
        if phrases.setdefault(phrase, entity) != entity:
            ambiguous += 1
    return CopyLexicon(phrases, ambiguous)


def _phrase_and_entity(text):
    if _ENTITY_MARK not in text:
        phrase, separator, entity = text.partition("\t")
        return (phrase, entity) if separator and "\t" not in entity else ("", "")
    phrase, _, rest = text.partition(_ENTITY_MARK)
    _, _, entity = rest.partition(" : ")
    name, colon, kind = entity.strip().rpartition(":")
    return phrase, f"{name}:_{kind}" if colon and name and kind else ""


def check(recipe):
    """Reads the lexicon files that a recipe names, so that a fault is known before anything runs.

    Raises:
        DataError: see `read_dictionary` and `read_copy_lexicon`; or more lines of a dictionary are
            malformed than `data.max_rejected_share` allows, or nothing in it can be used.
    """
    from pipeline.text import tokenization

    tokenizer = tokenization.Tokenizer.of(recipe.data)
    if path := recipe.data.dictionary:
        dictionary = read_dictionary(path, tokenizer)
        allowed = recipe.data.max_rejected_share
        if len(dictionary.malformed) > allowed * dictionary.lines:
            raise DataError(
                f"{describe_malformed(dictionary, path)}. That is above data.max_rejected_share "
                f"({allowed:.1%}): mend the file or raise "
                "the share."
            )
        if not dictionary.pairs:
            raise DataError(
                f"The file {path} (data.dictionary) has no entry of one word on either side."
            )
    if recipe.data.copy_lexicon:
        if not read_copy_lexicon(recipe.data.copy_lexicon, tokenizer).phrases:
            raise DataError(f"The file {recipe.data.copy_lexicon} (data.copy_lexicon) is empty.")


def dictionary_tables(pairs):
    """Returns the lines of `SOURCES_FILE` and of `TARGETS_FILE`, two lists."""
    sources, targets = {}, {}
    for source, target in pairs:
        sources.setdefault(target, {})[source] = None
        targets.setdefault(source, target)
    return (
        [f"{target}\t{' '.join(words)}" for target, words in sources.items()],
        [f"{source}\t{target}" for source, target in targets.items()],
    )
