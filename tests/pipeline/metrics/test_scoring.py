"""Scoring lists and files: known scores are found again, and what is wrong is said clearly."""

import json
import pathlib
import subprocess
import sys

import pytest

from pipeline.metrics import scoring
from pipeline.metrics.accuracy import ExactMatch
from pipeline.metrics.base import ScoringError
from pipeline.metrics.scored_files import ScoredFiles, score_files
from pipeline.metrics.scored_texts import ScoredTexts
from pipeline.metrics.scoring_options import ScoringOptions

# Development data, which lies beside the checkout and is no part of it.
CHECKS = pathlib.Path(__file__).parents[4] / "shared" / "data" / "metric_checks"


def _files(tmp_path, references="a b\nc d\n", hypotheses="a b\nc e\n"):
    (tmp_path / "references").write_text(references, encoding="utf-8")
    (tmp_path / "hypotheses").write_text(hypotheses, encoding="utf-8")
    return tmp_path / "references", tmp_path / "hypotheses"


def test_score_files(tmp_path):
    # A byte order mark, CRLF and a line separator inside a line must not shift the alignment.
    paths = _files(tmp_path, "\ufeffa b\r\nc\u2028d\r\n", "a b\nc\u2028d")
    results = score_files(
        ScoredFiles(*paths), "exact_match, chrf", ScoringOptions(bootstrap_samples=20)
    )
    assert list(results) == ["exact_match", "chrf"]
    assert results["exact_match"].value == 1


def test_score_files_reads_training_words(tmp_path):
    references, hypotheses = _files(tmp_path, "un Foo\n", "un Foo\n")
    (tmp_path / "sources").write_text("a Foo\n", encoding="utf-8")
    (tmp_path / "training").write_text("a\nun\n", encoding="utf-8")
    files = ScoredFiles(
        references, hypotheses, tmp_path / "sources", training=[tmp_path / "training"]
    )
    results = score_files(files, "unseen_copies", ScoringOptions(bootstrap_samples=0))
    assert results["unseen_copies"].details == {"n": 1, "copied": 1}


@pytest.mark.parametrize(
    "keys, words",
    [
        (
            {"metrics": "bleu,blue"},
            "no metric 'blue'; did you mean 'bleu'\\? The metrics are bleu, chrf, ter, rouge,",
        ),
        ({"metrics": "xyz"}, "no metric 'xyz'; the metrics are bleu, chrf, ter, rouge,"),
        ({"metrics": []}, "No metric is named"),
        (
            {"metrics": "placeholder_fidelity"},
            "'placeholder_fidelity' compares outputs with sources",
        ),
        (
            {"metrics": "unseen_copies", "sources": "references"},
            "'unseen_copies' needs the words seen in training",
        ),
        ({"references": "nothing"}, "references file .*nothing does not exist"),
        ({"references": "."}, "is a folder: give a text file"),
        ({"hypotheses": "one_blank"}, "one_blank contains no text: its only line is empty"),
        ({"metrics": "BLEU,rougel"}, "no metric 'BLEU'; did you mean 'bleu'"),
        ({"metrics": "rougel"}, "no metric 'rougel'; did you mean 'rougeL'"),
        ({"metrics": " , "}, "No metric is named"),
        (
            {"bootstrap_samples": 10**14},
            "100000000000000 resampled test sets are too many: ask for 1000000 at most",
        ),
        ({"hypotheses": "latin1"}, "latin1 is not UTF-8: line 2 cannot be read; convert"),
        (
            {"references": "utf-16"},
            "references file .*utf-16 is UTF-16, or not text at all: convert",
        ),
        (
            {"references": "utf-16-le"},
            "references file .*utf-16-le is UTF-16, or not text at all: convert",
        ),
        (
            {"hypotheses": "blank"},
            "hypotheses file .*blank contains no text: all of its 2 lines are empty",
        ),
        (
            {"metrics": "perplexity"},
            "'perplexity' needs a model's probabilities, .* measure the model itself",
        ),
        ({"hypotheses": "long"}, "long has 3 lines, but the references file .* has 2 lines"),
        ({"sources": "long"}, "sources file .*long has 3 lines"),
        ({"hypotheses": "empty"}, "empty is empty"),
        ({"tokenize": "nonsense"}, "no usable tokenizer 'nonsense'"),
    ],
)
def test_errors_are_one_sentence(tmp_path, keys, words):
    _files(tmp_path)
    (tmp_path / "latin1").write_bytes("good\nmauvais été\n".encode("latin-1"))
    (tmp_path / "long").write_text("a\nb\nc\n")
    (tmp_path / "empty").write_text("")
    (tmp_path / "blank").write_text(" \n\n")
    (tmp_path / "one_blank").write_text("\n")
    for encoding in ("utf-16", "utf-16-le"):  # with a byte order mark, and without
        (tmp_path / encoding).write_bytes("a b\nc d\n".encode(encoding))
    keys = {"references": "references", "hypotheses": "hypotheses", **keys}
    metrics = keys.pop("metrics", scoring.DEFAULT_METRICS)
    options = ScoringOptions(
        **{key: keys.pop(key) for key in ("bootstrap_samples", "tokenize") if key in keys}
    )
    files = ScoredFiles(**{key: tmp_path / value for key, value in keys.items()})
    with pytest.raises(ScoringError, match=words) as caught:
        score_files(files, metrics, options)
    assert "\n" not in str(caught.value) and str(caught.value).endswith(".")


def test_lists_of_different_lengths_are_refused():
    with pytest.raises(ScoringError, match="1 hypotheses for 2 references"):
        scoring.score(["bleu"], ScoredTexts(["a"], ["a", "b"]))
    with pytest.raises(ScoringError, match="empty"):
        scoring.score(["bleu"], ScoredTexts([], []))


