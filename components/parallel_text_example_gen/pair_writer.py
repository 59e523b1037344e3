"""Writing parallel text with Beam, so that every record is accounted for."""

import json
import os
from collections.abc import Sequence
from typing import Any, TypedDict

import apache_beam as beam
from tfx.components.example_gen import write_split
from tfx.components.util import examples_utils
from tfx.dsl.components.base import base_beam_executor
from tfx.dsl.io import fileio
from tfx.proto import example_gen_pb2
from tfx.types import artifact_utils, standard_component_specs

from components import earlier_attempts
from components.artifacts import REJECTS_KEY, Artifacts
from components.parallel_text_example_gen.ingest import (
    RECOMBINED,
    REJECTED,
    REJECTED_FROM,
    Ingest,
)
from components.untyped_in_beam import untyped_in_beam
from pipeline.common import whole_files
from pipeline.readers import DataError
from pipeline.readers.records import NO_ERRORS, REJECT_COLUMNS
from pipeline.readers.splits import SPLITS
from pipeline.recipes import sections

REJECTS_FILE = "rejects.tsv"
COUNTS_FILE = "counts.json"

# Up to this many rejects are sorted by file and line in this process; more keep Beam's order.
_SORTED_REJECTS = 1_000_000


class RecordCounts(TypedDict):
    """The counts of records, as in `counts.json`.

    Attributes:
        read, kept, rejected: numbers of records.
        by_reason: how many were rejected for each reason, the most frequent first.
        by_split: how many each split has.
        rejected_by_given_split: of the files that the recipe names for a split.
        ignored_files: files of the data folder that no reader knows.
        recombined: how many new pairs `data.recombinations` added to the training split.
    """

    read: int
    kept: int
    rejected: int
    by_reason: dict[str, int]
    by_split: dict[str, int]
    rejected_by_given_split: dict[str, int]
    ignored_files: list[str]
    recombined: int


class PairWriter(base_beam_executor.BaseBeamExecutor):
    """An executor that writes `examples` and `rejects`, in one Beam pipeline.

    Its results depend neither on the runner nor on the order of work.
    """

    def write_pairs(
        self,
        output_dict: Artifacts,
        config: sections.DataConfig,
        units: Sequence[Any],
        read: beam.DoFn,
        ignored_files: Sequence[str] = (),
    ) -> None:
        """Writes the examples and the rejects.

        Args:
            output_dict: `examples` and `rejects`, one artifact each.
            config: the recipe's data section.
            units, read: as in `Ingest`.
            ignored_files: files that no reader knows, for the counts.

        Raises:
            pipeline.readers.DataError: too many records are rejected, or a split is empty.
        """
        examples = artifact_utils.get_single_instance(
            output_dict[standard_component_specs.EXAMPLES_KEY]
        )
        rejects = artifact_utils.get_single_instance(output_dict[REJECTS_KEY])
        examples.split_names = artifact_utils.encode_split_names(list(SPLITS))
        examples_utils.set_payload_format(examples, example_gen_pb2.FORMAT_TF_EXAMPLE)
        file_format = example_gen_pb2.FORMAT_TFRECORDS_GZIP
        examples_utils.set_file_format(examples, write_split.to_file_format_str(file_format))

        earlier_attempts.remove(output_dict, standard_component_specs.EXAMPLES_KEY)
        fileio.makedirs(rejects.uri)
        tally_file = os.path.join(rejects.uri, "tally")
        folder = os.path.join(self._get_tmp_dir(), "duplicates")
        fileio.makedirs(folder)
        try:
            with self._make_beam_pipeline() as pipeline:
                splits, rejected, tally = pipeline | "Ingest" >> Ingest(units, read, config, folder)
                for split, serialized in splits.items():
                    uri = artifact_utils.get_split_uri([examples], split)
                    # Not TFX's WriteSplit: it shuffles first, and a runner in memory would hold all
                    # examples a second time.
                    serialized | f"WriteSplit[{split}]" >> beam.io.WriteToTFRecord(
                        os.path.join(uri, write_split.DEFAULT_FILE_NAME), file_name_suffix=".gz"
                    )
                rejected | "WriteRejects" >> _write_lines(
                    os.path.join(rejects.uri, REJECTS_FILE), header="\t".join(REJECT_COLUMNS)
                )
                _ = (
                    tally
                    | "ListTally" >> beam.combiners.ToList()
                    | "WriteTally" >> beam.Map(_write_tally, tally_file)
                )
        finally:
            fileio.rmtree(folder)

        counts = _counts(_read_text(tally_file), ignored_files)
        fileio.remove(tally_file)
        whole_files.write_text(
            os.path.join(rejects.uri, COUNTS_FILE),
            json.dumps(counts, indent=2, ensure_ascii=False) + "\n",
        )
        if counts["rejected"] <= _SORTED_REJECTS:
            _sort_rejects(os.path.join(rejects.uri, REJECTS_FILE))
        for key, count in (
            ("read", counts["read"]),
            ("kept", counts["kept"]),
            ("rejected", counts["rejected"]),
        ):
            rejects.set_int_custom_property(key, count)
        _check(counts, config, rejects.uri)


