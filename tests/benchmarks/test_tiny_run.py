"""The benchmark of a run's fixed costs."""

import json
import sys

import pytest

from benchmarks import tiny_run
from pipeline.recipes import loading

# What stands in for `verbatim run`: it leaves what a run leaves.
RUN = """
import json, pathlib, sys
folder = pathlib.Path(sys.argv[1])
folder.mkdir()
stages = [{"name": name, "seconds": 0.0, "cached": False} for name in ("Trainer", "Exporter")]
(folder / "run.json").write_text(json.dumps({"stages": stages, "seconds": 0.0}))
sys.exit(int(sys.argv[2]))
"""


def test_its_recipe_and_its_data_fit(tmp_path):
    recipe = loading.load_recipe(tiny_run.RECIPE, tiny_run.SETTINGS)
    path = tmp_path / "pairs.tsv"
    assert tiny_run.write_pairs(path) == 80
    header, *lines = path.read_text("utf-8").splitlines()
    assert header.split("\t") == ["source", "target"]
    assert len(set(lines)) == 80
    assert all(line.count("\t") == 1 for line in lines)
    assert max(len(line.split("\t")[0].split()) for line in lines) < recipe.data.max_tokens
    assert recipe.baseline.head
    settings = [*tiny_run.SETTINGS, *tiny_run.NO_BASELINE]
    assert not loading.load_recipe(tiny_run.RECIPE, settings).baseline.head


def test_the_parts_of_a_run_sum_up_to_the_whole():
    runs = [
        tiny_run.Run(40.0, 50.0, 2_000_000_000, {"Trainer": 10.0, "Exporter": 20.0}),
        tiny_run.Run(50.0, 60.0, 1_000_000_000, {"Trainer": 10.0, "Exporter": 25.0}),
        tiny_run.Run(60.0, 55.0, 1_500_000_000, {"Trainer": 10.0, "Exporter": 30.0}),
    ]
    alone = [tiny_run.Run(run.seconds - 10, 30.0, 10**9, {}) for run in runs]
    rows = {row.labels["part"]: row.figures for row in tiny_run.rows_of(runs, alone)}
    assert list(rows) == [tiny_run.WHOLE, tiny_run.ALONE, tiny_run.REST, "Trainer", "Exporter"]
    medians = {name: figures["seconds"].median for name, figures in rows.items()}
    assert medians.pop(tiny_run.ALONE) == 40
    assert medians == {tiny_run.WHOLE: 50, tiny_run.REST: 15, "Trainer": 10, "Exporter": 25}
    assert rows[tiny_run.ALONE]["share"].median == 0.8
    assert rows[tiny_run.ALONE]["cpu"].median == 30
    assert rows["Exporter"]["share"].median == 0.5
    assert rows[tiny_run.WHOLE]["cpu"].median == 55
    assert rows[tiny_run.WHOLE]["peak"].median == 1500
    assert rows["Trainer"]["cpu"] is None


@pytest.mark.parametrize("status", [0, 3])
def test_a_run_is_measured_from_its_start_to_its_end(monkeypatch, status, tmp_path, capsys):
    monkeypatch.setattr(
        tiny_run,
        "command",
        lambda data, output, settings: [sys.executable, "-c", RUN, str(output), str(status)],
    )
    record = tmp_path / "record.json"
    monkeypatch.setattr("sys.argv", ["tiny_run", "--rounds", "2", "--record", str(record)])
    tiny_run.main()
    assert "Exporter" in capsys.readouterr().out
    assert json.loads(record.read_text())["rounds"] == 2


def test_a_run_that_fails_is_no_measurement(monkeypatch):
    monkeypatch.setattr(
        tiny_run, "command", lambda *words: [sys.executable, "-c", "print('why'); exit(1)"]
    )
    with pytest.raises(RuntimeError, match="why"):
        tiny_run.measure()
