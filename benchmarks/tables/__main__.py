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

PICTURES = pathlib.Path("docs", "results", "pictures")


def changed_files(
    tables: Tables, root: pathlib.Path = pages.ROOT
) -> dict[pathlib.Path, str | None]:
    """Returns the new texts of the pages and pictures that are not as they should be.

    None stands for a picture that should not be there.
    """
    changed: dict[pathlib.Path, str | None] = {}
    for page in pages.pages(root):
        text = page.read_text(encoding="utf-8")
        new = pages.filled(text, tables.markdown, page.name)
        if new != text:
            changed[page] = new
    folder = root / PICTURES
    drawn = {folder / f"{name}.svg": svg for name in tables.plans if (svg := tables.picture(name))}
    for path, svg in drawn.items():
        if not path.is_file() or path.read_text(encoding="utf-8") != svg:
            changed[path] = svg
    changed.update(dict.fromkeys(set(folder.glob("*.svg")) - set(drawn)))
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
        changed = changed_files(tables)
    except (PlanError, RecordError, pages.PageError) as error:
        print(f"tables: {error}", file=sys.stderr)
        return 1
    for path, text in changed.items():
        print(path.relative_to(pages.ROOT))
        if options.check:
            continue
        if text is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            whole_files.write_text(path, text)
    return 1 if changed and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
