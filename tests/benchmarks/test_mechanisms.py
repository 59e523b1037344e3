"""The benchmark of heads and rules measures models that answer."""

import pytest

from benchmarks import mechanisms
from benchmarks.peers.job import Job
from pipeline.recipes.choices import HEADS


def test_all_heads_are_measured():
    assert set(HEADS) <= set(mechanisms.VARIANTS)


@pytest.mark.slow
def test_the_table_has_a_row_for_each_name_and_batch(monkeypatch, capsys, tmp_path):
    lines = [f"word{n} and word{n + 1}" for n in range(40)]
    for part in ("train", "dev"):
        for language in ("en", "ja"):
            (tmp_path / f"{part}.{language}").write_text(
                "".join(f"{line}\n" for line in lines), encoding="utf-8"
            )
    small = Job(vocabulary=50, embedding=4, hidden=8, beam=2, length=3, batches=(1, 2))
    monkeypatch.setattr(mechanisms, "Job", lambda: small)
    arguments = ["--data", str(tmp_path), "--output", str(tmp_path / "out"), "--rounds", "1"]
    monkeypatch.setattr(
        "sys.argv", ["mechanisms", *arguments, "--only", "pointer_generator,beam 1"]
    )
    mechanisms.main()
    rows = [
        line.split(" | ")
        for line in capsys.readouterr().out.splitlines()
        if line.startswith(("| 1 ", "| 2 "))
    ]
    names = ["pointer_generator", "beam 1"]
    assert [(row[0], row[1]) for row in rows] == [
        (f"| {batch}", name) for batch in small.batches for name in names
    ]
    assert float(rows[0][-1].split()[0]) == pytest.approx(1)


def test_an_unknown_name_is_refused(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(
        "sys.argv", ["mechanisms", "--data", "x", "--output", str(tmp_path), "--only", "beam 7"]
    )
    with pytest.raises(SystemExit):
        mechanisms.main()
    assert "beam 7: choose of" in capsys.readouterr().err
