"""Writes WikiSQL with the column names of its tables in the source, so that they can be copied.

    python -m benchmarks.wikisql_columns data/wikisql data/wikisql_columns

Seq2SQL's augmented pointer network (Zhong et al. 2017, section 2.1) reads the names of all columns
of the table before the question, and copies them. The corpus' files hold no headers, so here the
columns of a table are those that its questions use, in the order of their names: 4.8 on average,
where the tables have some 6. The choice among them is thus easier than the document's.

A line `What is Trey Johnson's team?` with
`SELECT TABLEalias0.TEAM_FIELD FROM TABLE AS TABLEalias0 WHERE TABLEalias0.PLAYER_FIELD = "..." ;`
becomes `player ; team ; what is trey johnson's team?` with `select team where player = "..."`.
"""

import argparse
import collections
import pathlib
import re
import sys
from collections.abc import Iterable, Sequence

from pipeline.common.errors import VerbatimError
from pipeline.common.text_lines import read_lines

#: The files of the corpus: question, query and the table's id.
FILES = ("train.tsv", "dev.tsv")

_TABLE = " FROM TABLE AS TABLEalias0"
_END = " ;"
# A name has no space; the corpus leaves the table's alias out where the name has a full stop.
_COLUMN = re.compile(r"(?:TABLEalias0\.)?(\S+)_FIELD(?=\s)")


class CorpusError(VerbatimError):
    """The corpus cannot be read."""


def columns_of(query: str) -> list[str]:
    """Returns the column names of a query, as words in lower case."""
    return [_words(name) for name in _COLUMN.findall(query)]


def short_query(query: str) -> str:
    """Returns a query without the parts that all queries have, its columns as words."""
    text = query.removesuffix(_END).replace(_TABLE, "", 1)
    text = _COLUMN.sub(lambda match: _words(match[1]), text + " ")
    return " ".join(text.lower().split())


def with_columns(rows: Iterable[Sequence[str]]) -> list[tuple[str, str, str]]:
    """Puts the columns of each row's table before its question.

    Args:
        rows: question, query and the table's id.

    Returns:
        Source, target and the table's id of each row.
    """
    rows = list(rows)
    columns: dict[str, set[str]] = collections.defaultdict(set)
    for _, query, table in rows:
        columns[table].update(columns_of(query))
    return [
        (" ; ".join([*sorted(columns[table]), question.lower()]), short_query(query), table)
        for question, query, table in rows
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the files; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.wikisql_columns", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("corpus", type=pathlib.Path, help="the folder with train.tsv and dev.tsv")
    parser.add_argument("output", type=pathlib.Path, help="the folder to write them to")
    options = parser.parse_args(arguments)
    options.output.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        try:
            lines = read_lines(options.corpus / name, "corpus", CorpusError)
        except CorpusError as error:
            print(f"wikisql_columns: {error}", file=sys.stderr)
            return 1
        rows = ["\t".join(row) + "\n" for row in with_columns(line.split("\t") for line in lines)]
        (options.output / name).write_text("".join(rows), encoding="utf-8")
    return 0


def _words(name: str) -> str:
    return name.replace("_", " ").lower()


if __name__ == "__main__":
    sys.exit(main())
