"""The work of Vocabulary: a word count in Beam, and a cut by frequency."""

import json
import os
from collections.abc import Iterable
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
from components.untyped_in_beam import untyped_in_beam
from components.vocabulary.multigram_texts import TEXTS, DrawnTexts
from pipeline.features import source_features
from pipeline.features.vocabulary_choice import choose_side
from pipeline.features.vocabulary_files import (
    counted_as,
    join_counts,
    vocabulary_file,
    write_counts,
    write_lexicons,
    write_lines,
)
from pipeline.recipes import sections
from pipeline.recipes.settings import VocabularySettings
from pipeline.tasks import task_named
from pipeline.text import characters, multigrams, tokenization, units

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
            ValueError: no source text has words that segmentation could begin with.
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

        @untyped_in_beam
        def write(counted: Iterable[tuple[tuple[str, str], int]]) -> None:
            names = [counted_as(settings, side) for side in sides]
            counts: dict[str, dict[str, int]] = {name: {} for name in (*sides, *columns, *names)}
            for (side, token), count in counted:
                counts[side][token] = count
            joint = join_counts([counts[name] for name in names]) if config.joint else None
            for side, name in zip(sides, names):
                chosen = choose_side(side, joint or counts[name], config, settings, subwords_uri)
                write_lines(uri, vocabulary_file(side), chosen)
            for name in dict.fromkeys((*sides, *names)):
                write_counts(uri, name, counts[name])
            if settings.get("characters"):
                of_words = characters.count(counts[names[0]], tokenizers[sides[0]].syntax)
                chosen = characters.choose(of_words, config.characters, config.character_min_count)
                write_lines(uri, characters.CHARACTERS_FILE, chosen)
            for column in columns:
                tags = source_features.ranked_tags(counts[column])
                write_lines(uri, source_features.tags_file(column), tags)

        @untyped_in_beam
        def write_multigrams(drawn: Iterable[tuple[str, str]]) -> None:
            is_alone = tokenizers["source"].syntax.is_protected
            words = multigrams.learn((json.loads(text) for _, text in drawn), is_alone)
            if not words:
                raise ValueError(
                    "The training's source texts have no character to learn words of: check the "
                    "data, or choose another segmentation.warm_up."
                )
            write_lines(uri, multigrams.FILE, multigrams.lines(words))

        with self._make_beam_pipeline() as pipeline:
            batches = (
                pipeline
                | "Read" >> beam.io.ReadFromTFRecord(pattern)
                | "Batch" >> beam.BatchElements(min_batch_size=256, max_batch_size=4096)
            )
            if settings.get("multigrams"):
                _ = (
                    batches
                    | "Texts" >> beam.ParDo(DrawnTexts(tokenizers["source"]))
                    | "Draw" >> beam.combiners.Top.Smallest(TEXTS)
                    | "Multigrams" >> beam.Map(write_multigrams)
                )
            _ = (
                batches
                | "Tokenize" >> beam.ParDo(CountTokens(tokenizers, columns, settings, subwords_uri))
                | "Count" >> beam.combiners.Count.PerElement()
                | "List" >> beam.combiners.ToList()
                | "Write" >> beam.Map(write)
            )
