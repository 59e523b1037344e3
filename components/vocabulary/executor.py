"""The work of Vocabulary: a word count in Beam, and a cut by frequency."""

import collections
import json
import os

import apache_beam as beam
from tfx.dsl.components.base import base_beam_executor
from tfx.dsl.io import fileio
from tfx.types import artifact_utils

from pipeline import characters, configs, lexicons, pointer_labels, preprocessing, source_features, tokenization, units
from pipeline.recipe_choices import LANGUAGE_MODEL

EXAMPLES_KEY = "examples"
VOCABULARY_KEY = "vocabulary"
SUBWORDS_KEY = "subwords"
CONFIG_KEY = "vocabulary_config"
TEXT_SETTINGS_KEY = "text_settings"
SIDES = ("source", "target")
STREAM_SIDES = ("text",)  # a language model's examples have one text, and one vocabulary, in the target's file


def counts_file(side):
    """Returns the name of the file that holds all training tokens of a side with their counts."""
    return f"{side}_counts.tsv"


def choose_tokens(counts, size, min_count, protected_min_count):
    """Cuts counted tokens down to a vocabulary.

    Args:
        counts: dict from token to count.
        size: the most entries, special tokens included.
        min_count: rarer words and punctuation are left out.
        protected_min_count: rarer placeholders, tags, URLs and options are left out, so that they are copied.

    Returns:
        List of tokens: the special ones, then the others by falling count, then by code point.
    """
    chosen = []
    for token, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        least = protected_min_count if tokenization.is_protected(token) else min_count
        # A vocabulary file holds a token a line: a tag that spans lines, of whatever kind, stays unknown, and is copied.
        if count >= least and token not in tokenization.SPECIAL_TOKENS and token.splitlines() == [token]:
            chosen.append(token)
    return [*tokenization.SPECIAL_TOKENS, *chosen][:size]


def choose_units(counts, model, protected_min_count, touching=True):
    """Returns the vocabulary of a side whose words are cut into units: all that its model has, so that nothing is unknown for being rare.

    Args:
        counts: dict from unit to count.
        model: the side's sentencepiece model, as bytes.
        protected_min_count: rarer placeholders, tags, URLs and options are left out, so that they are copied.
        touching: whether the tokenizer cuts punctuation off words; see `units.possible_units`.

    Returns:
        As `choose_tokens`.
    """
    counts = {**dict.fromkeys(units.possible_units(model, touching), 0), **counts}
    return choose_tokens(counts, len(tokenization.SPECIAL_TOKENS) + len(counts), 0, protected_min_count)


def units_of(side):
    """Returns the key under which a side's units are counted."""
    return f"{side}_units"


def counted_as(settings, side):
    """Returns the key under which what a side's texts are cut into is counted: its units, or its words."""
    return units_of(side) if units.cuts(settings, side) else side


class CountTokens(beam.DoFn):
    """Batches of serialized examples to (side, token) pairs, (column, tag) pairs, and (side's units, unit) pairs.

    Args:
        tokenizers: dict from each feature that is a text to what cuts it into words.
        columns: the features that are tags.
        settings, subwords_uri: what `units.tokenizer_of` takes, where words are cut.
    """

    def __init__(self, tokenizers, columns=(), settings=None, subwords_uri=None):
        super().__init__()
        self._tokenizers = tokenizers
        self._columns = columns
        self._settings = settings or {}
        self._subwords_uri = subwords_uri

    def setup(self):
        self._units = {
            side: units.tokenizer_of(self._settings, self._subwords_uri, side)
            for side in self._tokenizers
            if units.cuts(self._settings, side)
        }

    def process(self, serialized):
        import tensorflow as tf

        features = {side: tf.io.FixedLenFeature([], tf.string) for side in (*self._tokenizers, *self._columns)}
        parsed = tf.io.parse_example(tf.constant(serialized), features)
        for side, tokenizer in self._tokenizers.items():
            for token in tokenizer.tokenize(parsed[side]).flat_values.numpy():
                yield side, token.decode("utf-8")
        for side, tokenizer in self._units.items():
            for unit in tokenizer.tokenize(parsed[side]).flat_values.numpy():
                yield units_of(side), unit.decode("utf-8")
        for column in self._columns:
            for tag in source_features.split_tags(parsed[column]).flat_values.numpy():
                yield column, tag.decode("utf-8")


