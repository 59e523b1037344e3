"""The work of Vocabulary: a word count in Beam, and a cut by frequency."""

import json
import os
from typing import Any

import apache_beam as beam
from tfx.dsl.components.base import base_beam_executor
from tfx.dsl.io import fileio
from tfx.types import artifact_utils

from components.artifacts import (
    EXAMPLES_KEY,
    SUBWORDS_KEY,
    VOCABULARY_KEY,
    Artifacts,
    folder_of,
    optional_folder_of,
)
from components.count_tokens import CountTokens
from pipeline.features import pointer_labels, preprocessing, source_features
from pipeline.features.vocabulary_files import (
    choose_tokens,
    choose_units,
    counted_as,
    counts_file,
    join_counts,
    write_lexicons,
)
from pipeline.recipes import sections
from pipeline.recipes.settings import VocabularySettings
from pipeline.tasks import task_named
from pipeline.text import characters, tokenization, units

CONFIG_KEY = "vocabulary_config"
TEXT_SETTINGS_KEY = "text_settings"


class Executor(base_beam_executor.BaseBeamExecutor):
    """Counts the train split and writes the vocabulary files."""

    def Do(
        self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: dict[str, Any]
    ) -> None:
        """Writes the vocabularies, the counts and the lexicons.

        Raises:
            pipeline.readers.DataError: a lexicon cannot be read.
        """
        config = sections.VocabularyConfig(**json.loads(exec_properties[CONFIG_KEY]))
        settings: VocabularySettings = json.loads(exec_properties[TEXT_SETTINGS_KEY])
        tokenizer = tokenization.Tokenizer(**settings["tokenizer"])
        columns = settings.get("source_features", ())
        sides = task_named(settings.get("task", "seq2seq")).text_features()
        tokenizers = {side: units.word_tokenizer(settings, side) for side in sides}
        uri = folder_of(output_dict, VOCABULARY_KEY)
        subwords_uri = optional_folder_of(input_dict, SUBWORDS_KEY)
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
