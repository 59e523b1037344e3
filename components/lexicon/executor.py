"""The work of Lexicon: EM over the training pairs, a pass over all shards at a time, and the user's dictionary."""

import json
import os

import apache_beam as beam
from tfx.dsl.components.base import base_beam_executor
from tfx.dsl.io import fileio
from tfx.types import artifact_utils

from components.vocabulary.executor import SIDES, SUBWORDS_KEY, counted_as, read_counts
from pipeline import configs, lexicons, tokenization, translation_lexicon, units
from pipeline import word_alignment as alignment

EXAMPLES_KEY = "examples"
VOCABULARY_KEY = "vocabulary"
LEXICON_KEY = "lexicon"
CONFIG_KEY = "lexicon_config"
TEXT_SETTINGS_KEY = "text_settings"
SHARD_PAIRS = 20_000  # of sentences: their links take some 100 MB


def token_counts(settings, vocabulary_uri):
    """Returns, for source and target, a dict from each token of the train split to its count: words, or what they are cut into."""
    return [read_counts(vocabulary_uri, counted_as(settings, side)) for side in SIDES]


class _MakeLinks(beam.DoFn):
    """Batches of serialized examples to (links, links of the other direction), a shard.

    Args:
        settings, subwords_uri: what `units.tokenizer_of` takes.
        vocabulary_uri: where the tokens of either side are counted.
    """

    def __init__(self, settings, vocabulary_uri, subwords_uri):
        super().__init__()
        self._settings = settings
        self._uri = vocabulary_uri
        self._subwords_uri = subwords_uri

    def setup(self):
        self._tokenizers = [units.tokenizer_of(self._settings, self._subwords_uri, side) for side in SIDES]
        # A token's id is its place among the counted ones, from 1.
        self._ids = [
            {token.encode(): place for place, token in enumerate(counts, 1)}
            for counts in token_counts(self._settings, self._uri)
        ]

    def process(self, serialized):
        import tensorflow as tf

        features = {side: tf.io.FixedLenFeature([], tf.string) for side in SIDES}
        parsed = tf.io.parse_example(tf.constant(serialized), features)
        words = [
            [[ids[token] for token in row] for row in tokenizer.tokenize(parsed[side]).to_list()]
            for side, tokenizer, ids in zip(SIDES, self._tokenizers, self._ids)
        ]
        yield alignment.make_links(*words), alignment.make_links(*reversed(words))


def _expect(shard, state, direction):
    return alignment.expected_counts(shard[direction], *state)


def _expect_agreed(shard, state, other_state):
    weights = alignment.agreement_weights(shard[0], shard[1], *other_state)
    return alignment.expected_counts(shard[0], *state, weights)


class _AddCounts(beam.CombineFn):
    """Adds up the counts of shards."""

    def create_accumulator(self):
        return alignment.add_counts([])

    def add_input(self, accumulator, element):
        return alignment.add_counts([accumulator, element])

    def merge_accumulators(self, accumulators):
        return alignment.add_counts(accumulators)

    def extract_output(self, accumulator):
        return accumulator


def _maximize(counts, state, diagonal):
    """The M step: the next (table, prior). The diagonal model begins with its prior as it is and Model 1's table."""
    _, prior = state
    if diagonal:
        prior = alignment.update_prior(prior, counts) if prior else alignment.Prior()
    return alignment.normalize(counts), prior


def learn(shards, config, start):
    """Returns the counts of the learned lexicon, a PCollection of one `Counts`.

    Args:
        shards: what `_MakeLinks` gives.
        config: the recipe's lexicon section.
        start: a PCollection of one element, of whatever.
    """
    states = []
    for direction, name in enumerate(("forward", "backward") if config.symmetrization == "agreement" else ("forward",)):
        state = start | f"Start {name}" >> beam.Map(lambda _: (None, None))
        for step in range(config.model1_iterations + config.diagonal_iterations):
            state = (
                shards
                | f"Expect {name} {step}" >> beam.Map(_expect, beam.pvalue.AsSingleton(state), direction)
                | f"Add {name} {step}" >> beam.CombineGlobally(_AddCounts())
                # Model 1's last pass hands the diagonal model its prior.
                | f"Maximize {name} {step}"
                >> beam.Map(
                    _maximize,
                    beam.pvalue.AsSingleton(state),
                    step + 1 >= config.model1_iterations and config.diagonal_iterations > 0,
                )
            )
        states.append(beam.pvalue.AsSingleton(state))
    if config.symmetrization == "agreement":
        counted = shards | "Expect agreed" >> beam.Map(_expect_agreed, *states)
    else:
        counted = shards | "Expect last" >> beam.Map(_expect, states[0], 0)
    return counted | "Add last" >> beam.CombineGlobally(_AddCounts())


def to_words(counts, source_words, target_words):
    """Returns the lexicon of `Counts`: dict from source word to dict from target word to probability.

    Args:
        counts: `Counts`.
        source_words, target_words: lists of words, the word of id 1 first.
    """
    table = alignment.normalize(counts, with_null=False)
    lexicon = {}
    for source, target, probability in zip(*alignment.split_keys(table.keys), table.probabilities):
        lexicon.setdefault(source_words[source - 1], {})[target_words[target - 1]] = float(probability)
    return lexicon


class Executor(base_beam_executor.BaseBeamExecutor):
    """Learns from the train split, reads the dictionary, and writes the lexicon."""

    def Do(self, input_dict, output_dict, exec_properties):  # noqa: N802 (TFX's name)
        config = configs.LexiconConfig(**json.loads(exec_properties[CONFIG_KEY]))
        settings = json.loads(exec_properties[TEXT_SETTINGS_KEY])
        vocabulary_uri = artifact_utils.get_single_uri(input_dict[VOCABULARY_KEY])
        uri = artifact_utils.get_single_uri(output_dict[LEXICON_KEY])
        fileio.makedirs(uri)
        subwords_uri = artifact_utils.get_single_uri(input_dict[SUBWORDS_KEY]) if input_dict.get(SUBWORDS_KEY) else None
        counts = token_counts(settings, vocabulary_uri)
        manual, skipped, malformed = {}, 0, 0
        if config.kind in ("manual", "hybrid"):
            tokenizer = tokenization.Tokenizer(**settings["tokenizer"])
            dictionary = lexicons.read_dictionary(settings["dictionary"], tokenizer)
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
            said = f"The lexicon has translations for {100 * running:.1f} % of the training text's source words"
            print(f"  {said} ({100 * distinct:.1f} % of the distinct ones).", flush=True)
            if running < config.min_coverage:
                print(
                    f"  Warning: that is below lexicon.min_coverage ({100 * config.min_coverage:.1f} %): are dictionary and data in the "
                    "same language, direction and tokenization?",
                    flush=True,
                )

        if config.kind == "manual":
            finish({})
            return
        pattern = os.path.join(artifact_utils.get_split_uri(input_dict[EXAMPLES_KEY], "train"), "*")
        with self._make_beam_pipeline() as pipeline:
            shards = (
                pipeline
                | "Read" >> beam.io.ReadFromTFRecord(pattern)
                | "Batch" >> beam.BatchElements(min_batch_size=SHARD_PAIRS, max_batch_size=SHARD_PAIRS)
                | "Link" >> beam.ParDo(_MakeLinks(settings, vocabulary_uri, subwords_uri))
            )
            _ = (
                learn(shards, config, pipeline | "Start" >> beam.Create([None]))
                | "Name" >> beam.Map(to_words, *(list(side) for side in counts))
                | "Write" >> beam.Map(finish)
            )
