"""TSV and CSV files: one record per row; the first line names its columns."""

import csv
import typing
from collections.abc import Iterator, Sequence

from pipeline.readers import DataError
from pipeline.readers.files import BYTE_ORDER_MARK, Files, decode, raw_lines
from pipeline.readers.input_plan import InputUnit
from pipeline.readers.records import Record, judge, reject, shorten
from pipeline.recipes.sections import DataConfig


class Columns(typing.NamedTuple):
    """Where the columns stand that are read, and whether the first line names them."""

    source: int
    target: int
    features: tuple[int, ...]
    has_header: bool


def find_columns(cells: Sequence[str], config: DataConfig, path: str) -> Columns:
    """Returns the columns of a TSV or CSV file by the cells of its first line.

    Raises:
        DataError: a column is missing.
    """
    cells = [cell.strip() for cell in cells]
    columns = (config.source_column, config.target_column, *config.extra_columns)
    has_header = not config.columns or tuple(cells) == config.columns
    if config.columns:
        cells = list(config.columns)
    missing = [column for column in columns if column not in cells]
    if not missing:
        source, target, *features = map(cells.index, columns)
        return Columns(source, target, tuple(features), has_header)
    # Without a header the first two columns count. But one name out of two is a header with a
    # column missing, and a recipe that names columns of its own expects a header.
    default = type(config)()
    if missing != list(columns) or columns != (default.source_column, default.target_column):
        present = shorten(", ".join(repr(cell) for cell in cells))
        raise DataError(
            f"The header of {path} has no column '{missing[0]}' (it has {present}): correct the "
            "header, or data.source_column, data.target_column, data.source_features and "
            "data.slice_features; data.columns names the columns of a file without a header."
        )
    return Columns(0, 1, (), False)


def _judge_cells(
    cells: Sequence[str], columns: Columns, file: str, line: int, config: DataConfig
) -> Record:
    """Returns the record of one row."""
    if len(cells) <= max(columns.source, columns.target, *columns.features):
        return reject(file, line, "missing column", "\t".join(cells))
    features = tuple(cells[index] for index in columns.features)
    return judge(cells[columns.source], cells[columns.target], file, line, config, features)


def check_tsv(unit: InputUnit, config: DataConfig, files: Files) -> None:
    """Raises `DataError` if a column is missing: see `formats`."""
    _, first = next(raw_lines(unit.paths[0], files))
    find_columns((decode(first) or "").split("\t"), config, unit.paths[0])


def read_tsv(unit: InputUnit, config: DataConfig, files: Files) -> Iterator[Record]:
    """Yields the records of a TSV file: see `formats`."""
    (name,), (path,) = unit.names, unit.paths
    columns = Columns(0, 1, (), False)
    for line, raw in raw_lines(path, files):
        text = decode(raw)
        if line == 1:
            columns = find_columns((text or "").split("\t"), config, path)
            if columns.has_header:
                continue
        if text is None:
            yield reject(name, line, "not valid UTF-8", raw)
        elif not text.strip():
            yield reject(name, line, "empty line", text)
        else:
            yield _judge_cells(text.split("\t"), columns, name, line, config)


def _csv_rows(path: str, files: Files) -> Iterator[tuple[int, list[str] | None, str]]:
    """Yields (line, cells, text) of each row; cells is None where the row is not valid CSV.

    A quoted cell may hold line ends: `line` is the row's first, `text` all of its lines. Bytes that
    are not UTF-8 come as lone surrogates, so that only their own row is rejected.
    """
    read: list[str] = []

    def lines(handle: typing.IO[bytes]) -> Iterator[str]:
        for number, raw in enumerate(handle):
            if not number and raw.startswith(BYTE_ORDER_MARK):
                raw = raw[len(BYTE_ORDER_MARK) :]
            read.append(raw.decode("utf-8", "surrogateescape"))
            yield read[-1]

    with files.open(path) as handle:
        rows = csv.reader(lines(handle), strict=True)
        while True:
            line = rows.line_num + 1
            read.clear()
            cells: list[str] | None
            try:
                cells = next(rows)
            except StopIteration:
                return
            except csv.Error:
                cells = None
            yield line, cells, "".join(read).rstrip("\r\n")


def check_csv(unit: InputUnit, config: DataConfig, files: Files) -> None:
    """Raises `DataError` if a column is missing: see `formats`."""
    _, cells, _ = next(_csv_rows(unit.paths[0], files))
    find_columns(cells or [], config, unit.paths[0])


def read_csv(unit: InputUnit, config: DataConfig, files: Files) -> Iterator[Record]:
    """Yields the records of a CSV file: see `formats`."""
    (name,), (path,) = unit.names, unit.paths
    columns = None
    for line, cells, text in _csv_rows(path, files):
        if columns is None:
            columns = find_columns(cells or [], config, path)
            if columns.has_header:
                continue
        if cells is None:
            yield reject(name, line, "not valid CSV", text)
        elif not any(cell.strip() for cell in cells):
            yield reject(name, line, "empty line", text)
        else:
            yield _judge_cells(cells, columns, name, line, config)
