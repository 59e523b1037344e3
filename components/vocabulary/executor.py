"""The work of Vocabulary: a word count in Beam, and a cut by frequency."""

import collections
import json
import os

import apache_beam as beam
import regex
from tfx.dsl.components.base import base_beam_executor
from tfx.dsl.io import fileio
from tfx.types import artifact_utils

from pipeline import configs, preprocessing, tokenization

EXAMPLES_KEY = "examples"
VOCABULARY_KEY = "vocabulary"
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
    protected = regex.compile("|".join(pattern for _, pattern in tokenization.PROTECTED_PATTERNS))
    chosen = []
    for token, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        least = protected_min_count if protected.fullmatch(token) else min_count
        # A vocabulary file holds a token a line: a tag that spans lines, of whatever kind, stays unknown, and is copied.
        if count >= least and token not in tokenization.SPECIAL_TOKENS and token.splitlines() == [token]:
            chosen.append(token)
    return [*tokenization.SPECIAL_TOKENS, *chosen][:size]


class _CountTokens(beam.DoFn):
    """Batches of serialized examples to (side, token) pairs."""

    def __init__(self, tokenizer, sides=SIDES):
        super().__init__()
        self._tokenizer = tokenizer
        self._sides = sides

    def process(self, serialized):
        import tensorflow as tf

        features = {side: tf.io.FixedLenFeature([], tf.string) for side in self._sides}
        parsed = tf.io.parse_example(tf.constant(serialized), features)
        for side in self._sides:
            for token in self._tokenizer.tokenize(parsed[side]).flat_values.numpy():
                yield side, token.decode("utf-8")


class Executor(base_beam_executor.BaseBeamExecutor):
    """Counts the train split and writes the vocabulary files."""

    def Do(self, input_dict, output_dict, exec_properties):  # noqa: N802 (TFX's name)
        config = configs.VocabularyConfig(**json.loads(exec_properties[CONFIG_KEY]))
        settings = json.loads(exec_properties[TEXT_SETTINGS_KEY])
        tokenizer = tokenization.Tokenizer(**settings["tokenizer"])
        sides = STREAM_SIDES if settings.get("task") == configs.LANGUAGE_MODEL else SIDES
        uri = artifact_utils.get_single_uri(output_dict[VOCABULARY_KEY])
        fileio.makedirs(uri)
        pattern = os.path.join(artifact_utils.get_split_uri(input_dict[EXAMPLES_KEY], "train"), "*")

        def write(counted):
            counts = {side: {} for side in sides}
            for (side, token), count in counted:
                counts[side][token] = count
            for side in sides:
                name = (
                    preprocessing.SOURCE_VOCABULARY_FILE if side == "source" else preprocessing.TARGET_VOCABULARY_FILE
                )
                size = config.source_size if side == "source" else config.target_size
                chosen_from = join_counts(counts.values()) if config.joint else counts[side]
                tokens = choose_tokens(chosen_from, size, config.min_count, config.protected_min_count)
                with fileio.open(os.path.join(uri, name), "w") as file:
                    file.write("".join(f"{token}\n" for token in tokens))
                with fileio.open(os.path.join(uri, counts_file(side)), "w") as file:
                    # JSON keeps a token with a line break on one line.
                    lines = (f"{json.dumps(t, ensure_ascii=False)}\t{n}\n" for t, n in sorted(counts[side].items()))
                    file.write("".join(lines))

        with self._make_beam_pipeline() as pipeline:
            _ = (
                pipeline
                | "Read" >> beam.io.ReadFromTFRecord(pattern)
                | "Batch" >> beam.BatchElements(min_batch_size=256, max_batch_size=4096)
                | "Tokenize" >> beam.ParDo(_CountTokens(tokenizer, sides))
                | "Count" >> beam.combiners.Count.PerElement()
                | "List" >> beam.combiners.ToList()
                | "Write" >> beam.Map(write)
            )


def join_counts(sides):
    """Adds up dicts from token to count."""
    joint = collections.Counter()
    for counts in sides:
        joint.update(counts)
    return dict(joint)


def read_training_words(uri):
    """Returns the set of words that stand in the training data, on either side, without joiners."""
    words = set()
    for side in SIDES:
        with fileio.open(os.path.join(uri, counts_file(side)), "r") as file:
            # Not splitlines: JSON leaves U+2028 and its like as they are.
            for line in file.read().removesuffix("\n").split("\n"):
                words.add(json.loads(line.rsplit("\t", 1)[0]).strip(tokenization.JOINER))
    return words - {""}
