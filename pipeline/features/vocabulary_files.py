"""The files of a Vocabulary artifact: vocabularies, counts and lexicons, their readers and writers."""

import collections
import json
import os

from tfx.dsl.io import fileio

from pipeline.lexicons import dictionaries
from pipeline.text import tokenization, units

SIDES = ("source", "target")
STREAM_SIDES = (
    "text",
)  # a language model's examples have one text, and one vocabulary, in the target's file


def counts_file(side):
    """Returns the name of the file that holds all training tokens of a side with their counts."""
    return f"{side}_counts.tsv"


def choose_tokens(counts, size, min_count, protected_min_count):
    """Cuts counted tokens down to a vocabulary.

    Args:
        counts: dict from token to count.
        size: the most entries, special tokens included.
        min_count: rarer words and punctuation are left out.
        protected_min_count: rarer placeholders, tags, URLs and options are left out, so that they
            are copied.

    Returns:
        List of tokens: the special ones, then the others by falling count, then by code point.
    """
    chosen = []
    for token, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        least = protected_min_count if tokenization.is_protected(token) else min_count
        # A vocabulary file holds a token a line: a tag that spans lines, of whatever kind, stays
        # unknown, and is copied.
        if (
            count >= least
            and token not in tokenization.SPECIAL_TOKENS
            and token.splitlines() == [token]
        ):
            chosen.append(token)
    return [*tokenization.SPECIAL_TOKENS, *chosen][:size]


def choose_units(counts, model, protected_min_count, touching=True):
    """Returns the vocabulary of a side whose words are cut into units:
    all that its model has, so that nothing is unknown for being rare.

    Args:
        counts: dict from unit to count.
        model: the side's sentencepiece model, as bytes.
        protected_min_count: rarer placeholders, tags, URLs and options are left out, so that they
            are copied.
        touching: whether the tokenizer cuts punctuation off words; see `units.possible_units`.

    Returns:
        As `choose_tokens`.
    """
    counts = {**dict.fromkeys(units.possible_units(model, touching), 0), **counts}
    return choose_tokens(
        counts, len(tokenization.SPECIAL_TOKENS) + len(counts), 0, protected_min_count
    )


def units_of(side):
    """Returns the key under which a side's units are counted."""
    return f"{side}_units"


def counted_as(settings, side):
    """Returns the key under which what a side's texts are cut into is counted:
    its units, or its words.
    """
    return units_of(side) if units.cuts(settings, side) else side


def write_lexicons(uri, settings, tokenizer):
    """Writes a recipe's lexicons as the graph's tables read them, and says what of them cannot be
    used.

    Args:
        uri: the Vocabulary artifact's folder.
        settings: what `configs.vocabulary_settings` gives.
        tokenizer: the recipe's `tokenization.Tokenizer`.

    Raises:
        DataError: a file cannot be read, or the copy lexicon is malformed.
    """

    def write(name, lines):
        with fileio.open(os.path.join(uri, name), "w") as file:
            file.write("".join(f"{line}\n" for line in lines))

    if path := settings.get("dictionary"):
        dictionary = dictionaries.read_dictionary(path, tokenizer)
        sources, targets = dictionaries.dictionary_tables(dictionary.pairs)
        write(dictionaries.SOURCES_FILE, sources)
        write(dictionaries.TARGETS_FILE, targets)
        if said := dictionaries.describe_malformed(dictionary, path):
            print(f"  {said}. Malformed lines are skipped.", flush=True)
        if dictionary.skipped:
            print(
                f"  {dictionary.skipped} of {dictionary.entries} entries of {path} are not one "
                "plain word on either side: skipped.",
                flush=True,
            )
    if path := settings.get("copy_lexicon"):
        import tensorflow as tf

        lexicon = dictionaries.read_copy_lexicon(path, tokenizer)
        # A phrase is looked up as the tokens that a text has; two phrases may come to the same
        # tokens.
        phrases = [
            " ".join(tokens)
            for tokens in _decoded(tokenizer.tokenize(tf.constant(list(lexicon.phrases))))
        ]
        entities = {}
        for phrase, entity in zip(phrases, lexicon.phrases.values()):
            entities.setdefault(phrase, entity)
        write(
            dictionaries.COPY_LEXICON_FILE,
            (f"{phrase}\t{entity}" for phrase, entity in entities.items()),
        )
        if lexicon.ambiguous:
            print(
                f"  {lexicon.ambiguous} entries of {path} name another entity for a phrase that "
                "has one: the first counts.",
                flush=True,
            )


def _decoded(tokens):
    return [[token.decode("utf-8") for token in row] for row in tokens.to_list()]


def join_counts(sides):
    """Adds up dicts from token to count."""
    joint = collections.Counter()
    for counts in sides:
        joint.update(counts)
    return dict(joint)


def read_counts(uri, side):
    """Returns all training tokens of a side with their counts, a dict in the file's order."""
    with fileio.open(os.path.join(uri, counts_file(side)), "r") as file:
        # Not splitlines: JSON leaves U+2028 and its like as they are.
        lines = file.read().removesuffix("\n").split("\n")
    return {
        json.loads(token): int(count)
        for token, _, count in (line.rpartition("\t") for line in lines if line)
    }


def read_training_counts(uri):
    """Returns a Counter of the words of the training data, without joiners:
    those of either side, counted on the target side.

    A word that only the source side holds is there too, with 0.
    """
    words = collections.Counter()
    for side in SIDES:
        for token, count in read_counts(uri, side).items():
            words[token.strip(tokenization.JOINER)] += count if side == "target" else 0
    del words[""]
    return words
