"""The work of PairsFromExamples: reads examples of another component as parallel text."""

import dataclasses
import os
from collections.abc import Iterator
from typing import Any

import apache_beam as beam
from tfx.components.util import examples_utils
from tfx.proto import example_gen_pb2
from tfx.types import artifact_utils

from components.artifacts import EXAMPLES_KEY, REJECTS_KEY, Artifacts
from components.parallel_text_example_gen.ingest import REJECTED
from components.parallel_text_example_gen.pair_writer import PairWriter
from components.untyped_in_beam import untyped_in_beam
from pipeline.common import shards
from pipeline.readers import DataError
from pipeline.readers.records import Pair, Record, judge, reject
from pipeline.readers.splits import SPLITS
from pipeline.recipes import sections
from pipeline.recipes.recipe import section_from_json

DATA_CONFIG_KEY = "data_config"
PAIRS_KEY = "pairs"


@dataclasses.dataclass(frozen=True)
class Shard:
    """A file of examples.

    Attributes:
        name: for people, such as `Split-train/data_tfrecord-00000-of-00001.gz`.
        path: where it is.
        split: its split; "" for one whose pairs are divided.
    """

    name: str
    path: str
    split: str


class Executor(PairWriter):
    """Reads the shards of each split."""

    def Do(
        self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: dict[str, Any]
    ) -> None:
        """Writes the examples and the rejects.

        Raises:
            pipeline.readers.DataError: the examples are no tf.Examples with these texts, too many
                are rejected, or a split is empty.
        """
        self._log_startup(input_dict, output_dict, exec_properties)
        config = section_from_json(sections.DataConfig, exec_properties[DATA_CONFIG_KEY])
        examples = artifact_utils.get_single_instance(input_dict[EXAMPLES_KEY])
        payload = examples_utils.get_payload_format(examples)
        if payload != example_gen_pb2.FORMAT_TF_EXAMPLE:
            name = example_gen_pb2.PayloadFormat.Name(payload)
            raise DataError(
                f"The examples are {name}: give those of a component that writes FORMAT_TF_EXAMPLE."
            )
        names = artifact_utils.decode_split_names(examples.split_names)
        units = [
            Shard(f"Split-{name}/{os.path.basename(path)}", path, name if name in SPLITS else "")
            for name in names
            for path in shards.of_split(examples.uri, name)
        ]
        # A split that the examples have is taken as it is, as that of a recipe's own files.
        config = dataclasses.replace(
            config,
            eval_files=("eval",) if "eval" in names else (),
            test_files=("test",) if "test" in names else (),
        )
        outputs = {EXAMPLES_KEY: output_dict[PAIRS_KEY], REJECTS_KEY: output_dict[REJECTS_KEY]}
        self.write_pairs(outputs, config, units, ReadShard(config))


class ReadShard(beam.DoFn):
    """A `Shard` to pairs, and rejects on the side."""

    def __init__(self, config: sections.DataConfig) -> None:
        super().__init__()
        self._config = config

    @untyped_in_beam
    def process(self, shard: Shard) -> Iterator[tuple[Any, ...] | beam.pvalue.TaggedOutput]:
        """Yields the records of one shard.

        Raises:
            DataError: the feature of a text holds numbers.
        """
        import tensorflow as tf

        compression = "GZIP" if shard.path.endswith(".gz") else ""
        dataset = tf.data.TFRecordDataset(shard.path, compression_type=compression)
        for number, serialized in enumerate(dataset.as_numpy_iterator(), 1):
            record = read_example(serialized, shard.name, number, self._config)
            if isinstance(record, Pair):
                yield (*record[:5], shard.split)
            else:
                yield beam.pvalue.TaggedOutput(REJECTED, (*record, shard.split))


def read_example(serialized: bytes, file: str, number: int, config: sections.DataConfig) -> Record:
    """Returns the record of a serialized tf.Example.

    Args:
        serialized: the tf.Example.
        file, number: its place, for people.
        config: names the features of the texts.

    Raises:
        DataError: the feature of a text holds numbers.
    """
    import tensorflow as tf

    features = tf.train.Example.FromString(serialized).features.feature
    columns = (config.source_column, config.target_column, *config.extra_columns)
    texts: list[str] = []
    for place, name in enumerate(columns):
        if name not in features:
            there = ", ".join(sorted(features))
            return reject(file, number, f"no feature '{name}'", f"features: {there}")
        kind = features[name].WhichOneof("kind")
        # No value is what a row of a table with an empty cell becomes.
        values = getattr(features[name], kind).value if kind else []
        if len(values) > 1:
            return reject(file, number, f"more than one value of '{name}'", str(list(values)))
        value = values[0] if values else b""
        if not isinstance(value, bytes):
            if place < 2 + len(config.source_features):
                raise DataError(
                    f"The feature '{name}' holds numbers, such as {value}, and not text: name "
                    "the features of texts by data.source_column and data.target_column."
                )
            value = str(value).encode()
        try:
            texts.append(value.decode("utf-8"))
        except UnicodeDecodeError:
            return reject(file, number, "not valid UTF-8", value)
    source, target, *extra = texts
    return judge(source, target, file, number, config, tuple(extra))
