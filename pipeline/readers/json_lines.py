"""JSON Lines files: one record per object."""

import json
from collections.abc import Iterator

from pipeline.readers import DataError
from pipeline.readers.files import Files, decode, raw_lines
from pipeline.readers.input_plan import InputUnit
from pipeline.readers.records import Record, judge, reject
from pipeline.recipes.sections import DataConfig


def check_jsonl(unit: InputUnit, config: DataConfig, files: Files) -> None:
    """Raises `DataError` if the file is one JSON array: see `formats`."""
    _, first = next(raw_lines(unit.paths[0], files))
    if first.lstrip().startswith(b"["):
        raise DataError(
            f"{unit.paths[0]} is one JSON array: write JSON Lines, one object per line."
        )


def read_jsonl(unit: InputUnit, config: DataConfig, files: Files) -> Iterator[Record]:
    """Yields the records of a JSON Lines file: see `formats`."""
    (name,), (path,) = unit.names, unit.paths
    columns = (config.source_column, config.target_column, *config.extra_columns)
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
        # RecursionError: brackets nested by the thousand.
        except (ValueError, RecursionError):
            yield reject(name, line, "not valid JSON", text)
            continue
        if not isinstance(value, dict):
            yield reject(name, line, "not a JSON object", text)
        elif any(column not in value for column in columns):
            yield reject(name, line, "missing column", text)
        elif not all(isinstance(value[column], str) for column in columns):
            yield reject(name, line, "value is not text", text)
        else:
            source, target, *features = (value[column] for column in columns)
            yield judge(source, target, name, line, config, tuple(features))
