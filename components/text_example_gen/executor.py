"""The Beam work of TextExampleGen: reads each file as a stream, cuts it into passages, counts."""

import dataclasses
import json
import os
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import apache_beam as beam
import tensorflow as tf
from tfx.components.example_gen import write_split
from tfx.components.util import examples_utils
from tfx.dsl.components.base import base_beam_executor
from tfx.dsl.io import fileio
from tfx.proto import example_gen_pb2
from tfx.types import artifact_utils, standard_component_specs

from components import earlier_attempts
from components.artifacts import Artifacts, folder_of
from components.untyped_in_beam import untyped_in_beam
from pipeline.common import object_stores, whole_files
from pipeline.readers import text_streams
from pipeline.recipes import sections
from pipeline.recipes.recipe import Recipe

DATA_PATH_KEY = "data_path"
RECIPE_KEY = "recipe"
COUNTS_KEY = "counts"
COUNTS_FILE = "counts.json"


#: (text, context, order, file, line) of a `Passage`: between the steps it is a plain tuple, which
#: any runner encodes without knowing our class.
_Passage: TypeAlias = tuple[str, int, int, str, int]


def passages_recipe(
    data: sections.DataConfig,
    language_model: sections.LanguageModelConfig,
    length_buckets: tuple[int, ...],
) -> Recipe:
    """Returns a recipe with default values for all keys that change no passage.

    It is part of the cache key.

    Args:
        data, language_model, length_buckets: see `component.TextExampleGen`.
    """
    return Recipe(
        name="passages",
        task="language_model",
        data=data,
        model=dataclasses.replace(sections.ModelConfig(), head="softmax"),
        decoding=dataclasses.replace(sections.DecodingConfig(), length_buckets=length_buckets),
        language_model=dataclasses.replace(
            sections.LanguageModelConfig(),
            window=language_model.window,
            batch_size=language_model.batch_size,
        ),
    )


class Executor(base_beam_executor.BaseBeamExecutor):
    """Reads each file in one worker, because a stream has an order."""

    def Do(
        self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: dict[str, Any]
    ) -> None:
        """Writes the examples and the counts.

        Raises:
            pipeline.readers.DataError: the text cannot be read, or is too short.
            pipeline.common.object_stores.StorageError: the bucket cannot be written.
        """
        self._log_startup(input_dict, output_dict, exec_properties)
        object_stores.check_writable(folder_of(output_dict, standard_component_specs.EXAMPLES_KEY))
        recipe = Recipe.from_json(exec_properties[RECIPE_KEY])
        plan = text_streams.plan_streams(exec_properties[DATA_PATH_KEY], recipe)
        examples = artifact_utils.get_single_instance(
            output_dict[standard_component_specs.EXAMPLES_KEY]
        )
        counts_uri = folder_of(output_dict, COUNTS_KEY)
        examples.split_names = artifact_utils.encode_split_names(list(plan.files))
        examples_utils.set_payload_format(examples, example_gen_pb2.FORMAT_TF_EXAMPLE)
        file_format = example_gen_pb2.FORMAT_TFRECORDS_GZIP
        examples_utils.set_file_format(examples, write_split.to_file_format_str(file_format))
        earlier_attempts.remove(output_dict, standard_component_specs.EXAMPLES_KEY)
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


class _ReadFile(beam.DoFn):
    """The (index, (name, path)) of a file to its passages."""

    def __init__(self, split: str, recipe_json: str) -> None:
        super().__init__()
        self._split = split
        self._recipe_json = recipe_json

    @untyped_in_beam
    def process(self, item: tuple[int, tuple[str, str]]) -> Iterator[_Passage]:
        """Yields the passages of one file."""
        index, (name, path) = item
        recipe = Recipe.from_json(self._recipe_json)
        for passage in text_streams.read_file_passages((name, path), index, self._split, recipe):
            yield (*passage,)


@untyped_in_beam
def _serialize(values: _Passage) -> bytes:
    passage = text_streams.Passage(*values)

    def texts(text: str) -> tf.train.Feature:
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[text.encode()]))

    def numbers(number: int) -> tf.train.Feature:
        return tf.train.Feature(int64_list=tf.train.Int64List(value=[number]))

    features = {
        "text": texts(passage.text),
        "file": texts(passage.file),
        "context": numbers(passage.context),
        "order": numbers(passage.order),
        "line": numbers(passage.line),
    }
    example = tf.train.Example(features=tf.train.Features(feature=features))
    serialized: bytes = example.SerializeToString(deterministic=True)
    return serialized


@untyped_in_beam
def _tally(values: _Passage, split: str) -> tuple[str, tuple[int, int]]:
    """Returns (split, (lines, words)) of what a passage adds to its stream."""
    passage = text_streams.Passage(*values)
    words = text_streams.words_of(passage.text)[passage.context :]
    return split, (words.count(text_streams.LINE_END), len(words))


@untyped_in_beam
def _sum_pairs(pairs: Iterable[tuple[int, int]]) -> tuple[int, int]:
    lines, words = 0, 0
    for more_lines, more_words in pairs:
        lines, words = lines + more_lines, words + more_words
    return lines, words


@untyped_in_beam
def _write_counts(sums: Iterable[tuple[str, tuple[int, int]]], path: str) -> None:
    by_split = dict(sorted(sums))
    lines = sum(lines for lines, _ in by_split.values())
    content = {
        "read": lines,
        "kept": lines,
        "rejected": 0,
        "by_reason": {},
        "by_split": {split: lines for split, (lines, _) in by_split.items()},
        "words_by_split": {split: words for split, (_, words) in by_split.items()},
    }
    whole_files.write_text(path, json.dumps(content, indent=2) + "\n")
