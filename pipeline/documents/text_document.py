"""Plain text, one segment per line."""

from collections.abc import Mapping

from pipeline.documents.document import Document, Segment, decode, on_one_line


class TextDocument(Document):
    """Lines, which only line feeds end; the output has as many.

    Args:
        path: its name in messages.
        content: its bytes.

    Raises:
        DocumentError: it is not UTF-8, or contains no text.
    """

    def __init__(self, path: str, content: bytes) -> None:
        super().__init__()
        text, self._mark = decode(path, content)
        self._lines = text.split("\n")
        self._places: list[int] = []
        for number, line in enumerate(self._lines):
            if line.strip():
                self._places.append(number)
                self.segments.append(Segment(number + 1, line.removesuffix("\r")))
            # What follows the last line feed is no line.
            elif number < len(self._lines) - 1 or line:
                self.blank.append(number + 1)

    def filled(self, texts: Mapping[int, str], note: str) -> bytes:
        """See `Document`. A line without a translation becomes an empty one."""
        lines = list(self._lines)
        for place, number in enumerate(self._places):
            end = "\r" if lines[number].endswith("\r") else ""
            lines[number] = on_one_line(texts.get(place, "")) + end
        return self._mark + "\n".join(lines).encode("utf-8")
