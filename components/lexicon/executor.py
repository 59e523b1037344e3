"""The work of Lexicon:
what EM learns of the training pairs, and the user's dictionary, as one lexicon.
"""

import json
import os

import apache_beam as beam
from tfx.dsl.components.base import base_beam_executor
from tfx.dsl.io import fileio
from tfx.types import artifact_utils

from components.lexicon import passes
from components.vocabulary.executor import SUBWORDS_KEY
from pipeline.lexicons import dictionaries, translation_lexicon
from pipeline.lexicons import word_alignment as alignment
from pipeline.recipes import sections
from pipeline.text import tokenization

EXAMPLES_KEY = "examples"
VOCABULARY_KEY = "vocabulary"
LEXICON_KEY = "lexicon"
CONFIG_KEY = "lexicon_config"
TEXT_SETTINGS_KEY = "text_settings"


def to_words(counts, source_words, target_words, top_k, min_probability):
    """Returns the lexicon of `Counts`:
    dict from source word to dict from target word to probability.

    Args:
        counts: `Counts`.
        top_k, min_probability: what can be pruned by these is left out; see
            `translation_lexicon.prune`.
        source_words, target_words: lists of words, the word of id 1 first.
    """
    table = alignment.likeliest(
        alignment.normalize(counts, with_null=False), top_k, min_probability
    )
    lexicon = {}
    for source, target, probability in zip(*alignment.split_keys(table.keys), table.probabilities):
        lexicon.setdefault(source_words[source - 1], {})[target_words[target - 1]] = float(
            probability
        )
    return lexicon


class Executor(base_beam_executor.BaseBeamExecutor):
    """Learns from the train split, reads the dictionary, and writes the lexicon."""

    def Do(self, input_dict, output_dict, exec_properties):  # noqa: N802 (TFX's name)
        config = sections.LexiconConfig(**json.loads(exec_properties[CONFIG_KEY]))
        settings = json.loads(exec_properties[TEXT_SETTINGS_KEY])
        vocabulary_uri = artifact_utils.get_single_uri(input_dict[VOCABULARY_KEY])
        uri = artifact_utils.get_single_uri(output_dict[LEXICON_KEY])
        fileio.makedirs(uri)
        subwords_uri = (
            artifact_utils.get_single_uri(input_dict[SUBWORDS_KEY])
            if input_dict.get(SUBWORDS_KEY)
            else None
        )
        counts = passes.token_counts(settings, vocabulary_uri)
        manual, skipped, malformed = {}, 0, 0
        if config.kind in ("manual", "hybrid"):
            tokenizer = tokenization.Tokenizer(**settings["tokenizer"])
            dictionary = dictionaries.read_dictionary(settings["dictionary"], tokenizer)
            manual = translation_lexicon.manual_lexicon(dictionary.pairs)
            skipped, malformed = dictionary.skipped, len(dictionary.malformed)

        def finish(learned):
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
            said = (
                f"The lexicon has translations for {100 * running:.1f} % of the training "
                "text's source words"
            )
            print(f"  {said} ({100 * distinct:.1f} % of the distinct ones).", flush=True)
            if running < config.min_coverage:
                print(
                    "  Warning: that is below lexicon.min_coverage "
                    f"({100 * config.min_coverage:.1f} %): are dictionary and data in the "
                    "same language, direction and tokenization?",
                    flush=True,
                )

        if config.kind == "manual":
            finish({})
            return
        pattern = os.path.join(artifact_utils.get_split_uri(input_dict[EXAMPLES_KEY], "train"), "*")
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
                    >> beam.ParDo(passes.MakeLinks(folder, settings, vocabulary_uri, subwords_uri))
                )
                _ = (
                    passes.learn(shards, config, pipeline | "Start" >> beam.Create([None]), folder)
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
