"""Running SQL: right answers are equal, wrong ones are not, and nothing gets out."""

import hashlib
import os
import pathlib
import signal
import sqlite3
import subprocess
import sys

import pytest

from pipeline.metrics import sql_execution
from pipeline.metrics.sql_execution import SqlExecutionError, SqlExecutor, orders_its_rows


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    path = tmp_path_factory.mktemp("database?#%20") / "places.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE city (name TEXT, people INT, area REAL)")
    rows = [
        ("oslo", 700, 1.5),
        ("bergen", 290, 0.1),
        ("rome", 2800, 0.2),
        ("rome", 50, 2.0),
        ("é\n\t", None, None),
    ]
    connection.executemany("INSERT INTO city VALUES (?, ?, ?)", rows)
    connection.execute("CREATE TABLE bytes (value BLOB)")
    connection.execute("INSERT INTO bytes VALUES (CAST(x'ff41' AS TEXT)), (x'00'), (NULL)")
    connection.execute("CREATE TABLE numbers (n INT)")
    connection.executemany("INSERT INTO numbers VALUES (?)", [(n,) for n in range(3000)])
    connection.commit()
    connection.close()
    return path


@pytest.fixture(scope="module")
def executor(database):
    with SqlExecutor(database) as executor:
        yield executor


@pytest.mark.parametrize(
    "query, gold, same",
    [
        ("SELECT name FROM city", "SELECT name FROM city", True),
        ("select NAME as x from CITY order by people ;", "SELECT name FROM city", True),
        ("SELECT DISTINCT name FROM city", "SELECT name FROM city", False),
        ("SELECT name FROM city ORDER BY people", "SELECT name FROM city ORDER BY people", True),
        (
            "SELECT name FROM city ORDER BY people DESC",
            "SELECT name FROM city ORDER BY people",
            False,
        ),
        ("SELECT name FROM city", "SELECT name FROM (SELECT * FROM city ORDER BY people)", True),
        ("SELECT name, people FROM city", "SELECT people, name FROM city", False),
        ("SELECT 2.0", "SELECT 2", True),
        ("SELECT '2'", "SELECT 2", False),
        ("SELECT NULL", "SELECT 'NULL'", False),
        ("SELECT 'a' || char(9) || 'b'", "SELECT 'a', 'b'", False),
        ("SELECT 0.1 + 0.2", "SELECT 0.3", True),
        ("SELECT SUM(area) FROM city", "SELECT 3.8", True),
        (
            "SELECT name FROM city WHERE people > 9999",
            "SELECT name FROM city WHERE people < 0",
            True,
        ),
        ("SELECT name FROM city WHERE people > 9999", "SELECT name FROM city", False),
        ('SELECT people FROM city WHERE name = "oslo"', "SELECT 700", True),
        ("SELECT value FROM bytes", "SELECT value FROM bytes WHERE 1", True),
        (
            "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x < 9) SELECT "
            "MAX(x) FROM c",
            "SELECT 9",
            True,
        ),
        ("SELECT nothing FROM city", "SELECT name FROM city", False),
        ("SELECT name FROM city", "SELECT nothing FROM city", None),
    ],
)
def test_answers_are_compared_as_sets_unless_the_gold_query_orders(executor, query, gold, same):
    assert executor.same_answer(query, gold) is same


@pytest.mark.parametrize(
    "query, orders",
    [
        ("SELECT a FROM b ORDER BY c", True),
        ("select a from b order\n by c limit 1", True),
        ("SELECT a FROM (SELECT b FROM c ORDER BY d)", False),
        ("SELECT 'order by' FROM b -- order by c", False),
        ("SELECT ')' FROM (SELECT 1) /* ( */ ORDER BY 1", True),
        ('SELECT "order by", [order by], `order by` FROM b', False),
        ("SELECT 'it''s (' FROM b ORDER BY 1", True),
        ("SELECT reorder FROM border by", False),
    ],
)
def test_whether_a_query_orders(query, orders):
    assert orders_its_rows(query) is orders