@pytest.mark.parametrize(
    "scores, words",
    [
        ([(-1.0, 2), (float("nan"), 3)], "The score of segment 1 is not a number"),
        ([(-1.0, 2)], "1 scores for 2 references"),
    ],
)
def test_scores_that_do_not_fit_are_refused(scores, words):
    with pytest.raises(ScoringError, match=words):
        scoring.score("perplexity", ScoredTexts(["", ""], ["a", "b"], scores=scores))
    with pytest.raises(ScoringError, match=words):
        scoring.score_pair(
            "perplexity",
            ScoredTexts(["", ""], ["a", "b"], scores=[(-1.0, 2)] * 2),
            ScoredTexts(["", ""], ["a", "b"], scores=scores),
        )


def test_empty_outputs_score_zero():
    results = scoring.score(
        ["bleu", "chrf", "rouge"],
        ScoredTexts(["", ""], ["a b c d", "e f g h"]),
        ScoringOptions(bootstrap_samples=20),
    )
    assert all(result.value == 0 for result in results.values())


def test_tensorflow_is_not_imported():
    code = (
        "import sys; from pipeline.metrics import scoring; "
        "from pipeline.metrics.registry import METRICS; "
        "from pipeline.metrics.scored_texts import ScoredTexts; "
        "scoring.score(METRICS[:6], ScoredTexts(['a'], ['a'])); "
        "sys.exit('tensorflow' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=pathlib.Path(__file__).parents[3])


def test_a_segment_without_references_is_refused():
    with pytest.raises(ScoringError, match="Segment 1 has no reference"):
        scoring.score("bleu", ScoredTexts(["a", "b"], [["a"], []]))


def _published():
    """The rows of the table of known scores, but those of other implementations."""
    if not CHECKS.is_dir():
        return [
            pytest.param(
                None, marks=pytest.mark.skip(reason=f"the known scores are not here: {CHECKS}")
            )
        ]
    lines = (CHECKS / "expected_scores.tsv").read_text(encoding="utf-8").splitlines()
    header = lines[1].split("\t")
    rows = [dict(zip(header, line.split("\t"))) for line in lines[2:]]
    return [
        pytest.param(row, id=f"{row['set']}-{row['hypotheses']}")
        for row in rows
        if row["origin"] != "info"
    ]


@pytest.mark.parametrize("row", _published())
def test_published_scores_are_found_again(row, tmp_path):
    from pipeline.commands import main

    folder = CHECKS / row["set"]
    reference, *more = (
        row["references"].removesuffix(", four references").split(' with "@@ " removed')
    )
    paths = [folder / reference]
    if " to " in reference:
        paths = sorted((folder / row["hypotheses"]).parent.glob("set1.ref*"))
        assert len(paths) == 4
    names = row["metric"].split(",")[0].replace(" ", "_").lower()
    arguments = ["--metrics", "rouge" if names.startswith("rouge") else names, "--samples", "0"]
    if "tokenize" in row["metric"]:
        arguments += ["--tokenize", row["metric"].split("tokenize ")[1].split(",")[0]]
    if more:
        arguments += ["--remove", "@@ "]
    files = ["--hypotheses", str(folder / row["hypotheses"]), "--references", *map(str, paths)]
    assert main.main(["score", *files, *arguments, "--json", str(tmp_path / "facts.json")]) == 0
    facts = json.loads((tmp_path / "facts.json").read_text(encoding="utf-8"))
    found = [fact["value"] * (100 if fact["unit"] == "share" else 1) for fact in facts.values()]
    expected = row["value"].split()
    if row["origin"] == "pub":
        assert [f"{value:.2f}" for value in found] == expected
    else:
        assert found == pytest.approx([float(value) for value in expected], abs=0.05)


def test_texts_to_remove_and_several_files(tmp_path):
    paths = _files(tmp_path, "a@@ b c\nd e\n", "ab c\nx@@ y\n")
    (tmp_path / "second").write_text("\nxy\n")
    files = ScoredFiles([paths[0], tmp_path / "second"], paths[1], remove="@@ ")
    result = score_files(files, "exact_match")
    assert result["exact_match"].details == {"n": 2, "matches": 2}
    assert "nrefs:var" in result["exact_match"].signature
    (tmp_path / "second").write_text("one\n")
    with pytest.raises(
        ScoringError, match="references file .*second has 1 line, but .*references has 2 lines"
    ):
        score_files(ScoredFiles([paths[0], tmp_path / "second"], paths[1]))


def test_a_pair_is_scored_as_each_alone_from_one_reading(monkeypatch):
    references = [f"the file {number} is here" for number in range(30)]
    good, bad = references[:25] + ["x"] * 5, ["the file"] * 30
    names, options = ["bleu", "exact_match", "nist"], ScoringOptions(bootstrap_samples=40)
    texts = ScoredTexts(good, references), ScoredTexts(bad, references)
    expected = (
        scoring.score(names, texts[0], options),
        scoring.score(names, texts[1], options),
        scoring.paired_bootstrap(names, *texts, options),
    )
    read = []
    statistics = ExactMatch.statistics
    monkeypatch.setattr(
        ExactMatch,
        "statistics",
        lambda self, segment: read.append(segment) or statistics(self, segment),
    )
    assert scoring.score_pair(names, *texts, options) == expected
    assert len(read) == 60
    without, _, compared = scoring.score_pair(
        names,
        *texts,
        ScoringOptions(trials=30, bootstrap_samples=0),
        test="randomisation",
    )
    assert without["bleu"].low is None and without["bleu"].value == expected[0]["bleu"].value
    assert compared["bleu"].low is None and compared["bleu"].p_value < 0.1
