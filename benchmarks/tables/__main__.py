"""Writes the tables and pictures of all pages, from the result files.

    python -m benchmarks.tables           # writes
    python -m benchmarks.tables --check   # ends with status 1 if something would change

A page has a table between two markers (`benchmarks.tables.pages`). Which tables there are, and
which rows they have, say the campaigns (`benchmarks/campaigns`) and `benchmarks/summaries.toml`.
"""

import argparse
import pathlib
import sys
from collections.abc import Sequence

from benchmarks.campaign import plan as plans
from benchmarks.campaign.plan import PlanError
from benchmarks.records.record import RecordError
from benchmarks.tables import pages
from benchmarks.tables.tables import Tables
from pipeline.common import whole_files


def changed_pages(tables: Tables, root: pathlib.Path = pages.ROOT) -> dict[pathlib.Path, str]:
    """Returns the new texts of the pages that are not as the result files would have them."""
    changed = {}
    for page in pages.pages(root):
        text = page.read_text(encoding="utf-8")
        new = pages.filled(text, tables.markdown, page.name)
        if new != text:
            changed[page] = new
    return changed


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes or checks everything; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.tables", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args(arguments)
    try:
        tables = Tables(plans.load_all())
        changed = changed_pages(tables)
    except (PlanError, RecordError, pages.PageError) as error:
        print(f"tables: {error}", file=sys.stderr)
        return 1
    for page, text in changed.items():
        print(page.relative_to(pages.ROOT))
        if not options.check:
            whole_files.write_text(page, text)
    return 1 if changed and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