HARMFUL = [
    "DROP TABLE city",
    "DELETE FROM city",
    "UPDATE city SET people = 0",
    "INSERT INTO city VALUES ('x', 1, 1)",
    "CREATE TABLE x (y)",
    "CREATE TEMP TABLE x (y)",
    "CREATE VIRTUAL TABLE x USING fts5(y)",
    "ALTER TABLE city RENAME TO x",
    "ATTACH DATABASE '{folder}/made.sqlite' AS made",
    "ATTACH DATABASE ':memory:' AS made",
    "DETACH DATABASE main",
    "VACUUM INTO '{folder}/made.sqlite'",
    "REINDEX",
    "ANALYZE",
    "PRAGMA query_only = 0",
    "PRAGMA user_version",
    "SELECT * FROM pragma_user_version",
    "SELECT * FROM pragma_table_info('city')",
    "BEGIN EXCLUSIVE",
    "SAVEPOINT x",
    "COMMIT",
    "EXPLAIN DROP TABLE city",
    "SELECT load_extension('/tmp/x.so')",
    "SELECT writefile('{folder}/made', 'x')",
    "SELECT readfile('/etc/passwd')",
    "SELECT edit('x')",
    "SELECT randomblob(10)",
    "SELECT zeroblob(1000000000)",
    "SELECT printf('%1000000000d', 1)",
    "SELECT fts3_tokenizer('x')",
    "SELECT name FROM city; DROP TABLE city",
    "SELECT 1; SELECT 2",
    "",
    "   \n",
    ";",
    "-- only a comment",
    "/* only a comment */",
    "nonsense",
    "SELECT 'open",
    "SELECT 1\0",
    "SELECT '\ud800'",
    "SELECT '" + "x" * 200_000 + "'",
    "SELECT name FROM city" + " UNION ALL SELECT name FROM city" * 3000,
    # Too many rows, or too many bytes.
    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c",
    "SELECT a.n FROM numbers a, numbers b",
    "SELECT " + "replace(" * 8 + "'aaaaaaaaaa'" + ", 'a', 'aaaaaaaaaa')" * 8,
    "SELECT " + "hex(" * 28 + "'aaaa'" + ")" * 28,
]
_LONG, _TENFOLD = "{}'aaaaaaaaaa'{}", ", 'a', 'aaaaaaaaaa')"
ENDLESS = [
    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT COUNT(*) FROM c",
    "SELECT COUNT(*) FROM numbers a, numbers b, numbers c",
    "SELECT MAX(a.n + b.n + c.n) FROM numbers a, numbers b, numbers c",
    "WITH RECURSIVE c(x) AS (SELECT 'a' UNION ALL SELECT x || x FROM c) SELECT MAX(length(x)) "
    "FROM c",
    # One step of SQLite that lasts for minutes: only the kernel can end it.
    f"SELECT instr({_LONG.format('replace(' * 6, _TENFOLD * 6)}, "
    f"{_LONG.format('replace(' * 4, _TENFOLD * 4)} || 'b')",
]


def snapshot(database):
    folder = pathlib.Path(database).parent
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


@pytest.mark.parametrize("query", HARMFUL, ids=lambda query: query[:40])
def test_what_harms_is_wrong_and_does_nothing(executor, database, query):
    before = snapshot(database)
    query = query.replace("{folder}", str(database.parent))
    assert executor.run(query).error
    assert executor.same_answer(query, "SELECT name FROM city") is False
    assert snapshot(database) == before
    assert executor.run("SELECT COUNT(*) FROM city").rows == 1


@pytest.mark.parametrize("deep", ["(" * 5000 + "1" + ")" * 5000, "-(" * 5000 + "1" + ")" * 5000])
def test_deep_nesting_crashes_nothing(executor, deep):
    """SQLite's parser stack held a hundred, and grows since 3.45; expressions stay limited."""
    answer = executor.run(f"SELECT {deep}")
    assert answer.error or (answer.rows == 1 and deep[0] == "(")
    assert executor.same_answer(f"SELECT {deep}", "SELECT name FROM city") is False
    assert executor.run("SELECT COUNT(*) FROM city").rows == 1


@pytest.mark.parametrize("query", ENDLESS, ids=lambda query: query[:40])
def test_what_never_ends_is_ended(executor, query):
    assert executor.run(query).error
    assert executor.same_answer("SELECT COUNT(*) FROM city", "SELECT 5") is True


@pytest.mark.parametrize("when", ["while it is asked", "before it is asked"])
def test_the_process_is_reused_and_started_again_when_it_ends(database, when):
    with SqlExecutor(database) as executor:
        first = executor._child.pid
        assert not executor.run("SELECT 1").error
        assert executor._child.pid == first
        os.kill(first, signal.SIGKILL)
        if when == "before it is asked":
            executor._child.wait()  # nobody reads the pipe any more
        assert executor.run("SELECT 2").error
        assert executor.same_answer("SELECT 3", "SELECT 3.0") is True
        second = executor._child.pid
        assert second != first
    with pytest.raises(ProcessLookupError):
        os.kill(second, 0)


def test_a_child_that_does_not_answer_is_killed(database, monkeypatch):
    monkeypatch.setattr(sql_execution, "_WALL_LIMIT_SECONDS", 0.5)
    with SqlExecutor(database) as executor:
        os.kill(executor._child.pid, signal.SIGSTOP)
        assert "too long" in executor.run("SELECT 1").error
        assert executor.run("SELECT 2").rows == 1


def test_thousands_of_queries_share_a_process(executor):
    seen = set()
    for number in range(2000):
        assert executor.run(f"SELECT name FROM city WHERE people > {number}").error == ""
        seen.add(executor._child.pid)
    assert len(seen) == 1


def test_a_database_that_cannot_be_used_is_one_sentence(tmp_path):
    with pytest.raises(
        SqlExecutionError,
        match=r"The database .*absent.sqlite does not exist: check evaluation.database\.",
    ):
        SqlExecutor(tmp_path / "absent.sqlite")
    (tmp_path / "text.sqlite").write_text(
        "no database, but a text that is long enough to look at" * 100
    )
    with pytest.raises(
        SqlExecutionError,
        match=r"cannot be read as an SQLite database \(file is not a database\)\.",
    ):
        SqlExecutor(tmp_path / "text.sqlite")
    (tmp_path / "empty.sqlite").write_text("")
    with pytest.raises(SqlExecutionError, match="empty.sqlite is an empty file"):
        SqlExecutor(tmp_path / "empty.sqlite")


def test_importing_needs_the_standard_library_alone():
    code = (
        "import sys, pipeline.metrics.sql_execution; sys.exit(bool({'tensorflow', 'numpy', "
        "'regex'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
