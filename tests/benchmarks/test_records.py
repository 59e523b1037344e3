"""Result files: what runs leave behind becomes records, and records survive their files."""

import dataclasses
import json

import pytest

from benchmarks.records import collecting, convergence, provenance, record
from benchmarks.records.collecting import Outputs
from benchmarks.records.record import (
    MeasuredRow,
    RowRecord,
    RunRecord,
    Spread,
    TableRecord,
    TestRecord,
    Value,
)
from pipeline.recipes import loading

MACHINE = record.Machine("Any CPU", 2, 8.0)
ORIGIN = record.Origin("verbatim run any", "abc123", "2026-11-26", MACHINE, {"keras": "3.12"})
FACTS = {"recipe": loading.load_recipe("geo880").to_dict()}


def run_record(seed=1, value=0.5):
    metrics = {"exact_match": Value(value, 0.4, 0.6, "share")}
    return RunRecord(ORIGIN, seed, 100, 60, 1140, True, 4.5, 670386, metrics, [2.0, 1.0])


def test_records_survive_their_file(tmp_path):
    test = TestRecord("exact_match", "none", 0.1, 0.05, 0.2, 0.001, "bs:1000")
    tables = (
        TableRecord("any", [RowRecord("good", [run_record(1), run_record(2)], [test])]),
        TableRecord(
            "fast",
            measured=[MeasuredRow({"program": "ours"}, {"ms": Spread(2.0, 1.0, 3.0), "mb": None})],
            origin=dataclasses.replace(ORIGIN, machine=dataclasses.replace(MACHINE, load=0.1)),
            rounds=3,
        ),
    )
    for table in tables:
        path = record.write(table, tmp_path)
        assert record.read(table.name, tmp_path) == table
        # Lists of numbers take a line.
        assert len(path.read_text().splitlines()) < 130
    assert record.read("nothing", tmp_path) is None


def on_stack(tensorflow, ms, notes=()):
    origin = dataclasses.replace(ORIGIN, stack={"python": "3.10", "tensorflow": tensorflow})
    rows = [MeasuredRow({"program": "ours"}, {"ms": Spread(ms, ms, ms)})]
    return TableRecord("fast", measured=rows, origin=origin, rounds=1, notes=list(notes))


def test_one_stack_does_not_overwrite_another(tmp_path):
    nine, old, new = on_stack("2.9.1", 3.0), on_stack("2.16.2", 2.0), on_stack("2.21.0", 1.0)
    for one in (new, nine, old):
        record.write_by_stack(one, tmp_path)
    assert record.read_by_stack("fast", tmp_path) == [new, old, nine]
    # The same stack, measured again, also by a later patch of it.
    again = on_stack("2.16.3", 5.0, ["A peer is left out."])
    assert record.write_by_stack(again, tmp_path).name == "fast-tensorflow-2.16.json"
    assert record.read_by_stack("fast", tmp_path) == [new, again, nine]
    assert record.read_by_stack("fas", tmp_path) == []


def test_a_stack_is_named_after_what_computes():
    jax = dataclasses.replace(ORIGIN, stack={"python": "3.12", "jax": "0.7.2", "keras": "3.12"})
    assert record.stem_by_stack(TableRecord("fast", origin=jax)) == "fast-jax-0.7"
    # Neither is known.
    assert record.stem_by_stack(TableRecord("fast", origin=ORIGIN)) == "fast"
    assert record.stem_by_stack(TableRecord("fast")) == "fast"


def test_numbers_are_rounded(tmp_path):
    record.write(TableRecord("any", [RowRecord("good", [run_record(value=0.123456789)])]), tmp_path)
    assert "0.123457" in (tmp_path / "any.json").read_text()


@pytest.mark.parametrize("text", ["", "{}", '{"format": 99}', '{"format": 1, "name": "any"}'])
def test_a_broken_file_is_one_sentence(tmp_path, text):
    (tmp_path / "any.json").write_text(text)
    with pytest.raises(record.RecordError, match="any.json"):
        record.read("any", tmp_path)


