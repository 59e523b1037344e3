"""Two line-aligned files: one record per line number."""

import itertools
from collections.abc import Iterator

from pipeline.readers import DataError
from pipeline.readers.files import Files, count_lines, decode, raw_lines
from pipeline.readers.input_plan import InputUnit
from pipeline.readers.records import Record, judge, reject
from pipeline.recipes.sections import DataConfig


def check_lines(unit: InputUnit, config: DataConfig, files: Files) -> None:
    """Raises `DataError` if the two files differ in length: see `formats`."""
    counts = [count_lines(path, files) for path in unit.paths]
    if counts[0] != counts[1]:
        raise DataError(
            f"{unit.paths[0]} has {counts[0]} lines but {unit.paths[1]} has {counts[1]}: "
            "line-aligned files must have the same number of lines."
        )


def read_lines(unit: InputUnit, config: DataConfig, files: Files) -> Iterator[Record]:
    """Yields the records of two line-aligned files: see `formats`."""
    name = unit.names[0]
    source_lines, target_lines = (raw_lines(path, files) for path in unit.paths)
    nothing: tuple[int, None] = (0, None)
    for (line, source_raw), (target_line, target_raw) in itertools.zip_longest(
        source_lines, target_lines, fillvalue=nothing
    ):
        line = line or target_line
        raw = b"\t".join(side for side in (source_raw, target_raw) if side is not None)
        # The files changed since they were planned.
        if source_raw is None or target_raw is None:
            yield reject(name, line, "no partner line", raw)
            continue
        source, target = decode(source_raw), decode(target_raw)
        if source is None or target is None:
            yield reject(name, line, "not valid UTF-8", raw)
        else:
            yield judge(source, target, name, line, config)
