"""`verbatim run`: refuses bad input at once, and says only JSON where JSON is asked for."""

import json

from pipeline.commands import main
from pipeline.common import progress
from pipeline.metrics import scoring
from pipeline.metrics.scored_texts import ScoredTexts
from pipeline.metrics.scoring_options import ScoringOptions
from pipeline.recipes.recipe import Recipe

RECIPE = "localization_en_fr"


def test_run_refuses_bad_input_before_anything_slow(refused, texts):
    output = texts / "run"
    data = texts / "pairs.tsv"

    def run(recipe=RECIPE, data=data, output=output, *more):
        return refused(
            "run", recipe, "--set", "data.format=tsv", "--data", data, "--output", output, *more
        )

    assert str(texts / "absent.tsv") in run(data=texts / "absent.tsv")
    assert "did you mean 'localization_en_fr'" in run("localization_en_de")
    assert str(texts / "absent.toml") in run(texts / "absent.toml")
    assert "'model.hed'" in run(RECIPE, data, output, "--set", "model.hed=softmax")
    sql = (
        "--set",
        "evaluation.metrics=['execution_accuracy']",
        "--set",
        "evaluation.thresholds={}",
    )
    assert f"no database {texts / 'absent.sqlite'}" in run(
        RECIPE, data, output, *sql, "--set", "evaluation.database=absent.sqlite"
    )
    files = ("--set", "data.train_files=['absent.tsv']")
    assert "absent.tsv in data.train_files" in run(RECIPE, texts, output, *files)
    assert "'model.head'" in run(RECIPE, data, output, "--set", "model.head=magic")
    assert "--set needs" in run(RECIPE, data, output, "--set", "model.head")
    assert "it is a folder" in run(RECIPE, data, output, "--json", texts)
    assert "no folder" in run(RECIPE, data, output, "--json", texts / "absent" / "facts.json")
    assert not output.exists()
    assert "cannot be created" in run(RECIPE, data, texts / "pairs.tsv")
    assert "cannot be created" in run(RECIPE, data, texts / "pairs.tsv" / "below")


def test_run_says_only_json_where_json_is_asked_for(texts, capsys, monkeypatch):
    """Even what the trainer prints, which knows nothing of the command."""
    from pipeline.runners import local_runner

    metric = scoring.score(
        ["bleu"], ScoredTexts(["a b"], ["a b"]), ScoringOptions(bootstrap_samples=0)
    )
    facts = {
        **dict.fromkeys((*local_runner.METRICS_KEYS, *local_runner.RUN_KEYS)),
        "systems": [{"name": "softmax", "metrics": scoring.results_to_dict(metric)}],
        "counts": {"read": 3, "kept": 2, "rejected": 1},
        "paths": dict.fromkeys(("rejects", "models", "metrics", "report"), "somewhere"),
        "blessing_reason": "Not pushed: BLEU is low.",
        "blessed": False,
        "samples": ["not for the JSON"],
    }

    def run(recipe, data_path, output, beam_args, enable_cache):
        assert isinstance(recipe, Recipe) and not enable_cache
        assert beam_args == ["--a=1", "--b=2"]
        print("  softmax: epoch 1/1")
        progress.say("said")
        return facts

    monkeypatch.setattr(local_runner, "run", run)
    arguments = [
        "run",
        RECIPE,
        "--data",
        "d",
        "--output",
        "o",
        "--no-cache",
        "--beam=--a=1",
        "--beam=--b=2",
    ]
    # Status 3: the run is fine, the model is not good enough.
    assert main.main([*arguments, "--json", "-"]) == 3
    captured = capsys.readouterr()
    assert json.loads(captured.out) == {
        key: value for key, value in facts.items() if key != "samples"
    }
    for words in ("epoch 1/1", "said", "3 records read, 2 kept, 1 rejected", "Not pushed"):
        assert words in captured.err
    assert main.main(arguments) == 3
    captured = capsys.readouterr()
    assert "epoch 1/1" in captured.out and captured.err == ""
