"""TSV files: one record per line; the format has no quotes."""

import collections
import io
import itertools
import re
from collections.abc import Callable, Iterator

from pipeline.readers.columns import QUOTED_TSV, SAMPLE, Columns, Row, find_columns, judge_row
from pipeline.readers.files import Files, decode, raw_lines
from pipeline.readers.input_plan import InputUnit
from pipeline.readers.records import Record
from pipeline.recipes.sections import DataConfig

_BLOCK = 1 << 20
# A cell in quotes, as spreadsheets write it: a quote within it is doubled.
_CLOSED_CELL = re.compile(r'"(?:[^"]|"")*"')
_OPEN_CELL = re.compile(r'"(?:[^"]|"")*')
# Text that ends a cell begun on an earlier line, and text that does not.
_CELL_END = re.compile(r'(?:[^"]|"")*"(?=\t|$)')
_NO_CELL_END = re.compile(r'(?:[^"]|"")*')
_SEVERAL_LINES = f"a quoted cell of several lines: set {QUOTED_TSV}"
_DOUBLED = f"a quoted cell: set {QUOTED_TSV}"


def _lines(path: str, files: Files) -> Iterator[tuple[int, bytes]]:
    """Yields (line number, bytes); the lines of a file without line feeds end at its returns."""
    with files.open(path) as handle:
        head = handle.read(_BLOCK)
    if b"\n" in head or b"\r" not in head:
        yield from raw_lines(path, files)
        return
    with files.open(path) as handle:
        text = io.TextIOWrapper(handle, "latin-1", newline="\r")
        for number, line in enumerate(text, 1):
            raw = line.encode("latin-1")
            yield number, (raw.removeprefix(b"\xef\xbb\xbf") if number == 1 else raw).rstrip(b"\r")


def _row(line: int, raw: bytes) -> Row:
    text = decode(raw)
    if text is None:
        return Row(line, None, raw, "not valid UTF-8")
    cells = text.split("\t")
    if _is_quoted(cells):
        return Row(line, None, text, _DOUBLED)
    return Row(line, cells, text)


def _is_quoted(cells: list[str]) -> bool:
    """Whether quotes are marks and not part of the text, as far as one line can show."""
    quoted = [cell for cell in cells if cell.startswith('"')]
    return all(map(_CLOSED_CELL.fullmatch, quoted)) and any(
        '""' in cell[1:-1] or cell == '""' for cell in quoted
    )


def _is_open(text: str) -> bool:
    """Whether a line, or the rest of one, ends within a cell in quotes."""
    cells = text.split("\t")
    for index, cell in enumerate(cells):
        if cell.startswith('"') and not _CLOSED_CELL.fullmatch(cell):
            if _OPEN_CELL.fullmatch("\t".join(cells[index:])):
                return True
    return False


def _rows(path: str, files: Files, width: int, max_characters: int) -> Iterator[Row]:
    """Yields the rows; those of a quoted cell with several lines are rejected one by one.

    A cell's text may begin with a quote. So lines only count as parts of a quoted cell if
    one of them has not as many cells as a row should have.
    """
    lines = _lines(path, files)
    ahead: collections.deque[Row] = collections.deque()

    def row_at(index: int) -> Row | None:
        while len(ahead) <= index:
            following = next(lines, None)
            if following is None:
                return None
            ahead.append(_row(*following))
        return ahead[index]

    while (first := row_at(0)) is not None:
        last = 0
        if isinstance(first.text, str) and '"' in first.text and _is_open(first.text):
            last = _last_of_cell(row_at, max_characters)
        group = [ahead.popleft() for _ in range(last + 1)]
        if last and any(row.cells is None or len(row.cells) != width for row in group):
            group = [Row(row.line, None, row.text, _SEVERAL_LINES) for row in group]
        yield from group


def _last_of_cell(row_at: Callable[[int], Row | None], max_characters: int) -> int:
    """Returns the index of the line where the quoted cells end that line 0 begins, or 0."""
    length = 0
    for index in itertools.count(1):
        row = row_at(index)
        if row is None or not isinstance(row.text, str):
            return 0
        length += len(row.text)
        end = _CELL_END.match(row.text)
        if end:
            rest = row.text[end.end() + 1 :]
            if not _is_open(rest):
                return index
        # A longer text would be rejected anyway.
        elif length > max_characters or not _NO_CELL_END.fullmatch(row.text):
            return 0
    return 0


def _columns(path: str, config: DataConfig, files: Files) -> Columns:
    rows = [_row(*line) for line in itertools.islice(_lines(path, files), SAMPLE)]
    # The names of a header may be quoted, and unreadable rows have no cells.
    shown = [row._replace(cells=str(row.text).split("\t")) for row in rows]
    return find_columns(shown, config, path, "\t", quotes=False)


def check_tsv(unit: InputUnit, config: DataConfig, files: Files) -> None:
    """Raises `DataError` if a column is missing: see `formats`."""
    _columns(unit.paths[0], config, files)


def read_tsv(unit: InputUnit, config: DataConfig, files: Files) -> Iterator[Record]:
    """Yields the records of a TSV file: see `formats`."""
    (name,), (path,) = unit.names, unit.paths
    columns = _columns(path, config, files)
    has_header = columns.has_header
    for row in _rows(path, files, columns.width, config.max_characters):
        if has_header and not row.is_empty:
            has_header = False
        else:
            yield judge_row(row, columns, name, config)
