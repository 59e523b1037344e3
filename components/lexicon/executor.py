"""The work of Lexicon: joins the result of EM on the training pairs and the user's dictionary."""

import json
import os
from collections.abc import Sequence
from typing import Any

import apache_beam as beam
from tfx.dsl.components.base import base_beam_executor
from tfx.dsl.io import fileio
from tfx.types import artifact_utils

from components.artifacts import (
    EXAMPLES_KEY,
    LEXICON_KEY,
    SUBWORDS_KEY,
    VOCABULARY_KEY,
    Artifacts,
    folder_of,
    optional_folder_of,
)
from components.lexicon import passes
from components.untyped_in_beam import untyped_in_beam
from pipeline.common import progress
from pipeline.lexicons import dictionaries, translation_lexicon
from pipeline.lexicons import word_alignment as alignment
from pipeline.lexicons.links import split_keys
from pipeline.recipes import sections
from pipeline.recipes.settings import VocabularySettings
from pipeline.text import tokenization

CONFIG_KEY = "lexicon_config"
TEXT_SETTINGS_KEY = "text_settings"


@untyped_in_beam
def to_words(
    counts: alignment.Counts,
    source_words: Sequence[str],
    target_words: Sequence[str],
    top_k: int,
    min_probability: float,
) -> dict[str, dict[str, float]]:
    """Returns the lexicon of `Counts`: translations and their probabilities by source word.

    Args:
        counts: the counts of the passes of EM.
        source_words, target_words: lists of words, the word of id 1 first.
        top_k, min_probability: entries that these would prune are left out; see
            `translation_lexicon.prune`.
    """
    table = alignment.likeliest(
        alignment.normalize(counts, with_null=False), top_k, min_probability
    )
    lexicon: dict[str, dict[str, float]] = {}
    for source, target, probability in zip(*split_keys(table.keys), table.probabilities):
        lexicon.setdefault(source_words[source - 1], {})[target_words[target - 1]] = float(
            probability
        )
    return lexicon


class Executor(base_beam_executor.BaseBeamExecutor):
    """Learns from the train split, reads the dictionary, and writes the lexicon."""

    def Do(
        self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: dict[str, Any]
    ) -> None:
        """Writes the lexicon and reports its coverage.

        Raises:
            pipeline.readers.DataError: the dictionary cannot be read.
        """
        config = sections.LexiconConfig(**json.loads(exec_properties[CONFIG_KEY]))
        settings: VocabularySettings = json.loads(exec_properties[TEXT_SETTINGS_KEY])
        vocabulary_uri = folder_of(input_dict, VOCABULARY_KEY)
        uri = folder_of(output_dict, LEXICON_KEY)
        fileio.makedirs(uri)
        counts = passes.token_counts(settings, vocabulary_uri)
        manual: dict[str, dict[str, float]] = {}
        skipped = malformed = 0
        if config.kind in ("manual", "hybrid"):
            tokenizer = tokenization.Tokenizer(**settings["tokenizer"])
            dictionary = dictionaries.read_dictionary(settings["dictionary"], tokenizer)
            manual = translation_lexicon.manual_lexicon(dictionary.pairs)
            skipped, malformed = dictionary.skipped, len(dictionary.malformed)

        @untyped_in_beam
        def finish(learned: dict[str, dict[str, float]]) -> None:
            lexicon = translation_lexicon.fill_up(learned, manual)
            lexicon = translation_lexicon.prune(lexicon, config.top_k, config.min_probability)
            distinct, running = translation_lexicon.coverage(lexicon, counts[0])
            facts = {
                "kind": config.kind,
                "words": len(lexicon),
                "translations": sum(map(len, lexicon.values())),
                "learned_words": len(learned),
                "listed_words": len(manual),
                "skipped_entries": skipped,
                "malformed_lines": malformed,
                "coverage_of_words": distinct,
                "coverage_of_text": running,
            }
            translation_lexicon.write(uri, lexicon, facts)

        if config.kind == "manual":
            finish({})
        else:
            pattern = os.path.join(
                artifact_utils.get_split_uri(input_dict[EXAMPLES_KEY], "train"), "*"
            )
            subwords_uri = optional_folder_of(input_dict, SUBWORDS_KEY)
            folder = os.path.join(self._get_tmp_dir(), "lexicon")
            fileio.makedirs(folder)
            try:
                with self._make_beam_pipeline() as pipeline:
                    shards = (
                        pipeline
                        | "Read" >> beam.io.ReadFromTFRecord(pattern)
                        | "Batch"
                        >> beam.BatchElements(
                            min_batch_size=passes.SHARD_PAIRS, max_batch_size=passes.SHARD_PAIRS
                        )
                        | "Link"
                        >> beam.ParDo(
                            passes.MakeLinks(folder, settings, vocabulary_uri, subwords_uri)
                        )
                    )
                    start = pipeline | "Start" >> beam.Create([None])
                    _ = (
                        passes.learn(shards, config, start, folder)
                        | "Name"
                        >> beam.Map(
                            to_words,
                            *(list(side) for side in counts),
                            config.top_k,
                            config.min_probability,
                        )
                        | "Write" >> beam.Map(finish)
                    )
            finally:
                fileio.rmtree(folder)
        # In this process, whose output is shown: Beam may have written the lexicon in another.
        _say_coverage(uri, config.min_coverage)


def _say_coverage(uri: str, least: float) -> None:
    """Reports how much of the training text the lexicon covers, and warns if that is too little."""
    with fileio.open(os.path.join(uri, translation_lexicon.FACTS_FILE), "r") as file:
        facts = json.loads(file.read())
    running = facts["coverage_of_text"]
    progress.say(
        f"The lexicon has translations for {100 * running:.1f} % of the training text's source "
        f"words ({100 * facts['coverage_of_words']:.1f} % of the distinct ones)."
    )
    if running < least:
        progress.warn(
            f"The lexicon's coverage of {100 * running:.1f} % is below lexicon.min_coverage "
            f"({100 * least:.1f} %): check that dictionary and data have the same language, "
            "direction and tokenization."
        )
