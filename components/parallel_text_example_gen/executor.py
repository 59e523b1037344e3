"""The Beam work of ParallelTextExampleGen:
read, find duplicates, divide, write, and account for every record.
"""

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

from components.parallel_text_example_gen.duplicates import KeepFirst
from pipeline.readers import DataError
from pipeline.readers.formats import read_unit
from pipeline.readers.planning import plan_inputs
from pipeline.readers.records import (
    REJECT_COLUMNS,
    Pair,
    format_reject,
    reason_kind,
)
from pipeline.readers.splits import SPLITS, divided_shares, split_of
from pipeline.recipes import sections
from pipeline.recipes.recipe import section_from_json

DATA_PATH_KEY = "data_path"
DATA_CONFIG_KEY = "data_config"
REJECTS_KEY = "rejects"
REJECTS_FILE = "rejects.tsv"
COUNTS_FILE = "counts.json"

_REJECTED = "rejected"
_REJECTED_FROM = "rejected from"  # a given split
# Up to this many rejects are sorted by file and line in this process; more stay in the order that
# Beam wrote them.
_SORTED_REJECTS = 1_000_000


class Executor(base_beam_executor.BaseBeamExecutor):
    """Runs the ingestion as one Beam pipeline;
    its results do not depend on the runner or on the order of work.
    """

    def Do(self, input_dict, output_dict, exec_properties):
        """Writes the examples and the rejects.

        Args:
            input_dict: unused.
            output_dict: `examples` and `rejects`, one artifact each.
            exec_properties: `data_path` (str) and `data_config` (JSON of the recipe's data
                section).

        Raises:
            pipeline.readers.DataError: the data cannot be read, too many records are rejected, or a
                split is empty.
        """
        self._log_startup(input_dict, output_dict, exec_properties)
        config = section_from_json(sections.DataConfig, exec_properties[DATA_CONFIG_KEY])
        plan = plan_inputs(exec_properties[DATA_PATH_KEY], config)
        examples = artifact_utils.get_single_instance(
            output_dict[standard_component_specs.EXAMPLES_KEY]
        )
        rejects = artifact_utils.get_single_instance(output_dict[REJECTS_KEY])
        examples.split_names = artifact_utils.encode_split_names(list(SPLITS))
        examples_utils.set_payload_format(examples, example_gen_pb2.FORMAT_TF_EXAMPLE)
        file_format = example_gen_pb2.FORMAT_TFRECORDS_GZIP
        examples_utils.set_file_format(examples, write_split.to_file_format_str(file_format))

        fileio.makedirs(rejects.uri)
        tally_file = os.path.join(rejects.uri, "tally")
        folder = os.path.join(self._get_tmp_dir(), "duplicates")
        fileio.makedirs(folder)
        try:
            with self._make_beam_pipeline() as pipeline:
                splits, rejected, tally = pipeline | "Ingest" >> Ingest(plan, config, folder)
                for split, serialized in splits.items():
                    uri = artifact_utils.get_split_uri([examples], split)
                    # Not TFX's WriteSplit: it shuffles first, and a runner in memory would hold all
                    # examples once more.
                    serialized | f"WriteSplit[{split}]" >> beam.io.WriteToTFRecord(
                        os.path.join(uri, write_split.DEFAULT_FILE_NAME), file_name_suffix=".gz"
                    )
                rejected | "WriteRejects" >> _write_lines(
                    os.path.join(rejects.uri, REJECTS_FILE), header="\t".join(REJECT_COLUMNS)
                )
                tally | "WriteTally" >> _write_lines(tally_file)
        finally:
            fileio.rmtree(folder)

        counts = _counts(_read_text(tally_file), plan)
        fileio.remove(tally_file)
        with fileio.open(os.path.join(rejects.uri, COUNTS_FILE), "w") as handle:
            handle.write(json.dumps(counts, indent=2, ensure_ascii=False) + "\n")
        if counts["rejected"] <= _SORTED_REJECTS:
            _sort_rejects(os.path.join(rejects.uri, REJECTS_FILE))
        for key in ("read", "kept", "rejected"):
            rejects.set_int_custom_property(key, counts[key])
        _check(counts, config, rejects.uri)


