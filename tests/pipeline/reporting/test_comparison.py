"""`verbatim compare`:
the numbers of several runs, tested against each other where their test sets agree.
"""

import json
import re

import pytest

from pipeline.commands import main
from pipeline.metrics import scoring
from pipeline.metrics.scored_texts import ScoredTexts
from pipeline.metrics.scoring_options import ScoringOptions
from pipeline.reporting import comparison, outputs, report

SOURCES = [f"Open file {number} now" for number in range(40)]
REFERENCES = [f"Ouvrir le fichier {number} maintenant" for number in range(40)]
GOOD = [{"text": text} for text in REFERENCES[:36] + ["Ouvrir"] * 4]
BAD = [{"text": text} for text in REFERENCES[:9] + ["Ouvrir fichier"] * 31]
METRICS = ["bleu", "exact_match", "unseen_copies"]


def make_run(
    directory, answers, head="pointer_generator", sources=SOURCES, hidden_size=256, seed=None
):
    """Writes what a run leaves in its folder; returns the folder."""
    answers = [
        {
            "tokens": answer["text"].split(),
            "copied_from": [-1, 2],
            "copy_probability": [0.0, 0.9],
            **answer,
        }
        for answer in answers
    ]
    answers = [
        {"source_tokens": source.split(), "score": -1.0, **answer}
        for source, answer in zip(sources, answers)
    ]
    found = scoring.score(
        METRICS,
        ScoredTexts(
            [answer["text"] for answer in answers],
            REFERENCES,
            sources=sources,
            training_words={"Open"},
        ),
        ScoringOptions(bootstrap_samples=50),
    )
    recipe = {
        "name": directory.name,
        "model": {"head": head, "hidden_size": hidden_size},
        "data": {},
        **({"training": {"seed": seed}, "decoding": {"replace_unknown": "none"}} if seed else {}),
    }
    curves = [
        {"epoch": 1, "loss": 3.0, "eval_loss": 3.1},
        {"epoch": 2, "loss": 2.0, "eval_loss": 2.5},
    ]
    systems = [{"name": head, "metrics": scoring.results_to_dict(found), "curves": curves}]
    systems.append({"name": "softmax", "metrics": {}})
    report.write_report(
        directory, {"systems": systems, "recipe": recipe, "versions": {"keras": "3"}}
    )
    outputs.write_outputs(directory / "outputs", sources, REFERENCES, {head: answers})
    return directory


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return {
        "good": make_run(folder / "good", GOOD),
        "bad": make_run(folder / "bad", BAD, hidden_size=32),
        "good_again": make_run(folder / "again" / "good", GOOD),
        "other": make_run(folder / "other", GOOD, sources=[f"{source}!" for source in SOURCES]),
    }


def test_runs_are_tested_where_their_test_sets_agree(runs):
    facts = comparison.compare([runs["good"], runs["bad"], runs["good_again"]], 200)
    names = [system["name"] for system in facts["systems"]]
    assert [name.split("/")[-1] for name in names] == ["good", "bad", "good"] and len(
        set(names)
    ) == 3
    assert facts["note"] == "The runs were measured on the same 40 pairs."
    expected = scoring.paired_bootstrap(
        ["bleu", "exact_match"],
        ScoredTexts([answer["text"] for answer in BAD], REFERENCES),
        ScoredTexts([answer["text"] for answer in GOOD], REFERENCES),
        ScoringOptions(bootstrap_samples=200),
    )
    # What takes the training text is not tested anew; its numbers stand in the table.
    assert facts["comparisons"][names[1]] == {
        name: result.p_value for name, result in expected.items()
    }
    assert (
        facts["comparisons"][names[1]]["exact_match"]
        < 0.05
        < facts["comparisons"][names[2]]["exact_match"]
    )
    assert facts["systems"][1]["metrics"]["unseen_copies"]
    # The last four of the first run say even less than those of the second.
    assert len(facts["wins"]) == 10 and len(facts["losses"]) == 4
    assert all(win["gain"] > 0 for win in facts["wins"]) and all(
        loss["gain"] < 0 for loss in facts["losses"]
    )
    assert list(facts["wins"][0]["outputs"]) == names[:2]
    assert facts["recipe_differences"] == [
        {"key": "model.hidden_size", "values": ["256", "32", "256"]}
    ]


