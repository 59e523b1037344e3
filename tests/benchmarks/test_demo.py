"""The demo's figures become result files: one of the README's table, one of all machines."""

import dataclasses
import json
import pathlib

import pytest

from benchmarks import demo
from benchmarks.records import record
from benchmarks.records.record import Machine, Origin, Spread
from pipeline.commands import demo as demo_command
from pipeline.commands import main
from pipeline.recipes import loading

RECIPE = loading.load_recipe(demo_command.RECIPE).to_dict()

ORIGIN = Origin("make demo", "abc", "2026-11-26", Machine("Any CPU", 2, 8.0), {})


def facts(bleu=30.0):
    def system(name, bleu):
        return {
            "name": name,
            "seconds": 60.0,
            "updates": 100,
            "parameters": 10,
            "curves": [{"epoch": 1, "eval_loss": 2.0}],
            "metrics": {
                "bleu": {"value": bleu, "low": bleu - 3, "high": bleu + 3},
                "placeholder_fidelity": {"value": 1.0, "unit": "share"},
            },
        }

    return {
        "recipe": {
            **RECIPE,
            "evaluation": {
                **RECIPE["evaluation"],
                "metrics": ["bleu", "placeholder_fidelity", "perplexity"],
            },
        },
        "versions": {"verbatim-text": "0.1", "python": "3.10", "tensorflow": "2.16.2"},
        "counts": {"by_split": {"test": 517}},
        "systems": [system("pointer_generator", bleu), system("softmax", 10.0)],
        "comparison": {"bleu": 0.001, "placeholder_fidelity": 0.002},
        "seconds": 600.0,
    }


@pytest.fixture
def trainings(tmp_path, monkeypatch):
    """Three runs that have left their files, the copy model the better one in each."""
    monkeypatch.chdir(tmp_path)
    for training in (found := [demo.Training(seed) for seed in demo.SEEDS]):
        outputs = training.folder / "outputs"
        outputs.mkdir(parents=True)
        for part in ("run.json", "metrics.json"):
            (training.folder / part).write_text(json.dumps(facts(30.0 + training.seed)), "utf-8")
        for name, text in (("pointer_generator", "Ouvrir %s vite !"), ("softmax", "Fermer la")):
            line = {"source": "Open %s now!", "reference": "Ouvrir %s vite !", "text": text}
            (outputs / f"{name}.jsonl").write_text(20 * f"{json.dumps(line)}\n", "utf-8")
    return found


def test_both_systems_are_rows_with_a_run_for_each_seed(trainings):
    table = demo.table_of(trainings, ORIGIN)
    assert [row.name for row in table.rows] == ["pointer_generator", "softmax"]
    first, second = table.rows
    assert [run.seed for run in first.runs] == [run.seed for run in second.runs] == [1, 2, 3]
    assert [run.metrics["bleu"].value for run in first.runs] == [31.0, 32.0, 33.0]
    assert first.runs[0].pairs == 517 and first.runs[0].origin.command == "make demo"
    assert first.runs[1].origin.command == (
        "verbatim run localization_en_fr --data build/demo/catalogues --output build/demo_seeds/2 "
        "--set training.epochs=5 --set training.seed=2"
    )
    assert [(test.metric, test.against) for test in first.tests] == [
        ("bleu", "softmax"),
        ("placeholder_fidelity", "softmax"),
    ]
    assert all(test.difference > 0 and test.p_value < 0.05 for test in first.tests)
    assert not second.tests


def test_the_commands_of_all_seeds_differ_only_in_the_seed():
    """And the demo's own bound is theirs: nothing of it depends on the clock."""
    recipes = []
    for seed in demo.SEEDS[1:]:
        words = demo.Training(seed).arguments[1:]
        parsed = main._parser(words).parse_args(words)
        recipes.append(loading.load_recipe(parsed.recipe, parsed.set).to_dict())
        assert recipes[-1]["training"].pop("seed") == seed
    own = loading.load_recipe(demo_command.RECIPE, demo_command.OVERRIDES).to_dict()
    assert own["training"].pop("seed") == demo.SEEDS[0]
    assert recipes == [own, own] and own["training"]["max_seconds"] == 0


def test_every_machine_and_stack_has_a_row():
    other = dataclasses.replace(ORIGIN, machine=Machine("Other CPU", 2, 8.0))
    table = None
    for of_facts, origin in ((facts(), ORIGIN), (facts(), other), (facts(31.0), ORIGIN)):
        table = demo.with_machine(table, demo.machine_row(of_facts, origin), origin)
    assert [row.labels["machine"] for row in table.measured] == [
        "Other, 2 cores",
        "Any, 2 cores",
    ]
    assert table.measured[1].figures["BLEU, pointer generator"] == Spread(31.0, 28.0, 34.0)
    assert table.measured[0].labels["packages"] == "Python 3.10, TensorFlow 2.16.2"
    assert table.measured[0].figures["minutes"].median == 10.0


def test_the_files_are_those_of_tables_that_are_shown(trainings):
    names = ["demo.json", "demo_machines.json"]
    words = ["--made", "--record", names[0], "--machines", names[1]]
    assert demo.main(words) == 0
    assert [record.read_file(pathlib.Path(name)).name for name in names] == [
        "demo",
        "demo_machines",
    ]
