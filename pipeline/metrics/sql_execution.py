"""Runs SQL that nobody trusts against an SQLite database, to compare what two queries answer.

A generated query may be anything: `DROP TABLE`, `ATTACH`, an endless recursion, a value of a
gigabyte. Several fences stand around it, each enough against most of it:

- The database is opened read-only (`mode=ro`, `query_only`), with an authorizer that allows reading
  and a list of functions without side effects, nothing else: no writing, `ATTACH`, `PRAGMA`,
  transaction or extension.
- SQLite counts its steps and gives up after a second or two of processor time; rows and bytes of an
  answer are limited, and so is SQLite's memory.
- All of it happens in a process of its own, started without site packages, that the kernel holds to
  limits of processor time, memory and files. It is used for many queries, and killed and started
  anew when it does not answer.

This file is both sides: the class `SqlExecutor` in the parent, and `main` in the child, which runs
the file itself. So it imports Python's standard library alone.
"""

import dataclasses
import functools
import hashlib
import json
import os
import pathlib
import re
import resource
import selectors
import signal
import sqlite3
import subprocess
import sys
import threading
import time

from pipeline.common.errors import VerbatimError

TIME_LIMIT_SECONDS = 2.0  # processor time of one query, so that a busy machine changes no result
_WALL_LIMIT_SECONDS = 30.0  # after that the child is killed, whatever it does
_START_LIMIT_SECONDS = 60.0
_ROW_LIMIT = 10_000
_BYTE_LIMIT = 16 << 20  # of an answer's values
_QUERY_LIMIT = 100_000  # characters of a query
_HEAP_LIMIT = 256 << 20  # SQLite's own memory
_MEMORY_LIMIT = 1 << 30  # address space of the child
_PROGRESS_STEPS = 1000  # SQLite's steps between two looks at the clock

# Functions that read their arguments and nothing else, and whose results do not grow beyond them by
# much.
_FUNCTIONS = frozenset(
    "abs avg cast ceil ceiling char coalesce count cume_dist date datetime dense_rank exp "
    "first_value floor glob group_concat "
    "hex ifnull iif instr julianday lag last_value lead length like ln log log10 log2 lower ltrim "
    "max min mod nth_value ntile "
    "nullif percent_rank pow power quote rank replace round row_number rtrim sign sqrt strftime "
    "string_agg substr substring sum "
    "time total trim trunc typeof unicode unixepoch upper".split()
)


class SqlExecutionError(VerbatimError, ValueError):
    """A database that cannot be used; its message is one sentence for the user."""


@dataclasses.dataclass(frozen=True)
class Answer:
    """What a query answered.

    Attributes:
        error: why there is no answer; empty where there is one.
        rows: number of rows.
        ordered: digest of the rows in their order.
        unordered: digest of the rows as a multiset.
    """

    error: str = ""
    rows: int = 0
    ordered: str = ""
    unordered: str = ""


def orders_its_rows(query):
    """Tells whether a query's outermost level says `ORDER BY`:
    then the order of its rows is part of the answer.
    """
    depth = 0
    # Strings, quoted names and comments may hold anything, so they are skipped whole.
    for token in re.finditer(
        r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|\[[^\]]*\]|--[^\n]*|/\*.*?(?:\*/|$)|[()]|\border\s+by\b",
        query,
        re.IGNORECASE | re.DOTALL,
    ):
        text = token.group()
        if text == "(":
            depth += 1
        elif text == ")":
            depth -= 1
        elif depth == 0 and text[0] in "oO":
            return True
    return False