def test_seeds_of_one_system_are_one_system(tmp_path, capsys):
    folders = [
        make_run(tmp_path / f"{name}-{seed}", answers, hidden_size=size, seed=seed)
        for name, size, answers_of_seeds in (
            ("large", 256, (GOOD, GOOD[:38] + BAD[38:], BAD[:20] + GOOD[20:])),
            ("small", 32, (BAD, BAD)),
        )
        for seed, answers in enumerate(answers_of_seeds, 1)
    ]
    arguments = ["--output", str(tmp_path / "page"), "--samples", "200"]
    assert main.main(["compare", *map(str, folders), *arguments]) == 0
    said = capsys.readouterr().out
    assert "large-1 (3 seeds)" in said and "small-1 (2 seeds)" in said
    assert "means over the runs with training.seed 1, 2, 3." in said
    assert "±: standard deviation over seeds" in said and "hold no [UNK]" in said
    facts = report.load_facts(tmp_path / "page")
    first, second = facts["systems"]
    shares = [36 / 40, 36 / 40, 25 / 40]
    assert first["metrics"]["exact_match"]["value"] == pytest.approx(sum(shares) / 3)
    assert first["metrics"]["exact_match"]["details"]["seed_values"] == pytest.approx(shares)
    assert facts["comparisons"][second["name"]]["exact_match"] < 0.05
    assert facts["recipe_differences"] == [{"key": "model.hidden_size", "values": ["256", "32"]}]


def test_seeds_alone_have_a_mean_and_no_test(tmp_path):
    folders = [make_run(tmp_path / str(seed), GOOD, seed=seed) for seed in (1, 2)]
    facts = comparison.compare(folders, 100)
    assert [system["name"] for system in facts["systems"]] == ["1 (2 seeds)"]
    assert not facts["comparisons"]
    report.write_report(tmp_path / "page", facts)


def test_other_test_sets_are_not_tested(runs, tmp_path):
    facts = comparison.compare([runs["good"], runs["other"]])
    assert "different test sets" in facts["note"] and "comparisons" not in facts
    page = report.write_report(tmp_path, facts).read_text(encoding="utf-8")
    assert "different test sets" in page


def test_a_run_that_kept_no_outputs_is_shown(runs, tmp_path):
    bare = make_run(tmp_path / "bare", GOOD)
    (bare / "outputs" / "pointer_generator.jsonl").unlink()
    assert "Not every run" in comparison.compare([runs["good"], bare])["note"]


def test_the_command_writes_a_page(runs, tmp_path, capsys):
    arguments = [
        "compare",
        *map(str, (runs["good"], runs["bad"])),
        "--output",
        str(tmp_path / "page"),
    ]
    assert main.main([*arguments, "--samples", "100", "--json", str(tmp_path / "facts.json")]) == 0
    said = capsys.readouterr().out
    row = next(line for line in said.splitlines() if line.startswith("BLEU"))
    # Only what was tested against the first run is marked.
    assert row.rstrip().endswith("▼") and row.count("▼") == 1 and "▲" not in row
    assert "▲ better, ▼ worse than good, p < 0.05" in said
    assert "good" in said and "bad" in said and "the same 40 pairs" in said
    page = (tmp_path / "page" / "report" / "index.html").read_text(encoding="utf-8")
    assert "▼ worse" in page and "Keys that differ" in page and page.count("<polyline") == 4
    origins = set(
        re.findall(r"copied from source token (\d+), “(\d+)”, probability ([\d.]+)", page)
    )
    assert {(place, share) for place, _, share in origins} == {("3", "0.90")} and len(origins) > 9
    assert (
        json.loads((tmp_path / "facts.json").read_text(encoding="utf-8"))["comparisons"]["bad"][
            "bleu"
        ]
        < 0.05
    )


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda runs, folder: [runs["good"]], "at least two runs"),
        (lambda runs, folder: [runs["good"], runs["good"]], "named twice"),
        (lambda runs, folder: [runs["good"], folder], "There is no report in"),
    ],
)
def test_bad_calls_are_one_sentence(runs, tmp_path, capsys, make, words):
    directories = make(runs, tmp_path)
    assert main.main(["compare", *map(str, directories), "--output", str(tmp_path / "page")]) == 1
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1
    assert not (tmp_path / "page").exists()


