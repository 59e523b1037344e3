"""Exact match, token accuracy and execution accuracy, on hand-counted cases."""

import sqlite3

import pytest

from pipeline.metrics import scoring
from pipeline.metrics.base import ScoringError
from pipeline.metrics.scored_texts import ScoredTexts
from pipeline.metrics.scoring_options import ScoringOptions


def test_exact_match_ignores_how_much_white_space_stands_where():
    result = scoring.score(
        ["exact_match"], ScoredTexts([" a b ", "a \tb", "ab", "A b"], ["a b"] * 4)
    )["exact_match"]
    assert result.details == {"n": 4, "matches": 2}


def test_token_accuracy_counts_positions_of_the_longer_text():
    # 2 of 3; 1 of 4, since what follows an extra token has lost its place; 0 of 2; nothing of
    # nothing.
    outputs, references = ["a b c", "a b b c", "", ""], ["a x c", "a c d", "a b", ""]
    result = scoring.score(
        ["token_accuracy"],
        ScoredTexts(outputs, references),
        ScoringOptions(tokenization="whitespace"),
    )["token_accuracy"]
    assert result.details == {"positions": 9, "equal": 3} and result.value == pytest.approx(1 / 3)
    # Words and punctuation where the text is not tokenized.
    text = scoring.score(["token_accuracy"], ScoredTexts(["f(a)"], ["f(b)"]))["token_accuracy"]
    assert text.details == {"positions": 4, "equal": 3}


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "x.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE city (name TEXT, people INT)")
    connection.executemany("INSERT INTO city VALUES (?, ?)", [("oslo", 7), ("rome", 28)])
    connection.commit()
    connection.close()
    return path


QUERIES = [
    # output, reference
    ("SELECT name FROM city WHERE people = 7", 'SELECT name FROM city WHERE name = "oslo" ;'),
    ("SELECT name FROM city", "SELECT name FROM city ORDER BY people DESC"),
    ("DROP TABLE city", "SELECT name FROM city"),
    ("SELECT name FROM city", "SELECT nothing FROM city"),
]


def test_execution_accuracy_runs_both_queries(database):
    outputs, references = (list(column) for column in zip(*QUERIES))
    result = scoring.score(
        ["execution_accuracy"], ScoredTexts(outputs, references), ScoringOptions(database=database)
    )["execution_accuracy"]
    assert result.details == {
        "n": 3,
        "correct": 1,
        "gold_failed": 1,
    } and result.value == pytest.approx(1 / 3)
    compared = scoring.paired_bootstrap(
        ["execution_accuracy"],
        ScoredTexts(references, references),
        ScoredTexts(outputs, references),
        ScoringOptions(database=database),
    )
    assert compared["execution_accuracy"].difference == pytest.approx(2 / 3)
    with pytest.raises(ScoringError, match="evaluation.database"):
        scoring.score(["execution_accuracy"], ScoredTexts(outputs, references))


def test_execution_accuracy_takes_any_reference(database):
    right, wrong, broken = "SELECT 1", "SELECT 2", "SELECT nothing FROM city"
    references = [[wrong, right], [broken, right], [broken, wrong], [broken, broken]]
    result = scoring.score(
        "execution_accuracy",
        ScoredTexts([right] * 4, references),
        ScoringOptions(database=database),
    )["execution_accuracy"]
    assert result.details == {"n": 3, "correct": 2, "gold_failed": 1}
