"""The formats by their names, and reading a plan's files by them.

A new format is a module of this package, a line in `FORMATS`, and its name in
`pipeline.recipes.choices.FORMATS`.
"""

import dataclasses
import sys
from collections.abc import Callable, Iterator

from pipeline.common import progress
from pipeline.readers.aligned_lines import check_lines, read_lines
from pipeline.readers.csv_files import check_csv, read_csv
from pipeline.readers.files import Files, files_for
from pipeline.readers.gettext_catalogues import check_gettext, read_gettext
from pipeline.readers.input_plan import InputPlan, InputUnit
from pipeline.readers.json_lines import check_jsonl, read_jsonl
from pipeline.readers.records import Record
from pipeline.readers.translation_units import check_tmx, check_xliff, read_tmx, read_xliff
from pipeline.readers.tsv_files import check_tsv, read_tsv
from pipeline.recipes.sections import DataConfig


@dataclasses.dataclass(frozen=True)
class Format:
    """One format of files.

    Attributes:
        suffixes: those of its files.
        check: raises `DataError` if a unit of files cannot be read at all; they are not empty.
        read: yields each record of a unit as a `Pair` or a `Reject`.
        has_columns: whether there can be columns besides source and target.
        is_utf8: whether its files must be UTF-8; else they name their charset themselves.
        rejects_files: whether a file that cannot be read is a record that is rejected, and does not
            stop the others of its folder.
    """

    suffixes: tuple[str, ...]
    check: Callable[[InputUnit, DataConfig, Files], None]
    read: Callable[[InputUnit, DataConfig, Files], Iterator[Record]]
    has_columns: bool = True
    is_utf8: bool = True
    rejects_files: bool = False


#: By the recipe's name. Line-aligned files have the languages as suffixes.
FORMATS = {
    "tsv": Format((".tsv", ".txt"), check_tsv, read_tsv),
    "csv": Format((".csv",), check_csv, read_csv),
    "jsonl": Format((".jsonl", ".json"), check_jsonl, read_jsonl),
    "lines": Format((), check_lines, read_lines, has_columns=False),
    "gettext": Format(
        (".po", ".mo"),
        check_gettext,
        read_gettext,
        has_columns=False,
        is_utf8=False,
        rejects_files=True,
    ),
    "tmx": Format(
        (".tmx",), check_tmx, read_tmx, has_columns=False, is_utf8=False, rejects_files=True
    ),
    "xliff": Format(
        (".xlf", ".xliff"), check_xliff, read_xliff, has_columns=False, rejects_files=True
    ),
}


def read_unit(
    unit: InputUnit, data_config: DataConfig, longest_test: int | None = None
) -> Iterator[Record]:
    """Reads the records of one unit, in order.

    Args:
        unit: one of a plan.
        data_config: the one that the plan was made with.
        longest_test: the most tokens of a text in the files given as test split, which are to be
            measured whole; None for the limits of `data_config`, which are for training.

    Yields:
        A `Pair` or a `Reject` for each record. Duplicates are not known here: they are found over
        all units.

    Raises:
        DataError: the unit cannot be read at all (what `plan_inputs` would have reported).
    """
    files = files_for(unit.paths[0])
    if unit.split == "test" and longest_test is not None:
        data_config = dataclasses.replace(
            data_config, max_tokens=longest_test, max_characters=sys.maxsize
        )
    return _counted(unit, FORMATS[unit.format].read(unit, data_config, files))


def _counted(unit: InputUnit, records: Iterator[Record]) -> Iterator[Record]:
    """Yields the records of a unit, and shows how many have been read."""
    with progress.counted(f"reading {unit.names[0]}", None, "records") as advance:
        for record in records:
            yield record
            advance(1)


def read_plan(plan: InputPlan, data_config: DataConfig) -> Iterator[Record]:
    """Yields the records of all units in order, `Pair` or `Reject`, duplicates included."""
    for unit in plan.units:
        yield from read_unit(unit, data_config)
