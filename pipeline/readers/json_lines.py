"""JSON Lines files: a record an object."""

import json

from pipeline.readers.files import decode, raw_lines
from pipeline.readers.records import judge, reject


def read_jsonl(unit, config, files):
    """Yields the records of a JSON Lines file: see `formats`."""
    (name,), (path,) = unit.names, unit.paths
    wanted = (config.source_column, config.target_column, *config.extra_columns)
    for line, raw in raw_lines(path, files):
        text = decode(raw)
        if text is None:
            yield reject(name, line, "not valid UTF-8", raw)
            continue
        if not text.strip():
            yield reject(name, line, "empty line", text)
            continue
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):  # RecursionError: brackets nested by the thousand
            yield reject(name, line, "not valid JSON", text)
            continue
        if not isinstance(value, dict):
            yield reject(name, line, "not a JSON object", text)
        elif any(column not in value for column in wanted):
            yield reject(name, line, "missing column", text)
        elif not all(isinstance(value[column], str) for column in wanted):
            yield reject(name, line, "value is not a text", text)
        else:
            source, target, *features = (value[column] for column in wanted)
            yield judge(source, target, name, line, config, tuple(features))
