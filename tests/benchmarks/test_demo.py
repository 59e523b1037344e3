"""The demo's figures become result files: one of the README's table, one of all machines."""

import dataclasses

from benchmarks import demo
from benchmarks.records.record import Machine, Origin, Spread

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
        "recipe": {"training": {"seed": 1}},
        "versions": {"verbatim-text": "0.1", "python": "3.10", "tensorflow": "2.16.2"},
        "counts": {"by_split": {"test": 517}},
        "systems": [system("pointer_generator", bleu), system("softmax", 10.0)],
        "comparison": {"bleu": 0.001, "placeholder_fidelity": 0.002},
        "seconds": 600.0,
    }


def test_both_systems_are_rows():
    table = demo.table_of(facts(), ORIGIN)
    assert [row.name for row in table.rows] == ["pointer_generator", "softmax"]
    first, second = table.rows
    assert first.runs[0].metrics["bleu"].value == 30.0 and first.runs[0].pairs == 517
    assert [(test.metric, test.against, test.p_value) for test in first.tests] == [
        ("bleu", "softmax", 0.001),
        ("placeholder_fidelity", "softmax", 0.002),
    ]
    assert second.runs[0].metrics["bleu"].value == 10.0 and not second.tests


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


def test_the_files_are_those_of_tables_that_are_shown(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "read_facts", facts)
    names = [tmp_path / "demo.json", tmp_path / "demo_machines.json"]
    words = ["--made", "--record", str(names[0]), "--machines", str(names[1])]
    assert demo.main(words) == 0 and all(name.is_file() for name in names)
