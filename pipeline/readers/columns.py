"""The columns of TSV and CSV files: their places, and the errors of a row."""

import collections
import csv
import re
import typing
from collections.abc import Iterable, Sequence

from pipeline.readers import DataError
from pipeline.readers.records import Record, judge, reject, shorten
from pipeline.recipes.sections import DataConfig

#: How many rows at the beginning of a file are read to find the number of cells.
SAMPLE = 100
SEPARATORS = (",", ";", "\t", "|")
#: The settings that read TSV with quoted cells.
QUOTED_TSV = 'data.format = "csv" and data.separator = "\\t"'

# The first line by which a spreadsheet names its separator.
_SEPARATOR_LINE = re.compile(r'"?sep=(.)"?', re.IGNORECASE)


class Row(typing.NamedTuple):
    """A row as it was read.

    Attributes:
        line: its first line, from 1.
        cells: None if it cannot be read.
        text: all of its lines, without the last line end.
        reason: why it cannot be read.
    """

    line: int
    cells: Sequence[str] | None
    text: str | bytes
    reason: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether it holds only white space."""
        return self.cells is not None and not any(cell.strip() for cell in self.cells)


class Columns(typing.NamedTuple):
    """The places of the columns that are read.

    Attributes:
        source, target, features: their indices.
        has_header: whether the first row names them.
        width: how many cells a row has.
        names: those of all columns; empty if nothing names them.
        quotes: whether the format has quoted cells.
    """

    source: int
    target: int
    features: tuple[int, ...]
    has_header: bool
    width: int
    names: tuple[str, ...]
    quotes: bool


def find_columns(
    rows: Sequence[Row], config: DataConfig, path: str, separator: str, quotes: bool
) -> Columns:
    """Returns the columns of a TSV or CSV file.

    The names of columns are the recipe's, in small letters or capitals.

    Args:
        rows: its first `SAMPLE` rows.
        config: the recipe's section.
        path: the file.
        separator: the one that the cells were divided by.
        quotes: whether the format has quoted cells.

    Raises:
        DataError: a column is missing, or the file has another separator.
    """
    rows = [row for row in rows if not row.is_empty]
    cells = [cell.strip() for cell in rows[0].cells or ()] if rows else []
    wanted = (config.source_column, config.target_column, *config.extra_columns)
    named = bool(config.columns)
    has_header = not named or _folded(cells) == _folded(config.columns)
    names = tuple(config.columns if named else cells)
    places = [_place(column, names, path) for column in wanted]
    if None not in places:
        source, target, *features = typing.cast(list[int], places)
        return Columns(source, target, tuple(features), has_header, len(names), names, quotes)
    first = rows[0].text if rows and isinstance(rows[0].text, str) else ""
    _check_separator(first.split("\n")[0].rstrip("\r"), wanted, path, separator, quotes)
    # Without a header the first two columns count. But one name out of two is a header with a
    # column missing, and a recipe that names columns of its own expects a header.
    default = type(config)()
    if any(place is not None for place in places) or wanted != (
        default.source_column,
        default.target_column,
    ):
        missing = wanted[places.index(None)]
        present = shorten(", ".join(repr(cell) for cell in names))
        raise DataError(
            f"The header of {path} has no column '{missing}' (it has {present}): correct the "
            "header, or data.source_column, data.target_column, data.source_features and "
            "data.slice_features; data.columns names the columns of a file without a header."
        )
    _check_rows(rows, path, separator, quotes)
    width = _usual_width(len(row.cells or ()) for row in rows)
    return Columns(0, 1, (), False, width, (), quotes)


def judge_row(row: Row, columns: Columns, file: str, config: DataConfig) -> Record:
    """Returns the record of one row."""
    if row.cells is None:
        return reject(file, row.line, row.reason, row.text)
    if row.is_empty:
        return reject(file, row.line, "empty line", row.text)
    cells = list(row.cells)
    # Spreadsheets fill rows up with empty cells.
    while len(cells) > columns.width and not cells[-1].strip():
        del cells[-1]
    reason = ""
    whose = "the header" if columns.names else "most rows"
    if len(cells) > columns.width:
        hint = (
            "quote a text that contains the separator"
            if columns.quotes
            else "a text cannot hold a tab"
        )
        reason = f"more cells than {whose}: {hint}"
    elif len(cells) <= max(columns.source, columns.target, *columns.features):
        reason = "missing column"
    elif columns.names and len(cells) < columns.width:
        reason = (
            f"fewer cells than {whose}: give each row all of its cells, empty ones if necessary"
        )
    elif _is_header(cells, columns, config):
        reason = "a header among the rows: keep only one, as the first line"
    if reason:
        return reject(file, row.line, reason, row.text)
    features = tuple(cells[index] for index in columns.features)
    return judge(cells[columns.source], cells[columns.target], file, row.line, config, features)


def _folded(names: Iterable[str]) -> list[str]:
    return [name.strip().casefold() for name in names]


def _place(column: str, names: Sequence[str], path: str) -> int | None:
    """Returns the index of a column, or None.

    Raises:
        DataError: there are two of the name.
    """
    for present, name in ((list(names), column), (_folded(names), column.casefold())):
        if present.count(name) > 1:
            raise DataError(f"The header of {path} has two columns '{name}': rename one.")
        if name in present:
            return present.index(name)
    return None


def _is_header(cells: Sequence[str], columns: Columns, config: DataConfig) -> bool:
    """Whether a row repeats the names of the columns."""
    if columns.names:
        return _folded(cells) == _folded(columns.names)
    return _folded(cells[:2]) == _folded((config.source_column, config.target_column))


def _usual_width(widths: Iterable[int]) -> int:
    """Returns the most frequent number of cells above one; of equally frequent numbers the
    larger."""
    counts = collections.Counter(width for width in widths if width >= 2)
    return max(counts, key=lambda width: (counts[width], width), default=2)


def _check_separator(
    line: str, wanted: Sequence[str], path: str, separator: str, quotes: bool
) -> None:
    """Refuses a header whose names have another separator, or quotes.

    Raises:
        DataError: the sentence names the keys to set.
    """
    if match := _SEPARATOR_LINE.match(line):
        raise DataError(
            f"{path} begins with the line {match.group()}: remove this line, and set "
            f"{_setting(match.group(1))}."
        )
    for other in SEPARATORS:
        try:
            cells = _folded(next(csv.reader([line], delimiter=other), []))
        except csv.Error:
            continue
        if not set(_folded(wanted)) <= set(cells):
            continue
        if other == separator and not quotes:
            raise DataError(f"The cells of {path} are quoted: set {QUOTED_TSV}.")
        if other != separator:
            raise _other_separator(path, other)


def _check_rows(rows: Sequence[Row], path: str, separator: str, quotes: bool) -> None:
    """Refuses rows without a header that another separator divides more evenly.

    Raises:
        DataError: the sentence names the keys to set.
    """
    texts = [row.text for row in rows if isinstance(row.text, str)]
    own = {len(row.cells or ()) for row in rows}
    if not texts or own == {2} or (separator != "," and own != {1}):
        return
    for other in SEPARATORS:
        if other == separator:
            continue
        try:
            widths = {len(next(csv.reader([text], delimiter=other), [])) for text in texts}
        except csv.Error:
            continue
        # Any other number of cells may be columns that are not read, if all rows have it.
        if len(widths) == 1 and (widths == {2} or (len(own) > 1 or own == {1}) and widths != {1}):
            raise _other_separator(path, other)


def _setting(separator: str) -> str:
    shown = "\\t" if separator == "\t" else separator
    return f'data.format = "csv" and data.separator = "{shown}"'


def _other_separator(path: str, separator: str) -> DataError:
    return DataError(
        f"{path} seems to be separated by {separator!r}: set {_setting(separator)}, or name its "
        "columns with data.columns if it is not."
    )
