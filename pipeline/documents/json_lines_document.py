"""JSON Lines: one object per line."""

import json
from collections.abc import Mapping
from typing import Any

from pipeline.documents.columns import ColumnNames
from pipeline.documents.document import Document, DocumentError, Segment, decode


class JsonLinesDocument(Document):
    """Objects with a text and, perhaps, its translation.

    Args:
        path: its name in messages.
        content: its bytes.
        columns: the keys.

    Raises:
        DocumentError: it is not UTF-8, contains no text, or is one JSON array.
    """

    def __init__(self, path: str, content: bytes, columns: ColumnNames) -> None:
        super().__init__()
        text, self._mark = decode(path, content)
        if text.lstrip().startswith("["):
            raise DocumentError(f"{path} is one JSON array: write JSON Lines, one object per line.")
        self._columns = columns
        self._lines = text.split("\n")
        self._places: list[tuple[int, dict[str, Any]]] = []
        for number, line in enumerate(self._lines):
            if line.strip():
                self._read(number, line)

    def _read(self, number: int, line: str) -> None:
        try:
            value = json.loads(line)
        # RecursionError: brackets nested by the thousand.
        except (ValueError, RecursionError):
            self.problems.append((number + 1, "not valid JSON"))
            return
        name = self._columns.source
        if not isinstance(value, dict) or not isinstance(value.get(name), str):
            self.problems.append((number + 1, f'no object with a text "{name}"'))
        elif value.get(self._columns.target) not in (None, ""):
            self.translated_before += 1
        elif not value[name].strip():
            self.blank.append(number + 1)
        else:
            self._places.append((number, value))
            self.segments.append(Segment(number + 1, value[name]))

    def filled(self, texts: Mapping[int, str], note: str) -> bytes:
        """See `Document`. An object without a translation stays as it is."""
        lines = list(self._lines)
        for place, text in texts.items():
            number, value = self._places[place]
            end = "\r" if lines[number].endswith("\r") else ""
            filled = {**value, self._columns.target: text}
            lines[number] = json.dumps(filled, ensure_ascii=False) + end
        return self._mark + "\n".join(lines).encode("utf-8")
