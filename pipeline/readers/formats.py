"""The formats by their names, and reading a plan's files by them."""

from pipeline.readers.aligned_lines import read_lines
from pipeline.readers.delimited import read_csv, read_tsv
from pipeline.readers.files import files_for
from pipeline.readers.gettext_catalogues import read_gettext
from pipeline.readers.json_lines import read_jsonl

# A format is a function of (unit, config, files) that yields each record as a `Pair` or a `Reject`.
_READERS = {
    "tsv": read_tsv,
    "csv": read_csv,
    "jsonl": read_jsonl,
    "lines": read_lines,
    "gettext": read_gettext,
}


def read_unit(unit, data_config):
    """Reads the records of one unit, in order.

    Args:
        unit: an `InputUnit` of a plan.
        data_config: the `DataConfig` that the plan was made with.

    Yields:
        A `Pair` or a `Reject` for each record. Duplicates are not known here: they are found over
        all units.

    Raises:
        DataError: the unit cannot be read at all (what `plan_inputs` would have said).
    """
    files = files_for(unit.paths[0])
    return _READERS[unit.format](unit, data_config, files)


def read_plan(plan, data_config):
    """Yields the records of all units in order, `Pair` or `Reject`, duplicates included."""
    for unit in plan.units:
        yield from read_unit(unit, data_config)
