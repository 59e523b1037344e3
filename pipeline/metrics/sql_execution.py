"""Runs untrusted SQL against an SQLite database, to compare the answers of two queries.

A generated query may be anything: `DROP TABLE`, `ATTACH`, an endless recursion, a value of a
gigabyte. Several protections surround it, each enough against most queries:

- The database is opened read-only (`mode=ro`, `query_only`), with an authorizer that allows reading
  and a list of functions without side effects, nothing else: no writing, `ATTACH`, `PRAGMA`,
  transaction or extension.
- SQLite counts its steps and gives up after a second or two of processor time; rows and bytes of an
  answer are limited, and so is SQLite's memory.
- All of it happens in a process of its own, started without site packages, under the kernel's
  limits of processor time, memory and files. It is used for many queries, and killed and started
  anew when it does not answer.

The program of that process is `pipeline.metrics.sql_child`; its parent is `SqlExecutor`.
"""

import dataclasses
import functools
import json
import os
import re
import selectors
import subprocess
import sys
import threading
import time
from typing import IO

from pipeline.common.errors import VerbatimError
from pipeline.metrics import sql_child

# Seconds after which the child is killed, whatever it does.
_WALL_LIMIT_SECONDS = 30.0
_START_LIMIT_SECONDS = 60.0
# Characters of a query.
_QUERY_LIMIT = 100_000
# The parts of a query that show whether it orders its rows. Strings, quoted names and comments are
# skipped whole.
_TOKEN = re.compile(
    r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|\[[^\]]*\]"
    r"|--[^\n]*|/\*.*?(?:\*/|$)|[()]|\border\s+by\b",
    re.IGNORECASE | re.DOTALL,
)


class SqlExecutionError(VerbatimError, ValueError):
    """A database that cannot be used; its message is one sentence for the user."""


@dataclasses.dataclass(frozen=True)
class Answer:
    """The answer of a query.

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


def orders_its_rows(query: str) -> bool:
    """Whether a query's outermost level has `ORDER BY`: then the order of its rows counts."""
    depth = 0
    for token in _TOKEN.finditer(query):
        text = token.group()
        if text == "(":
            depth += 1
        elif text == ")":
            depth -= 1
        elif depth == 0 and text[0] in "oO":
            return True
    return False


class SqlExecutor:
    """Answers queries from one database, in a child process.

    Several threads may use it, and it is a context manager.

    Args:
        database: path of an SQLite file.

    Raises:
        SqlExecutionError: the file is missing, or is not an SQLite database.
    """

    def __init__(self, database: str | os.PathLike[str]) -> None:
        self.database = os.path.abspath(database)
        if not os.path.isfile(self.database):
            raise SqlExecutionError(
                f"The database {self.database} does not exist: check evaluation.database."
            )
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._answers: dict[str, Answer] = {}
        answer = self.run("SELECT COUNT(*) FROM sqlite_master")
        if not answer.error and not os.path.getsize(self.database):
            # To SQLite an empty file is a database without tables; no reference could run on it.
            self.close()
            raise SqlExecutionError(
                f"The database {self.database} is an empty file: check evaluation.database."
            )
        if answer.error:
            self.close()
            raise SqlExecutionError(
                f"{self.database} cannot be read as an SQLite database ({answer.error})."
            )

    def __enter__(self) -> "SqlExecutor":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Ends the child process; the next query starts another."""
        child, self._child = getattr(self, "_child", None), None
        if child is not None:
            child.kill()
            child.wait()
            # Closing writes what a process that ended on its own left unread. No other module is
            # used here: it may be gone when the interpreter ends.
            try:
                if child.stdin:
                    child.stdin.close()
            except BrokenPipeError:
                pass
            if child.stdout:
                child.stdout.close()

    def run(self, query: str) -> Answer:
        """Returns the answer of a query.

        A query that harms, takes too long or returns nothing has an error instead of rows.
        """
        with self._lock:
            if query not in self._answers:
                self._answers[query] = self._ask(query)
            return self._answers[query]

    def same_answer(self, query: str, gold: str) -> bool | None:
        """Returns whether a query has the answer of the gold query; None if the gold query fails.

        The rows are compared as a multiset, and in order if the gold query orders them.
        Names of columns do not matter; 2 and 2.0 are equal.
        """
        right = self.run(gold)
        if right.error:
            return None
        answer = self.run(query)
        if answer.error:
            return False
        if orders_its_rows(gold):
            return answer.ordered == right.ordered
        return answer.unordered == right.unordered

    def _ask(self, query: str) -> Answer:
        if len(query) > _QUERY_LIMIT:
            return Answer(error=f"longer than {_QUERY_LIMIT} characters")
        try:
            if self._child is None:
                self._child = self._start()
            stdin = _pipe(self._child.stdin)
            # ASCII: whatever the text holds, even lone surrogates, it is one line.
            stdin.write(json.dumps(query).encode("ascii") + b"\n")
            stdin.flush()
            line = _read_line(self._child, _WALL_LIMIT_SECONDS)
        except BrokenPipeError:
            line = b""
        if line.endswith(b"\n"):
            return Answer(**json.loads(line))
        self.close()
        return Answer(error="the query ended its process, or took too long")

    def _start(self) -> subprocess.Popen[bytes]:
        child = subprocess.Popen(
            [sys.executable, "-I", "-S", os.path.abspath(sql_child.__file__), self.database],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={"LC_ALL": "C.UTF-8"},
        )
        _read_line(child, _START_LIMIT_SECONDS)
        return child


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    """Returns a pipe of the child, which has all of them."""
    assert pipe is not None
    return pipe


def _read_line(child: subprocess.Popen[bytes], limit: float) -> bytes:
    """Returns the child's next line, or a part of it if it ends or `limit` seconds have passed."""
    deadline = time.monotonic() + limit
    stdout = _pipe(child.stdout)
    line = b""
    with selectors.DefaultSelector() as selector:
        selector.register(stdout, selectors.EVENT_READ)
        while not line.endswith(b"\n"):
            if not selector.select(max(0.0, deadline - time.monotonic())):
                break
            part = os.read(stdout.fileno(), 65536)
            if not part:
                break
            line += part
    return line


@functools.lru_cache(maxsize=4)
def executor_of(database: str) -> SqlExecutor:
    """Returns this process's executor of a database; metrics of the same database share one."""
    return SqlExecutor(database)
