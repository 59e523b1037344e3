"""What a document's reader is told besides the file."""

import dataclasses

from pipeline.documents.columns import ColumnNames


@dataclasses.dataclass(frozen=True)
class Options:
    """How a document is read.

    Attributes:
        columns: the names of columns, for tables and JSON Lines.
        language: the language of the translations as a BCP 47 tag, such as `pt-BR`; empty if it is
            unknown.
        existing: (path, content) of the translated file, for formats with one language in a file:
            its translations stay. None if there is no such file.
    """

    columns: ColumnNames = ColumnNames()
    language: str = ""
    existing: tuple[str, bytes] | None = None