class SqlExecutor:
    """Answers queries from one database, in a child process;
    usable by several threads, and as a context manager.

    Args:
        database: path of an SQLite file.

    Raises:
        SqlExecutionError: the file is missing, or no SQLite database.
    """

    def __init__(self, database):
        self.database = os.path.abspath(database)
        if not os.path.isfile(self.database):
            raise SqlExecutionError(
                f"There is no database {self.database}: check evaluation.database."
            )
        self._lock = threading.Lock()
        self._child = None
        self._answers = {}
        answer = self.run("SELECT COUNT(*) FROM sqlite_master")
        if not answer.error and not os.path.getsize(self.database):
            # To SQLite an empty file is a database without tables, on which no reference could be
            # run.
            self.close()
            raise SqlExecutionError(
                f"The database {self.database} is an empty file: check evaluation.database."
            )
        if answer.error:
            self.close()
            raise SqlExecutionError(
                f"{self.database} cannot be read as an SQLite database ({answer.error})."
            )

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def __del__(self):
        self.close()

    def close(self):
        """Ends the child process; the next query starts another."""
        child, self._child = getattr(self, "_child", None), None
        if child is not None:
            child.kill()
            child.wait()
            # Closing writes what a process that ended on its own left unread. No other module is
            # asked for help here: an executor that lives until the interpreter ends may find them
            # gone.
            try:
                child.stdin.close()
            except BrokenPipeError:
                pass
            child.stdout.close()

    def run(self, query):
        """Returns the `Answer` of a query;
        one that harms, lingers or says nothing has an error instead of rows.
        """
        with self._lock:
            if query not in self._answers:
                self._answers[query] = self._ask(query)
            return self._answers[query]

    def same_answer(self, query, gold):
        """Tells whether a query answers what the gold query answers, or returns None where the gold
        query itself fails.

        The rows are compared as a multiset, and in their order where the gold query orders them.
        Names of columns do not matter; 2 and 2.0 are equal.
        """
        wanted = self.run(gold)
        if wanted.error:
            return None
        found = self.run(query)
        if found.error:
            return False
        if orders_its_rows(gold):
            return found.ordered == wanted.ordered
        return found.unordered == wanted.unordered

    def _ask(self, query):
        if len(query) > _QUERY_LIMIT:
            return Answer(error=f"longer than {_QUERY_LIMIT} characters")
        try:
            if self._child is None:
                self._start()
            # ASCII: whatever the text holds, even lone surrogates, it is one line.
            self._child.stdin.write(json.dumps(query).encode("ascii") + b"\n")
            self._child.stdin.flush()
            line = self._read_line(_WALL_LIMIT_SECONDS)
        except BrokenPipeError:
            line = b""
        if line.endswith(b"\n"):
            return Answer(**json.loads(line))
        self.close()
        return Answer(error="the query ended its process, or took too long")

    def _start(self):
        self._child = subprocess.Popen(
            [sys.executable, "-I", "-S", os.path.abspath(__file__), self.database],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={"LC_ALL": "C.UTF-8"},
        )
        self._read_line(_START_LIMIT_SECONDS)

    def _read_line(self, limit):
        """Returns the child's next line; what it has said so far when it ends or the time is up."""
        deadline = time.monotonic() + limit
        line = b""
        with selectors.DefaultSelector() as selector:
            selector.register(self._child.stdout, selectors.EVENT_READ)
            while not line.endswith(b"\n"):
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    break
                part = os.read(self._child.stdout.fileno(), 65536)
                if not part:
                    break
                line += part
        return line


@functools.lru_cache(maxsize=4)
def executor_of(database):
    """Returns this process's executor of a database; metrics of the same database share one."""
    return SqlExecutor(database)


# The child.


def _authorize(action, first, second, database, trigger):
    if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE):
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_FUNCTION and second.lower() in _FUNCTIONS:
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY


def _connect(database):
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


def _limit_process():
    for which, limit in (
        (resource.RLIMIT_AS, _MEMORY_LIMIT),
        (resource.RLIMIT_FSIZE, 0),  # no file grows
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 16),
    ):
        resource.setrlimit(which, (limit, limit))


def _limit_time():
    """Lets the kernel end the process if the query to come takes far more than its time in one of
    SQLite's steps.
    """
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(
        resource.RLIMIT_CPU, (int(time.process_time() + TIME_LIMIT_SECONDS) + 3, hard)
    )


def _plain(value):
    """A value in the form under which equal values are the same; a text and its bytes are alike."""
    if isinstance(value, float):
        if value.is_integer() and abs(value) < 1e15:
            return str(int(value))
        return format(
            value, ".10g"
        )  # sums of floats differ in their last digits by the order of the rows
    if isinstance(value, bytes):
        return f"={value.hex()}"
    return "NULL" if value is None else str(value)


def _execute(connection, query):
    deadline = time.process_time() + TIME_LIMIT_SECONDS
    connection.set_progress_handler(lambda: time.process_time() > deadline, _PROGRESS_STEPS)
    cursor = connection.cursor()
    try:
        cursor.execute(query)
        if cursor.description is None:
            return {"error": "the query is empty or answers nothing"}
        rows, size = [], 0
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


def main(database):
    """Answers a query a line, JSON strings in and JSON objects out, until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when this ends
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
        # Whatever Python and SQLite find wrong: syntax, refusal, interruption, memory, a NUL,
        # several statements.
        except (sqlite3.Error, sqlite3.Warning, MemoryError, ValueError, OverflowError) as error:
            answer = {"error": str(error)[:200] or type(error).__name__}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
