"""The work of Vocabulary: a word count in Beam, and a cut by frequency."""

import json
import os

import apache_beam as beam
from tfx.dsl.components.base import base_beam_executor
from tfx.dsl.io import fileio
from tfx.types import artifact_utils

from pipeline.features import pointer_labels, preprocessing, source_features
from pipeline.features.vocabulary_files import (
    choose_tokens,
    choose_units,
    counted_as,
    counts_file,
    join_counts,
    units_of,
    write_lexicons,
)
from pipeline.recipes import sections
from pipeline.tasks import task_named
from pipeline.text import characters, tokenization, units

EXAMPLES_KEY = "examples"
VOCABULARY_KEY = "vocabulary"
SUBWORDS_KEY = "subwords"
CONFIG_KEY = "vocabulary_config"
TEXT_SETTINGS_KEY = "text_settings"


class CountTokens(beam.DoFn):
    """Batches of serialized examples to (side, token) pairs, (column, tag) pairs, and (side's
    units, unit) pairs.

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

        features = {
            side: tf.io.FixedLenFeature([], tf.string)
            for side in (*self._tokenizers, *self._columns)
        }
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
        config = sections.VocabularyConfig(**json.loads(exec_properties[CONFIG_KEY]))
        settings = json.loads(exec_properties[TEXT_SETTINGS_KEY])
        tokenizer = tokenization.Tokenizer(**settings["tokenizer"])
        columns = settings.get("source_features", ())
        sides = task_named(settings.get("task", "seq2seq")).text_features()
        tokenizers = {side: units.word_tokenizer(settings, side) for side in sides}
        uri = artifact_utils.get_single_uri(output_dict[VOCABULARY_KEY])
        subwords_uri = (
            artifact_utils.get_single_uri(input_dict[SUBWORDS_KEY])
            if input_dict.get(SUBWORDS_KEY)
            else None
        )
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
                    preprocessing.SOURCE_VOCABULARY_FILE
                    if side == "source"
                    else preprocessing.TARGET_VOCABULARY_FILE
                )
                size = config.source_size if side == "source" else config.target_size
                chosen_from = (
                    join_counts([counts[key] for key in names]) if config.joint else counts[of_side]
                )
                if units.cuts(settings, side):
                    model = units.read_model(subwords_uri, side)
                    touching = units.word_tokenizer(settings, side).kind == "text"
                    tokens = choose_units(chosen_from, model, config.protected_min_count, touching)
                else:
                    tokens = choose_tokens(
                        chosen_from, size, config.min_count, config.protected_min_count
                    )
                if side == "source":
                    # The last ids; a word that reads like one stays unknown.
                    entities = [
                        pointer_labels.entity_name(number + 1)
                        for number in range(settings.get("entities", 0))
                    ]
                    tokens = [token for token in tokens if token not in entities] + entities
                with fileio.open(os.path.join(uri, name), "w") as file:
                    file.write("".join(f"{token}\n" for token in tokens))
            for name in dict.fromkeys((*sides, *names)):
                with fileio.open(os.path.join(uri, counts_file(name)), "w") as file:
                    # JSON keeps a token with a line break on one line.
                    lines = (
                        f"{json.dumps(t, ensure_ascii=False)}\t{n}\n"
                        for t, n in sorted(counts[name].items())
                    )
                    file.write("".join(lines))
            if settings.get("characters"):
                chosen = characters.choose(
                    characters.count(counts[names[0]]),
                    config.characters,
                    config.character_min_count,
                )
                with fileio.open(os.path.join(uri, characters.CHARACTERS_FILE), "w") as file:
                    file.write("".join(f"{character}\n" for character in chosen))
            for column in columns:
                tags = set(counts[column]) - set(source_features.TAG_SPECIALS)
                tags = sorted(tags, key=lambda tag, of=counts[column]: (-of[tag], tag))
                with fileio.open(os.path.join(uri, source_features.tags_file(column)), "w") as file:
                    file.write(
                        "".join(f"{tag}\n" for tag in (*source_features.TAG_SPECIALS, *tags))
                    )

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