def test_the_page_does_not_take_the_place_of_a_runs_report(runs, capsys):
    facts = runs["good"] / "report" / "facts.json"
    before = facts.read_bytes()
    arguments = ["compare", *map(str, (runs["good"], runs["bad"])), "--output", f"{runs['good']}/."]
    assert main.main(arguments) == 1
    assert (
        "is the folder of a compared run" in capsys.readouterr().err
        and facts.read_bytes() == before
    )


@pytest.mark.parametrize(
    "damage",
    [
        lambda facts: facts.update(systems="x"),
        lambda facts: facts.update(systems=3),
        lambda facts: facts.update(systems=[{}]),
        lambda facts: facts.update(recipe="x"),
        lambda facts: facts["systems"][0]["metrics"]["bleu"].update(value=10**400),
        lambda facts: facts.update(
            sentences={"wins": [{"gain": 1, "words": ["a", "b"], "probabilities": [[1, 1]]}]}
        ),
    ],
)
def test_damaged_facts_are_one_sentence(runs, tmp_path, capsys, damage):
    """For `compare` and for `report`, which leaves the page that is there as it is."""
    facts = report.load_facts(runs["good"])
    damage(facts)
    (tmp_path / "run" / "report").mkdir(parents=True)
    (tmp_path / "run" / "report" / "facts.json").write_text(json.dumps(facts))
    (tmp_path / "run" / "report" / "index.html").write_text("the page before")
    for call in (
        ["compare", str(runs["good"]), str(tmp_path / "run"), "--output", str(tmp_path / "page")],
        ["report", str(tmp_path / "run")],
    ):
        assert main.main(call) == 1
        error = capsys.readouterr().err
        assert (
            f"{tmp_path / 'run' / 'report' / 'facts.json'}, do not have the expected form; repeat "
            "the run" in error
        )
        assert error.count("\n") == 1
    assert not (tmp_path / "page").exists()
    assert (tmp_path / "run" / "report" / "index.html").read_text() == "the page before"


def test_broken_outputs_are_one_sentence(runs, tmp_path, capsys):
    broken = make_run(tmp_path / "broken", GOOD)
    (broken / "outputs" / "pointer_generator.jsonl").write_text('{"source": "x"}\n')
    assert (
        main.main(["compare", str(runs["good"]), str(broken), "--output", str(tmp_path / "page")])
        == 1
    )
    assert "cannot be understood" in capsys.readouterr().err
    assert not (tmp_path / "page").exists()


def test_runs_are_tested_as_their_recipes_measure(runs, monkeypatch):
    load, asked = report.load_facts, []

    def load_facts(directory):
        facts = load(directory)
        facts["recipe"]["data"] = {"target_language": "ja", "tokenization": "whitespace"}
        facts["recipe"]["description"] = f"The run {directory}"
        return facts

    def test(names, system, baseline, options):
        asked.append((options.language, options.tokenization, options.bootstrap_samples))
        return {}

    monkeypatch.setattr(report, "load_facts", load_facts)
    monkeypatch.setattr(scoring, "paired_bootstrap", test)
    facts = comparison.compare([runs["good"], runs["bad"]], 7)
    assert asked == [("ja", "whitespace", 7)]
    # Names and descriptions differ between all runs.
    assert [row["key"] for row in facts["recipe_differences"]] == ["model.hidden_size"]
