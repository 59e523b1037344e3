"""WikiSQL with its tables' columns in the source."""

from benchmarks import wikisql_columns

ROWS = [
    ("Which No. is Amir's?", "SELECT NO._FIELD FROM TABLE AS TABLEalias0 WHERE "
     'TABLEalias0.PLAYER_FIELD = "Amir J." ;', "1-1"),
    ("How many teams?", "SELECT COUNT TABLEalias0.SCHOOL/CLUB_TEAM_FIELD FROM TABLE AS "
     'TABLEalias0 WHERE TABLEalias0.NO._FIELD > 21 AND TABLEalias0.PLAYER_FIELD = "a_b" ;', "1-1"),
    ("Which year?", 'SELECT TABLEalias0.YEAR_FIELD FROM TABLE AS TABLEalias0 WHERE '
     'TABLEalias0.YEAR_FIELD = "FROM_FIELD" ;', "2-1"),
]  # fmt: skip


def test_the_columns_of_all_questions_of_a_table_stand_before_each():
    rows = wikisql_columns.with_columns(ROWS)
    assert rows[0] == (
        "no. ; player ; school/club team ; which no. is amir's?",
        'select no. where player = "amir j."',
        "1-1",
    )
    assert rows[1] == (
        "no. ; player ; school/club team ; how many teams?",
        'select count school/club team where no. > 21 and player = "a_b"',
        "1-1",
    )


def test_a_value_is_no_column():
    source, target, _ = wikisql_columns.with_columns(ROWS)[2]
    assert source == "year ; which year?"
    assert target == 'select year where year = "from_field"'


def test_files_are_written_and_a_missing_one_is_named(tmp_path, capsys):
    corpus, output = tmp_path / "corpus", tmp_path / "output"
    corpus.mkdir()
    text = "".join("\t".join(row) + "\n" for row in ROWS)
    (corpus / "train.tsv").write_text(text)
    assert wikisql_columns.main([str(corpus), str(output)]) == 1
    assert "dev.tsv does not exist" in capsys.readouterr().err
    (corpus / "dev.tsv").write_text(text)
    assert wikisql_columns.main([str(corpus), str(output)]) == 0
    assert (output / "dev.tsv").read_text().splitlines()[2].startswith("year ; which year?\t")
