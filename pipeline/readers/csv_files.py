"""CSV files: one record per row, as in RFC 4180; a quoted cell may hold line ends."""

import collections
import csv
import io
import itertools
import re
import typing
from collections.abc import Iterator, Sequence

from pipeline.readers.columns import SAMPLE, Columns, Row, find_columns, judge_row
from pipeline.readers.files import Files
from pipeline.readers.input_plan import InputUnit
from pipeline.readers.records import Record
from pipeline.recipes.sections import DataConfig

_NOT_CSV = "not valid CSV: a quote is not closed, or one within a quoted cell is not doubled"
_IN_DOUBT = "not valid CSV: an invalid quoted cell seems to span this line"
_BLANK = "not valid CSV: a blank before a quote"
# How many lines are searched for the end of an invalid quoted cell.
_MOST_LINES = 1000
# The replacement for a NUL, which the csv module of Python 3.10 refuses; both are control
# characters.
_NUL = {0: "\x01"}


class _Line(typing.NamedTuple):
    number: int
    text: str


def _lines(path: str, files: Files) -> Iterator[_Line]:
    """Yields the lines with their ends: line feed, carriage return, or both.

    Bytes that are not UTF-8 come as lone surrogates, so that only their own row is rejected.
    """
    with files.open(path) as handle:
        text = io.TextIOWrapper(handle, "utf-8-sig", "surrogateescape", newline="")
        for number, line in enumerate(text, 1):
            yield _Line(number, line)


class _Rows:
    """Cuts lines into rows, and recovers after a quote that is not closed."""

    def __init__(self, lines: Iterator[_Line], separator: str, width: int | None) -> None:
        """Takes the lines, the separator, and the number of cells of a row if it is known."""
        self._lines = lines
        self._separator = separator
        self._width = width
        # Lines to read again.
        self._ahead: collections.deque[_Line] = collections.deque()
        mark = re.escape(separator)
        # A row with valid quotes; the last cell may continue on the next line.
        self._well_formed = re.compile(
            rf'(?:(?:"(?:[^"]|"")*"|[^"{mark}]*){mark})*(?:"(?:[^"]|"")*"?|[^"{mark}]*)'
        )
        self._blank = re.compile(rf'(?:^|{mark})[ \t]+"') if separator != "\t" else None

    def __iter__(self) -> Iterator[Row]:
        while (line := self._next()) is not None:
            text = line.text.rstrip("\r\n")
            if '"' not in text:
                yield Row(line.number, text.split(self._separator), text)
                continue
            self._ahead.appendleft(line)
            yield from self._quoted_row()

    def _next(self) -> _Line | None:
        return self._ahead.popleft() if self._ahead else next(self._lines, None)

    def _quoted_row(self) -> Iterator[Row]:
        taken: list[_Line] = []

        def feed() -> Iterator[str]:
            while (line := self._next()) is not None:
                taken.append(line)
                yield line.text.translate(_NUL)

        cells: list[str] | None
        try:
            cells = next(csv.reader(feed(), delimiter=self._separator, strict=True))
        except csv.Error:
            cells = None
        if cells is None or (len(taken) > 1 and self._is_doubtful(cells, taken)):
            yield from self._recover(taken)
            return
        text = "".join(line.text for line in taken).rstrip("\r\n")
        if self._blank and any(cell[:1].isspace() for cell in cells) and self._blank.search(text):
            yield Row(taken[0].number, None, text, _BLANK)
        else:
            yield Row(taken[0].number, cells, text)

    def _is_doubtful(self, cells: Sequence[str], taken: Sequence[_Line]) -> bool:
        """Whether a row over several lines may hold other rows, and no text with line ends."""
        if self._width is None:
            return False
        inner = [line.text.count(self._separator) + 1 for line in taken[1:-1]]
        return len(cells) != self._width or (
            len(inner) > 2 and all(width == self._width for width in inner)
        )

    def _recover(self, taken: Sequence[_Line]) -> Iterator[Row]:
        """Rejects the first line, and those after it that may belong to its quoted cell.

        They may if the next line with a quote has it in an invalid place: there the cell ends.
        """
        first, *rest = taken
        self._ahead.extendleft(reversed(rest))
        following: list[_Line] = []
        end = 0
        for _ in range(_MOST_LINES):
            line = self._next()
            if line is None:
                break
            following.append(line)
            if '"' in line.text:
                if not self._well_formed.fullmatch(line.text.rstrip("\r\n")):
                    end = len(following)
                break
        self._ahead.extendleft(reversed(following[end:]))
        yield Row(first.number, None, first.text.rstrip("\r\n"), _NOT_CSV)
        for line in following[:end]:
            yield Row(line.number, None, line.text.rstrip("\r\n"), _IN_DOUBT)


def _columns(path: str, config: DataConfig, files: Files) -> Columns:
    rows = _Rows(_lines(path, files), config.separator, None)
    sample = list(itertools.islice(rows, SAMPLE))
    return find_columns(sample, config, path, config.separator, quotes=True)


def check_csv(unit: InputUnit, config: DataConfig, files: Files) -> None:
    """Raises `DataError` if a column is missing: see `formats`."""
    _columns(unit.paths[0], config, files)


def read_csv(unit: InputUnit, config: DataConfig, files: Files) -> Iterator[Record]:
    """Yields the records of a CSV file: see `formats`."""
    (name,), (path,) = unit.names, unit.paths
    columns = _columns(path, config, files)
    has_header = columns.has_header
    for row in _Rows(_lines(path, files), config.separator, columns.width):
        if has_header and not row.is_empty:
            has_header = False
        else:
            yield judge_row(row, columns, name, config)
