"""Tables: TSV, whose cells have no quotes, and CSV as in RFC 4180."""

import csv
import dataclasses
import io
import re
from collections.abc import Iterator, Mapping

from pipeline.documents.columns import ColumnNames
from pipeline.documents.document import Document, DocumentError, Segment, decode


@dataclasses.dataclass
class _Row:
    """A row: its line, its text as it is, its line end, and its cells."""

    line: int
    text: str
    end: str
    cells: list[str]


class TableDocument(Document):
    """Rows with a text and, perhaps, its translation.

    The first row names the columns, unless there is but one column, which then is the texts'. The
    column of translations is added as the last one if it is missing.

    Args:
        path: its name in messages.
        content: its bytes.
        separator: what stands between cells.
        is_quoted: whether cells may be in quotes.
        columns: the names of the columns.

    Raises:
        DocumentError: it is not UTF-8, contains no text, is not valid, or has no such column.
    """

    def __init__(
        self, path: str, content: bytes, separator: str, is_quoted: bool, columns: ColumnNames
    ) -> None:
        super().__init__()
        text, self._mark = decode(path, content)
        self._separator = separator
        self._is_quoted = is_quoted
        self._target_name = columns.target
        self._rows = list(self._read_rows(path, text))
        used = [row for row in self._rows if any(cell.strip() for cell in row.cells)]
        header = used[0].cells
        self._header: _Row | None = used[0] if columns.source in header else None
        if self._header:
            self._source = header.index(columns.source)
            has_target = columns.target in header
            self._target = header.index(columns.target) if has_target else len(header)
            self._adds_column = not has_target
        elif len(header) > 1:
            raise DocumentError(
                f"{path} has no column '{columns.source}', but {', '.join(header)}: name the "
                "column of the texts with --source-column."
            )
        else:
            self._source, self._target, self._adds_column = 0, 1, True
        self._places: list[_Row] = []
        for row in self._rows:
            if row is not self._header and any(row.cells):
                self._sort(row)

    def _sort(self, row: _Row) -> None:
        source, target = (
            row.cells[index] if index < len(row.cells) else ""
            for index in (self._source, self._target)
        )
        if self._adds_column and len(row.cells) > self._target:
            self.problems.append((row.line, "more cells than the first row"))
        elif target.strip():
            self.translated_before += 1
        elif not source.strip():
            self.blank.append(row.line)
        else:
            self._places.append(row)
            self.segments.append(Segment(row.line, source))

    def _read_rows(self, path: str, text: str) -> Iterator[_Row]:
        if not self._is_quoted:
            # `splitlines` would cut at U+2028 too.
            lines = text.split("\n")
            for number, line in enumerate(lines, 1):
                end = "\n" if number < len(lines) else ""
                cut = line.removesuffix("\r")
                yield _Row(number, cut, line[len(cut) :] + end, cut.split(self._separator))
            return
        stream = io.StringIO(text, newline="")
        taken: list[str] = []

        def feed() -> Iterator[str]:
            for line in stream:
                taken.append(line)
                yield line

        reader = csv.reader(feed(), delimiter=self._separator, strict=True)
        first = 1
        while True:
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                raise DocumentError(
                    f"{path} is not valid CSV: see line {first} ({error})."
                ) from None
            whole = "".join(taken)
            cut = whole.rstrip("\r\n")
            yield _Row(first, cut, whole[len(cut) :], cells)
            first += len(taken)
            taken.clear()

    def filled(self, texts: Mapping[int, str], note: str) -> bytes:
        """See `Document`. A row without a translation has an empty cell for it."""
        targets = {id(self._places[place]): text for place, text in texts.items()}
        written = []
        for row in self._rows:
            text = row.text
            if row is self._header:
                if self._adds_column:
                    text += self._separator + self._cell(self._target_name)
            elif id(row) in targets:
                text = self._with_target(row, targets[id(row)])
            elif self._adds_column and any(row.cells) and len(row.cells) <= self._target:
                text = self._with_target(row, "")
            written.append(text + row.end)
        return self._mark + "".join(written).encode("utf-8")

    def _with_target(self, row: _Row, target: str) -> str:
        cells = [*row.cells, *[""] * (self._target + 1 - len(row.cells))]
        if len(row.cells) == self._target:
            return row.text + self._separator + self._cell(target)
        cells[self._target] = target
        return self._separator.join(map(self._cell, cells))

    def _cell(self, text: str) -> str:
        if not self._is_quoted:
            return re.sub(rf"[\r\n{self._separator}]+", " ", text)
        if any(mark in text for mark in (self._separator, '"', "\r", "\n")):
            return '"' + text.replace('"', '""') + '"'
        return text
