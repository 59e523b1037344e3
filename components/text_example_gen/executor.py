"""The Beam work of TextExampleGen: read each file as a stream, cut it into passages, count."""

import dataclasses
import json
import os

import apache_beam as beam
import tensorflow as tf
from tfx.components.example_gen import write_split
from tfx.components.util import examples_utils
from tfx.dsl.components.base import base_beam_executor
from tfx.dsl.io import fileio
from tfx.proto import example_gen_pb2
from tfx.types import artifact_utils, standard_component_specs

from pipeline.readers import text_streams
from pipeline.recipes import sections
from pipeline.recipes.recipe import Recipe

DATA_PATH_KEY = "data_path"
RECIPE_KEY = "recipe"
COUNTS_KEY = "counts"
COUNTS_FILE = "counts.json"


def relevant_recipe(recipe):
    """Returns the JSON of a recipe in which all that changes no passage has its default:
    it takes part in the cache key.
    """
    kept = Recipe(
        name="passages",
        task=recipe.task,
        data=recipe.data,
        model=dataclasses.replace(sections.ModelConfig(), head="softmax"),
        decoding=dataclasses.replace(
            sections.DecodingConfig(), length_buckets=recipe.decoding.length_buckets
        ),
        language_model=dataclasses.replace(
            sections.LanguageModelConfig(),
            window=recipe.language_model.window,
            batch_size=recipe.language_model.batch_size,
        ),
    )
    return kept.to_json()


class Executor(base_beam_executor.BaseBeamExecutor):
    """Reads the files, one worker each: a stream has an order."""

    def Do(self, input_dict, output_dict, exec_properties):  # noqa: N802 (TFX's name)
        """Writes the examples and the counts.

        Raises:
            pipeline.readers.DataError: the text cannot be read, or is too short.
        """
        self._log_startup(input_dict, output_dict, exec_properties)
        recipe = Recipe.from_json(exec_properties[RECIPE_KEY])
        plan = text_streams.plan_streams(exec_properties[DATA_PATH_KEY], recipe)
        examples = artifact_utils.get_single_instance(
            output_dict[standard_component_specs.EXAMPLES_KEY]
        )
        counts_uri = artifact_utils.get_single_uri(output_dict[COUNTS_KEY])
        examples.split_names = artifact_utils.encode_split_names(list(plan.files))
        examples_utils.set_payload_format(examples, example_gen_pb2.FORMAT_TF_EXAMPLE)
        file_format = example_gen_pb2.FORMAT_TFRECORDS_GZIP
        examples_utils.set_file_format(examples, write_split.to_file_format_str(file_format))
        fileio.makedirs(counts_uri)
        with self._make_beam_pipeline() as pipeline:
            counts = []
            for split, files in plan.files.items():
                passages = (
                    pipeline
                    | f"Files[{split}]" >> beam.Create(list(enumerate(files)))
                    | f"Spread[{split}]" >> beam.Reshuffle()
                    | f"Read[{split}]" >> beam.ParDo(_ReadFile(split, recipe.to_json()))
                )
                uri = artifact_utils.get_split_uri([examples], split)
                serialized = passages | f"Serialize[{split}]" >> beam.Map(_serialize)
                serialized | f"WriteSplit[{split}]" >> write_split.WriteSplit(uri, file_format)
                counts.append(passages | f"Tally[{split}]" >> beam.Map(_tally, split))
            _ = (
                counts
                | "All" >> beam.Flatten()
                | "Sum" >> beam.CombinePerKey(_sum_pairs)
                | "List" >> beam.combiners.ToList()
                | "WriteCounts" >> beam.Map(_write_counts, os.path.join(counts_uri, COUNTS_FILE))
            )


# Between the steps a passage is a plain tuple: any runner encodes it without knowing our class.


class _ReadFile(beam.DoFn):
    def __init__(self, split, recipe_json):
        super().__init__()
        self._split = split
        self._recipe_json = recipe_json

    def process(self, item):
        index, file = item
        recipe = Recipe.from_json(self._recipe_json)
        for passage in text_streams.read_file_passages(tuple(file), index, self._split, recipe):
            yield tuple(passage)


def _serialize(passage):
    passage = text_streams.Passage(*passage)

    def texts(text):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[text.encode()]))

    def numbers(number):
        return tf.train.Feature(int64_list=tf.train.Int64List(value=[number]))

    features = {
        "text": texts(passage.text),
        "file": texts(passage.file),
        "context": numbers(passage.context),
        "order": numbers(passage.order),
        "line": numbers(passage.line),
    }
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString(
        deterministic=True
    )


def _tally(passage, split):
    """(split, (lines, words)) of what a passage adds to its stream."""
    passage = text_streams.Passage(*passage)
    words = text_streams.words_of(passage.text)[passage.context :]
    return split, (words.count(text_streams.LINE_END), len(words))


def _sum_pairs(pairs):
    lines, words = 0, 0
    for more_lines, more_words in pairs:
        lines, words = lines + more_lines, words + more_words
    return lines, words


def _write_counts(sums, path):
    sums = {split: {"lines": lines, "words": words} for split, (lines, words) in sorted(sums)}
    lines = sum(counts["lines"] for counts in sums.values())
    content = {
        "read": lines,
        "kept": lines,
        "rejected": 0,
        "by_reason": {},
        "by_split": {split: counts["lines"] for split, counts in sums.items()},
        "words_by_split": {split: counts["words"] for split, counts in sums.items()},
    }
    with fileio.open(path, "w") as handle:
        handle.write(json.dumps(content, indent=2) + "\n")