class Executor(base_beam_executor.BaseBeamExecutor):
    """Counts the train split and writes the vocabulary files."""

    def Do(self, input_dict, output_dict, exec_properties):  # noqa: N802 (TFX's name)
        config = configs.VocabularyConfig(**json.loads(exec_properties[CONFIG_KEY]))
        settings = json.loads(exec_properties[TEXT_SETTINGS_KEY])
        tokenizer = tokenization.Tokenizer(**settings["tokenizer"])
        columns = settings.get("source_features", ())
        sides = STREAM_SIDES if settings.get("task") == LANGUAGE_MODEL else SIDES
        tokenizers = {side: units.word_tokenizer(settings, side) for side in sides}
        uri = artifact_utils.get_single_uri(output_dict[VOCABULARY_KEY])
        subwords_uri = artifact_utils.get_single_uri(input_dict[SUBWORDS_KEY]) if input_dict.get(SUBWORDS_KEY) else None
        fileio.makedirs(uri)
        pattern = os.path.join(artifact_utils.get_split_uri(input_dict[EXAMPLES_KEY], "train"), "*")

        write_lexicons(uri, settings, tokenizer)

        def write(counted):
            names = [counted_as(settings, side) for side in sides]
            counts = {name: {} for name in (*sides, *columns, *names)}
            for (side, token), count in counted:
                counts[side][token] = count
            for side, of_side in zip(sides, names):
                name = (
                    preprocessing.SOURCE_VOCABULARY_FILE if side == "source" else preprocessing.TARGET_VOCABULARY_FILE
                )
                size = config.source_size if side == "source" else config.target_size
                chosen_from = join_counts([counts[key] for key in names]) if config.joint else counts[of_side]
                if units.cuts(settings, side):
                    model = units.read_model(subwords_uri, side)
                    touching = units.word_tokenizer(settings, side).kind == "text"
                    tokens = choose_units(chosen_from, model, config.protected_min_count, touching)
                else:
                    tokens = choose_tokens(chosen_from, size, config.min_count, config.protected_min_count)
                if side == "source":
                    # The last ids; a word that reads like one stays unknown.
                    entities = [pointer_labels.entity_name(number + 1) for number in range(settings.get("entities", 0))]
                    tokens = [token for token in tokens if token not in entities] + entities
                with fileio.open(os.path.join(uri, name), "w") as file:
                    file.write("".join(f"{token}\n" for token in tokens))
            for name in dict.fromkeys((*sides, *names)):
                with fileio.open(os.path.join(uri, counts_file(name)), "w") as file:
                    # JSON keeps a token with a line break on one line.
                    lines = (f"{json.dumps(t, ensure_ascii=False)}\t{n}\n" for t, n in sorted(counts[name].items()))
                    file.write("".join(lines))
            if settings.get("characters"):
                chosen = characters.choose(
                    characters.count(counts[names[0]]), config.characters, config.character_min_count
                )
                with fileio.open(os.path.join(uri, characters.CHARACTERS_FILE), "w") as file:
                    file.write("".join(f"{character}\n" for character in chosen))
            for column in columns:
                tags = set(counts[column]) - set(source_features.TAG_SPECIALS)
                tags = sorted(tags, key=lambda tag, of=counts[column]: (-of[tag], tag))
                with fileio.open(os.path.join(uri, source_features.tags_file(column)), "w") as file:
                    file.write("".join(f"{tag}\n" for tag in (*source_features.TAG_SPECIALS, *tags)))

        with self._make_beam_pipeline() as pipeline:
            _ = (
                pipeline
                | "Read" >> beam.io.ReadFromTFRecord(pattern)
                | "Batch" >> beam.BatchElements(min_batch_size=256, max_batch_size=4096)
                | "Tokenize" >> beam.ParDo(CountTokens(tokenizers, columns, settings, subwords_uri))
                | "Count" >> beam.combiners.Count.PerElement()
                | "List" >> beam.combiners.ToList()
                | "Write" >> beam.Map(write)
            )


def write_lexicons(uri, settings, tokenizer):
    """Writes a recipe's lexicons as the graph's tables read them, and says what of them cannot be used.

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
        dictionary = lexicons.read_dictionary(path, tokenizer)
        sources, targets = lexicons.dictionary_tables(dictionary.pairs)
        write(lexicons.SOURCES_FILE, sources)
        write(lexicons.TARGETS_FILE, targets)
        if said := lexicons.describe_malformed(dictionary, path):
            print(f"  {said}. Malformed lines are skipped.", flush=True)
        if dictionary.skipped:
            print(
                f"  {dictionary.skipped} of {dictionary.entries} entries of {path} are not one plain word on either side: skipped.",
                flush=True,
            )
    if path := settings.get("copy_lexicon"):
        import tensorflow as tf

        lexicon = lexicons.read_copy_lexicon(path, tokenizer)
        # A phrase is looked up as the tokens that a text has; two phrases may come to the same tokens.
        phrases = [" ".join(tokens) for tokens in _decoded(tokenizer.tokenize(tf.constant(list(lexicon.phrases))))]
        entities = {}
        for phrase, entity in zip(phrases, lexicon.phrases.values()):
            entities.setdefault(phrase, entity)
        write(lexicons.COPY_LEXICON_FILE, (f"{phrase}\t{entity}" for phrase, entity in entities.items()))
        if lexicon.ambiguous:
            print(
                f"  {lexicon.ambiguous} entries of {path} name another entity for a phrase that has one: the first counts.",
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
    return {json.loads(token): int(count) for token, _, count in (line.rpartition("\t") for line in lines if line)}


def read_training_counts(uri):
    """Returns a Counter of the words of the training data, without joiners: those of either side, counted on the target side.

    A word that only the source side holds is there too, with 0.
    """
    words = collections.Counter()
    for side in SIDES:
        for token, count in read_counts(uri, side).items():
            words[token.strip(tokenization.JOINER)] += count if side == "target" else 0
    del words[""]
    return words
