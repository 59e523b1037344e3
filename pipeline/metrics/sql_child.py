"""The program that answers SQL queries from one database; see `pipeline.metrics.sql_execution`.

It is started by its path in a process without site packages, so it imports only Python's standard
library.
"""

import hashlib
import json
import pathlib
import resource
import signal
import sqlite3
import sys
import time
from typing import Any

# The limit is processor time, so that a busy machine changes no result.
TIME_LIMIT_SECONDS = 2.0
_ROW_LIMIT = 10_000
# Of an answer's values.
_BYTE_LIMIT = 16 << 20
# SQLite's own memory.
_HEAP_LIMIT = 256 << 20
# Address space of this process.
_MEMORY_LIMIT = 1 << 30
# SQLite's steps between two looks at the clock.
_PROGRESS_STEPS = 1000

# Functions that read their arguments and nothing else, and whose results do not grow beyond them by
# much.
_FUNCTIONS = frozenset(
    "abs avg cast ceil ceiling char coalesce count cume_dist date datetime dense_rank exp "
    "first_value floor glob group_concat hex ifnull iif instr julianday lag last_value lead length "
    "like ln log log10 log2 lower ltrim max min mod nth_value ntile nullif percent_rank pow power "
    "quote rank replace round row_number rtrim sign sqrt strftime string_agg substr substring sum "
    "time total trim trunc typeof unicode unixepoch upper".split()
)


def _authorize(
    action: int, first: str | None, second: str | None, database: str | None, trigger: str | None
) -> int:
    if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE):
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in _FUNCTIONS:
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY


def _connect(database: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{pathlib.Path(database).as_uri()}?mode=ro", uri=True, isolation_level=None
    )
    # Bytes: a text that is not UTF-8 is a value like another.
    connection.text_factory = bytes
    for pragma in (
        "query_only=1",
        "trusted_schema=0",
        "temp_store=2",
        f"hard_heap_limit={_HEAP_LIMIT}",
    ):
        connection.execute(f"PRAGMA {pragma}").fetchall()
    connection.set_authorizer(_authorize)
    return connection


def _limit_process() -> None:
    for which, limit in (
        (resource.RLIMIT_AS, _MEMORY_LIMIT),
        # No file grows.
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 16),
    ):
        resource.setrlimit(which, (limit, limit))


def _limit_time() -> None:
    """Makes the kernel end the process if one step of SQLite far exceeds the limit."""
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(
        resource.RLIMIT_CPU, (int(time.process_time() + TIME_LIMIT_SECONDS) + 3, hard)
    )


def _plain(value: object) -> str:
    """Returns a value in a form that is the same for equal values; a text equals its bytes."""
    if isinstance(value, float):
        if value.is_integer() and abs(value) < 1e15:
            return str(int(value))
        # Sums of floats differ in their last digits by the order of the rows.
        return format(value, ".10g")
    if isinstance(value, bytes):
        return f"={value.hex()}"
    return "NULL" if value is None else str(value)


def _execute(connection: sqlite3.Connection, query: str) -> dict[str, Any]:
    deadline = time.process_time() + TIME_LIMIT_SECONDS
    connection.set_progress_handler(lambda: time.process_time() > deadline, _PROGRESS_STEPS)
    cursor = connection.cursor()
    try:
        cursor.execute(query)
        if cursor.description is None:
            return {"error": "the query is empty or returns nothing"}
        rows: list[str] = []
        size = 0
        for row in cursor:
            size += sum(len(value) if isinstance(value, bytes) else 8 for value in row)
            if len(rows) >= _ROW_LIMIT or size > _BYTE_LIMIT:
                return {"error": "the answer is too large"}
            rows.append("\t".join(map(_plain, row)))
    finally:
        cursor.close()
        connection.set_progress_handler(None, 0)
    digests = [
        hashlib.sha256("\n".join(lines).encode()).hexdigest() for lines in (rows, sorted(rows))
    ]
    return {"rows": len(rows), "ordered": digests[0], "unordered": digests[1]}


def main(database: str) -> None:
    """Answers queries, one JSON string per line in and one JSON object per line out."""
    # The parent ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    connection, failure = None, ""
    try:
        connection = _connect(database)
    except sqlite3.Error as error:
        failure = str(error)
    _limit_process()
    print("ready", flush=True)
    for line in sys.stdin:
        _limit_time()
        try:
            answer = _execute(connection, json.loads(line)) if connection else {"error": failure}
        # Whatever Python and SQLite reject: syntax, refusal, interruption, memory, a NUL, several
        # statements.
        except (sqlite3.Error, sqlite3.Warning, MemoryError, ValueError, OverflowError) as error:
            answer = {"error": str(error)[:200] or type(error).__name__}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
