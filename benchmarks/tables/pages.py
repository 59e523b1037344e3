"""Pages with marked places, between which their tables stand.

<!-- table: NAME -->
(written by `python -m benchmarks.tables`)
<!-- /table -->
"""

import pathlib
import re
from collections.abc import Callable, Iterator

ROOT = pathlib.Path(__file__).parents[2]
_MARKED = re.compile(
    r"^<!-- table: (?P<name>\S+) -->\n(?P<text>.*?)^<!-- /table -->$", re.MULTILINE | re.DOTALL
)
_OPENED = re.compile(r"^<!-- table: (\S+) -->$", re.MULTILINE)


class PageError(Exception):
    """A page whose markers cannot be used; its message is one sentence."""


def pages(root: pathlib.Path = ROOT) -> Iterator[pathlib.Path]:
    """Yields the pages that may have tables: README, the site's, those of the benchmarks."""
    yield root / "README.md"
    yield from sorted((root / "docs").rglob("*.md"))
    yield from sorted((root / "benchmarks").rglob("*.md"))


def filled(text: str, table: Callable[[str], str], where: str = "the page") -> str:
    """Returns a page's text with its tables as they should be.

    Args:
        text: of the page.
        table: returns the Markdown of a table by its name; KeyError where there is none.
        where: the page's name, for messages.

    Raises:
        PageError: a marker has no end, or names no table.
    """
    opened, marked = _OPENED.findall(text), [match["name"] for match in _MARKED.finditer(text)]
    if opened != marked:
        unclosed = next((name for name in opened if name not in marked), opened[0])
        raise PageError(f"{where}: the table {unclosed} has no <!-- /table --> behind it.")

    def replace(match: re.Match[str]) -> str:
        try:
            made = table(match["name"])
        except KeyError:
            raise PageError(f"{where}: there is no table {match['name']}.") from None
        return f"<!-- table: {match['name']} -->\n\n{made}\n<!-- /table -->"

    return _MARKED.sub(replace, text)


def tables_of(text: str) -> list[str]:
    """Returns the names of the tables of a page."""
    return _OPENED.findall(text)