class Ingest(beam.PTransform):
    """Reads a plan's units, a worker each, and turns duplicates away over all of them.

    Applied to a pipeline it returns `(splits, rejected, tally)`: a dict from split name to
    serialized tf.Examples, the lines of `rejects.tsv`, and JSON lines `[what, which, count]`.
    """

    def __init__(self, plan, config, folder):
        """Takes an `InputPlan`, the `DataConfig` it was made with, and a folder for what
        `KeepFirst` exchanges.
        """
        super().__init__()
        self._plan = plan
        self._config = config
        self._folder = folder

    def expand(self, pipeline):
        """Builds the graph; see the class."""
        config = self._config
        read = (
            pipeline
            | "Units" >> beam.Create(list(self._plan.units))
            | "Spread" >> beam.Reshuffle()
            | "Read" >> beam.ParDo(_ReadUnit(config)).with_outputs(_REJECTED, main="pairs")
        )
        pairs, rejects = read.pairs, [read[_REJECTED]]
        # Each branch is counted before the branches are joined: where Flatten is not fused, its
        # input is kept whole.
        tallies = [
            read.pairs | "TallyReadPairs" >> _Tally(lambda _: ("read", "")),
            read[_REJECTED] | "TallyReadRejects" >> _Tally(lambda _: ("read", "")),
        ]
        if config.drop_duplicates:
            pairs, duplicates = pairs | "Duplicates" >> KeepFirst(self._folder)
            rejects.append(duplicates)
        rejects = rejects | "AllRejects" >> beam.Flatten()
        tallies.append(
            rejects | "TallyRejected" >> _Tally(lambda record: (_REJECTED, reason_kind(record[2])))
        )
        tallies.append(
            rejects | "TallySplitRejected" >> _Tally(lambda record: (_REJECTED_FROM, record[4]))
        )

        divided = pairs | "Divide" >> beam.ParDo(_Divide(config)).with_outputs(*SPLITS)
        splits = {}
        for split in SPLITS:
            tallies.append(
                divided[split]
                | f"TallyKept[{split}]" >> _Tally(lambda _, name=split: ("kept", name))
            )
            splits[split] = divided[split] | f"Serialize[{split}]" >> beam.Map(
                _serialize, config.extra_columns
            )
        tally = (
            tallies
            | "AllTallies" >> beam.Flatten()
            | "AddUp" >> beam.CombinePerKey(sum)
            | "CountToJson" >> beam.Map(lambda item: json.dumps([*item[0], item[1]]))
        )
        return (
            splits,
            rejects | "FormatRejects" >> beam.Map(lambda record: format_reject(record[:4])),
            tally,
        )


class _Tally(beam.PTransform):
    """Counts elements by what a function says of them."""

    def __init__(self, which):
        """Takes a function of an element, which returns the pair (what, which) that it counts as."""
        super().__init__()
        self._which = which

    def expand(self, elements):
        """Builds the graph; see the class."""
        return elements | beam.Map(self._which) | beam.combiners.Count.PerElement()


# Between the steps a pair is the plain tuple (source, target, file, line, features, split), and a
# reject (file, line, reason, text, split), where the split is that of the unit, or "": any runner
# encodes those without knowing our classes.


class _ReadUnit(beam.DoFn):
    """An `InputUnit` to pairs, and rejects on the side."""

    def __init__(self, config):
        super().__init__()
        self._config = config

    def process(self, unit):
        for record in read_unit(unit, self._config):
            if isinstance(record, Pair):
                yield (*record, unit.split)
            else:
                yield beam.pvalue.TaggedOutput(_REJECTED, (*record, unit.split))


class _Divide(beam.DoFn):
    """Sends each pair to the output named after its split."""

    def __init__(self, config):
        super().__init__()
        self._config = config
        self._shares = divided_shares(config)

    def process(self, pair):
        *record, split = pair
        if split not in SPLITS[1:]:
            split = split_of(pair[0], self._config.split_salt, *self._shares)
        yield beam.pvalue.TaggedOutput(split, tuple(record))


