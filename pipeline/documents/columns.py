"""The columns of tables and JSON Lines that hold texts and translations."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class ColumnNames:
    """Names of columns.

    Attributes:
        source: that of the texts.
        target: that of their translations; it is added where it is missing.
    """

    source: str = "source"
    target: str = "target"