def _write_lines(path: str, header: str | None = None) -> beam.PTransform:
    # One shard with exactly this name, written even when there is no line.
    return beam.io.WriteToText(path, num_shards=1, shard_name_template="", header=header)


@untyped_in_beam
def _write_tally(lines: Sequence[str], path: str) -> None:
    whole_files.write_text(path, "".join(f"{line}\n" for line in lines))


def _read_text(path: str) -> str:
    # Bytes: text mode would read a carriage return as a line end.
    with fileio.open(path, "rb") as handle:
        content: bytes = handle.read()
    return content.decode("utf-8")


def _counts(tally: str, ignored_files: Sequence[str]) -> RecordCounts:
    """Returns the content of `counts.json`, from the lines that the pipeline counted.

    Raises:
        RuntimeError: the records do not add up; this is a bug, not an error of the data.
    """
    by: dict[str, dict[str, int]] = {
        "read": {},
        "kept": dict.fromkeys(SPLITS, 0),
        REJECTED: {},
        REJECTED_FROM: {},
        RECOMBINED: {},
    }
    for line in tally.splitlines():
        what, which, count = json.loads(line)
        by[what][which] = count
    counts: RecordCounts = {
        "read": sum(by["read"].values()),
        "kept": sum(by["kept"].values()),
        "rejected": sum(by[REJECTED].values()),
        "by_reason": dict(sorted(by[REJECTED].items(), key=lambda item: (-item[1], item[0]))),
        "by_split": by["kept"],
        "rejected_by_given_split": {
            split: count for split, count in sorted(by[REJECTED_FROM].items()) if split
        },
        "ignored_files": list(ignored_files),
        "recombined": sum(by[RECOMBINED].values()),
    }
    if counts["read"] != counts["kept"] + counts["rejected"]:
        raise RuntimeError(
            f"Records were lost: {counts['read']} read, but {counts['kept']} kept and "
            f"{counts['rejected']} rejected; this is a bug in Verbatim, please "
            "report it."
        )
    return counts


def _sort_rejects(path: str) -> None:
    """Sorts the rejects by file and line.

    So people can find a record, and two runs write the same bytes.
    """
    header, *lines = _read_text(path).split("\n")[:-1]

    def place(row: str) -> tuple[str, int, str]:
        file, line, rest = row.split("\t", 2)
        return file, int(line), rest

    whole_files.write_text(
        path, "".join(f"{line}\n" for line in [header, *sorted(lines, key=place)])
    )


def _check(counts: RecordCounts, config: sections.DataConfig, uri: str) -> None:
    """Stops the run if too few records are left.

    Raises:
        DataError: the problem, and the place of the rejects.
    """
    # Languages have more plural forms than there are texts to translate by them, for instance.
    left_out = sum(counts["by_reason"].get(reason, 0) for reason in NO_ERRORS)
    read, rejected = counts["read"] - left_out, counts["rejected"] - left_out
    if not counts["read"]:
        problem = "The data contain no records: check the path given as data"
    elif rejected > config.max_rejected_share * read:
        reason, count = next(
            item for item in counts["by_reason"].items() if item[0] not in NO_ERRORS
        )
        problem = (
            f"{rejected} of {read} records were rejected ({rejected / read:.1%}, "
            f"most often '{reason}': {count}), above data.max_rejected_share "
            f"({config.max_rejected_share:.1%}): correct the data or raise the share"
        )
    elif empty := [split for split, count in counts["by_split"].items() if not count]:
        problem = (
            f"There is no record in the split {' and '.join(empty)} ({counts['kept']} kept in "
            "all): give more data, or raise data.eval_share and data.test_share, or name other "
            "files"
        )
    else:
        return
    raise DataError(f"{problem}; the rejected records, with reasons, are in {_keep_failed(uri)}.")


def _keep_failed(uri: str) -> str:
    """Copies the rejects beside the artifact's folder, and returns the path of the copy.

    TFX removes the outputs of a failed run.
    """
    folder = uri.rstrip("/") + "-failed"
    fileio.makedirs(folder)
    for name in (REJECTS_FILE, COUNTS_FILE):
        fileio.copy(os.path.join(uri, name), os.path.join(folder, name), overwrite=True)
    return os.path.join(folder, REJECTS_FILE)