@pytest.mark.parametrize(
    "losses, answer",
    [
        ([], None),
        ([3, 2, 1, 1, 1], None),
        ([3, 2, 1, 1, 1, 1], True),
        ([3, 2, 1, 1.2, 1.3, 1.4], True),
        ([3, 2, 1, 0.999, 0.998, 0.997], True),
        ([3, 2, 1, 0.9, 0.9, 0.9], False),
        # A fifth of the evaluations, where there are many.
        ([2.0] * 20 + [1.0] * 5, False),
        ([2.0, 1.0] * 10 + [1.0] * 5, True),
    ],
)
def test_convergence(losses, answer):
    assert convergence.has_converged(losses) is answer


def outputs(right, sources=range(40)):
    references = [f"open file {number}" for number in range(40)]
    texts = [text if place < right else "no" for place, text in enumerate(references)]
    return Outputs([f"source {number}" for number in sources], references, texts)


def p_of(ours, theirs, metrics=("exact_match",)):
    tests = collecting.tests(FACTS, metrics, ours, theirs, "base")
    return tests[0].p_value if tests else None


def test_a_test_is_of_all_seeds():
    # The first seeds alone differ clearly.
    assert p_of([outputs(38)], [outputs(15)]) < 0.01
    assert p_of([outputs(38), outputs(15)], [outputs(15), outputs(38)]) > 0.5
    assert p_of([outputs(38), outputs(37)], [outputs(15), outputs(16)]) < 0.01


def test_only_what_has_the_same_pairs_is_tested():
    assert p_of([outputs(38)], [outputs(15, range(1, 41))]) is None
    assert p_of([Outputs([], [], [])], [Outputs([], [], [])]) is None
    # The one needs the model's scores, the other is of language models.
    assert p_of([outputs(38)], [outputs(15)], ("perplexity", "validation_perplexity")) is None


def test_facts_become_a_record():
    facts = {
        "recipe": loading.load_recipe("translation_ja_en_segments").to_dict(),
        "versions": {"verbatim-text": "1", "tensorflow": "2.16.2"},
        "counts": {"by_split": {"train": 500, "test": 100}},
        "systems": [
            {"name": "other"},
            {
                "name": "segments",
                "seconds": 90.0,
                "updates": 7,
                "parameters": 9,
                "curves": [{"epoch": 1, "eval_loss": 2.0}, {"epoch": 2, "eval_loss": None}],
                "metrics": {"bleu": {"value": 20.0, "low": 19.0, "high": 21.0}},
                "segmentation": {"word_f1": 0.7, "boundary_f1": 0.9, "words": 10},
            },
        ],
    }
    made = collecting.run_record(facts, ORIGIN, seed=3, system=1)
    assert (made.seed, made.pairs, made.epochs, made.minutes) == (3, 100, 2, 1.5)
    assert made.eval_losses == [2.0] and made.converged is None
    assert made.metrics["bleu"] == Value(20.0, 19.0, 21.0)
    assert made.metrics["word_f1"] == Value(0.7, unit="share")
    assert made.origin.stack == {"keras": "3.12", "tensorflow": "2.16.2"}
    assert made.recipe == collecting.recipe_digest(facts["recipe"])


def test_a_recipe_is_told_by_its_keys():
    def digest(*overrides):
        return collecting.recipe_digest(loading.load_recipe("geo880", overrides).to_dict())

    assert digest() == digest("training.seed=7")
    others = [digest("model.dropout=0.45"), digest("evaluation.thresholds.exact_match=0.5")]
    assert len({digest(), *others}) == 3
    # Runs name the file by its path.
    tree = loading.load_recipe("atis").to_dict()
    on_machine = {**tree, "data": {**tree["data"], "copy_lexicon": "/data/atis/lexicon.txt"}}
    assert collecting.recipe_digest(on_machine) == collecting.recipe_digest(tree)
    # It is the same in every version that has these keys, and empty in one that has not.
    keys = {"model": {"dropout": 0.3}, "evaluation": {"thresholds": {"bleu": 5.0}}}
    assert collecting.recipe_digest({"name": "x", **keys}) == "fa0f0fcc5176"
    assert collecting.recipe_digest({"name": "x", "model": {"gone": 1}}) == ""


def test_the_origin_names_no_host(tmp_path):
    made = provenance.origin("any", provenance.machine(with_load=True))
    text = json.dumps(dataclasses.asdict(made))
    import platform

    assert platform.node() not in text and made.machine.cores >= 1
    assert made.commit and provenance.commit(tmp_path) == ""
