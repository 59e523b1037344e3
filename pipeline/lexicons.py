"""The user's lexicon files: word to translation (`data.dictionary`), phrase to entity (`data.copy_lexicon`).

Plain Python, so that a faulty file is reported before TensorFlow is imported. The Vocabulary component writes what it read
into its artifact, in the form that the graph's tables load.
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
    """

    pairs: list
    entries: int
    skipped: int


class CopyLexicon(typing.NamedTuple):
    """Phrases and what a copy of them writes.

    phrases: dict from phrase, as the file has it, to entity; the first of several entities.
    ambiguous: how many entries name another entity for a phrase that has one.
    """

    phrases: dict
    ambiguous: int


def _lines(path, what):
    """Yields (number, text) of the lines of a file that are not empty.

    Raises:
        DataError: the file is missing or not UTF-8.
    """
    # TFX's file system knows buckets too, but takes seconds to import.
    if "://" in str(path):
        from tfx.dsl.io import fileio

        opened = fileio.open(str(path), "rb")
    else:
        try:
            opened = open(path, "rb")
        except OSError as error:
            raise DataError(f"The file of {what}, {path}, cannot be read: {error.strerror}.") from None
    with opened as file:
        for number, raw in enumerate(file, 1):
            try:
                text = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
            except UnicodeDecodeError:
                raise DataError(f"Line {number} of {path} ({what}) is not valid UTF-8: mend the file.") from None
            if text.strip():
                yield number, text


def read_dictionary(path, tokenizer):
    """Reads a dictionary: source word TAB target word, or word TAB reading TAB meaning TAB level (JLPT lists).

    Args:
        path: the file.
        tokenizer: the recipe's `tokenization.Tokenizer`; only entries of one token on either side can be pointed at. Placeholders
            and their like are kept as they are, so they are no entries either.

    Returns:
        A `Dictionary`.

    Raises:
        DataError: the file is missing, or a line is malformed; the sentence names the line.
    """

    def is_plain_word(text):
        return tokenizer.count(text) == 1 and tokenizer.words(text) == [text] and not tokenizer.protected_tokens(text)

    pairs, entries = [], 0
    for number, text in _lines(path, "data.dictionary"):
        cells = [cell.strip() for cell in text.split("\t")]
        chosen = {2: (0, 1), 4: (0, 2)}.get(len(cells))
        if chosen is None or not all(cells[index] for index in chosen):
            raise DataError(
                f"Line {number} of {path} (data.dictionary) must be a source word, a tab and a target word (or four columns: "
                f"word, reading, meaning, level); got {text[:80]!r}."
            )
        # A meaning column lists synonyms, parted by commas: `limit, restriction`.
        translations = cells[chosen[1]].split(",") if len(cells) == 4 else [cells[chosen[1]]]
        for translation in translations:
            entries += 1
            source, target = (tokenizer.normalize(word.strip()) for word in (cells[chosen[0]], translation))
            if is_plain_word(source) and is_plain_word(target):
                pairs.append((source, target))
    return Dictionary(pairs, entries, entries - len(pairs))


def read_copy_lexicon(path, tokenizer):
    """Reads a copy lexicon: `phrase :- CATEGORY : name:type`, which a target writes `name:_type`, or phrase TAB entity.

    Args:
        path: the file.
        tokenizer: the recipe's `tokenization.Tokenizer`; an entity must be one token, for one source position copies it.

    Returns:
        A `CopyLexicon`.

    Raises:
        DataError: the file is missing, or a line is malformed; the sentence names the line.
    """
    phrases, ambiguous = {}, 0
    for number, text in _lines(path, "data.copy_lexicon"):
        phrase, entity = _phrase_and_entity(text)
        phrase, entity = (tokenizer.normalize(" ".join(part.split())) for part in (phrase, entity))
        if not phrase or not entity:
            raise DataError(
                f"Line {number} of {path} (data.copy_lexicon) must be a phrase, a tab and an entity, or "
                f"'phrase :- NP : name:type'; got {text[:80]!r}."
            )
        if tokenizer.count(entity) != 1:
            raise DataError(
                f"The entity {entity!r} in line {number} of {path} (data.copy_lexicon) must be one token, as it stands in the targets."
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
        DataError: see `read_dictionary` and `read_copy_lexicon`.
    """
    from pipeline import tokenization

    tokenizer = tokenization.Tokenizer.of(recipe.data)
    if recipe.data.dictionary:
        if not read_dictionary(recipe.data.dictionary, tokenizer).pairs:
            raise DataError(
                f"The file {recipe.data.dictionary} (data.dictionary) has no entry of one word on either side."
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
