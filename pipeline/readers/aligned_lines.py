"""Two line-aligned files: a record a line number."""

import itertools

from pipeline.readers.files import decode, raw_lines
from pipeline.readers.records import judge, reject


def read_lines(unit, config, files):
    """Yields the records of two line-aligned files: see `formats`."""
    name = unit.names[0]
    nothing = (0, None)
    sides = [raw_lines(path, files) for path in unit.paths]
    for (line, source_raw), (target_line, target_raw) in itertools.zip_longest(
        *sides, fillvalue=nothing
    ):
        line = line or target_line
        raw = b"\t".join(side for side in (source_raw, target_raw) if side is not None)
        if source_raw is None or target_raw is None:  # the files changed since they were planned
            yield reject(name, line, "no partner line", raw)
            continue
        source, target = decode(source_raw), decode(target_raw)
        if source is None or target is None:
            yield reject(name, line, "not valid UTF-8", raw)
        else:
            yield judge(source, target, name, line, config)