def _serialize(pair, feature_names):
    source, target, file, line, extra = pair

    def texts(text):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[text.encode()]))

    features = {
        "source": texts(source),
        "target": texts(target),
        "file": texts(file),
        "line": tf.train.Feature(int64_list=tf.train.Int64List(value=[line])),
        **{name: texts(text) for name, text in zip(feature_names, extra)},
    }
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString(
        deterministic=True
    )


def _write_lines(path, header=None):
    # One shard with exactly this name, written even when there is no line.
    return beam.io.WriteToText(path, num_shards=1, shard_name_template="", header=header)


def _read_text(path):
    # Bytes: text mode would take a carriage return for a line end.
    with fileio.open(path, "rb") as handle:
        return handle.read().decode("utf-8")


def _counts(tally, plan):
    """Returns what goes into `counts.json`, out of the lines that the pipeline counted.

    Raises:
        RuntimeError: the records do not add up; a fault of this program, never of the data.
    """
    by = {"read": {}, "kept": {split: 0 for split in SPLITS}, _REJECTED: {}, _REJECTED_FROM: {}}
    for line in tally.splitlines():
        what, which, count = json.loads(line)
        by[what][which] = count
    counts = {
        "read": sum(by["read"].values()),
        "kept": sum(by["kept"].values()),
        "rejected": sum(by[_REJECTED].values()),
        "by_reason": dict(sorted(by[_REJECTED].items(), key=lambda item: (-item[1], item[0]))),
        "by_split": by["kept"],
        "rejected_by_given_split": {
            split: count for split, count in sorted(by[_REJECTED_FROM].items()) if split
        },
        "ignored_files": list(plan.ignored_files),
    }
    if counts["read"] != counts["kept"] + counts["rejected"]:
        raise RuntimeError(
            f"Records were lost: {counts['read']} read, but {counts['kept']} kept and "
            f"{counts['rejected']} rejected; "
            "this is a fault in ParallelTextExampleGen, please report it."
        )
    return counts


def _sort_rejects(path):
    """Sorts the rejects by file and line, so that a person finds a record and two runs give the
    same bytes.
    """
    header, *lines = _read_text(path).split("\n")[:-1]

    def place(row):
        file, line, rest = row.split("\t", 2)
        return file, int(line), rest

    with fileio.open(path, "wb") as handle:
        handle.write("".join(f"{line}\n" for line in [header, *sorted(lines, key=place)]).encode())


def _check(counts, config, uri):
    """Stops the run where too little is left; the rejects are kept for the user to see."""
    if not counts["read"]:
        problem = "The data holds no records at all: check the path given as data"
    elif counts["rejected"] > config.max_rejected_share * counts["read"]:
        reason, count = next(iter(counts["by_reason"].items()))
        share = counts["rejected"] / counts["read"]
        problem = (
            f"{counts['rejected']} of {counts['read']} records were rejected ({share:.1%}, "
            f"most often '{reason}': {count}), above data.max_rejected_share "
            f"({config.max_rejected_share:.1%}): correct the data or raise the share"
        )
    elif empty := [split for split, count in counts["by_split"].items() if not count]:
        problem = (
            f"No record fell into the split {' and '.join(empty)} ({counts['kept']} kept in all): "
            "give more data, or raise data.eval_share and data.test_share, or name other files"
        )
    else:
        return
    raise DataError(f"{problem}; what was rejected, and why, is in {_keep_failed(uri)}.")


def _keep_failed(uri):
    """Copies the rejects beside the artifact's folder, and returns the path:
    TFX removes a failed run's outputs.
    """
    folder = uri.rstrip("/") + "-failed"
    fileio.makedirs(folder)
    for name in (REJECTS_FILE, COUNTS_FILE):
        fileio.copy(os.path.join(uri, name), os.path.join(folder, name), overwrite=True)
    return os.path.join(folder, REJECTS_FILE)
