"""Tables of scores: a row for each metric, and breakdowns."""

from pipeline.metrics import scoring
from pipeline.metrics.base import MetricResult
from pipeline.metrics.scored_texts import ScoredTexts
from pipeline.metrics.scoring_options import ScoringOptions
from pipeline.reporting import score_tables
from tests.pipeline.corpora import corpus


def test_table_has_a_row_for_each_metric_and_a_column_for_each_system():
    references, outputs, worse = corpus()
    names = ["bleu", "exact_match"]
    table = score_tables.format_table(
        {
            "copy": scoring.score(
                names, ScoredTexts(outputs, references), ScoringOptions(bootstrap_samples=50)
            ),
            "plain": scoring.score(
                names, ScoredTexts(worse, references), ScoringOptions(bootstrap_samples=50)
            ),
        }
    )
    lines = table.splitlines()
    assert lines[0].split() == ["copy", "plain"]
    assert lines[2].startswith("BLEU") and lines[2].count("[") == 2
    assert lines[3].startswith("Exact match") and "n=60" in lines[3] and "%" in lines[3]


def test_breakdowns_are_tables_of_what_has_words():
    references = ["a b c d", "a " * 12, "b b d e"]
    counts = {"a": 5, "b": 1}
    names = ["bleu_by_length", "word_f1_by_frequency", "bleu"]
    options = ScoringOptions(bootstrap_samples=0)
    one = ScoredTexts(references, references, training_words=counts)
    results = {
        "one": scoring.score(names, one, options),
        "two": scoring.score(names, one.with_outputs(["a", "a", "b"]), options),
    }
    said = score_tables.format_breakdowns(results)
    lines = [line.split() for line in said.splitlines() if not line.startswith("---")]
    assert lines[0] == [
        *"BLEU by words of the reference".split(),
        "one",
        "two",
        "reference",
        "words",
    ]
    assert [line[0] for line in lines[1:3]] == ["0-9", "10-19"]
    assert lines[1][1] == lines[2][1] == "100.00" and lines[1][-1] == "8" and lines[2][-1] == "12"
    frequency = lines[lines.index([]) + 2 :]
    assert [line[0] for line in frequency] == ["0", "1", "5-9"]
    assert frequency[0] == ["0", "100.0", "%", "0.0", "%", "4"]
    assert (
        score_tables.format_breakdowns(
            {
                "one": scoring.score(
                    "bleu", ScoredTexts(references, references), ScoringOptions(bootstrap_samples=0)
                )
            }
        )
        == ""
    )


def test_a_comparison_says_who_is_clearly_better():
    references, outputs, worse = corpus()
    names = ["bleu", "ter", "copy_rate"]
    options = ScoringOptions(bootstrap_samples=100)
    good = ScoredTexts(outputs, references, sources=references)
    bad = good.with_outputs(worse)
    compared = scoring.paired_bootstrap(names, good, bad, options)
    lines = score_tables.format_comparisons(compared).splitlines()
    assert lines[0].split() == ["difference", "p-value"]
    assert lines[2].startswith("BLEU") and lines[2].endswith("better")
    assert lines[3].startswith("TER") and lines[3].endswith("better")
    assert lines[4].startswith("Copy rate") and lines[4].endswith("differs")
    back = scoring.paired_bootstrap(names, bad, good, options)
    assert all(
        line.endswith("worse") for line in score_tables.format_comparisons(back).splitlines()[2:4]
    )
    same = scoring.paired_bootstrap(names, good, good, options)
    assert all(
        line.endswith("not clear")
        for line in score_tables.format_comparisons(same).splitlines()[2:5]
    )


def test_an_interval_goes_up_and_a_share_is_in_percent():
    share = MetricResult("exact_match", 0.5, 0.25, 0.75, details={"n": 4}, unit="share")
    points = MetricResult("bleu", 20.0, 10.0, 30.5)
    table = score_tables.format_table({"copy": {"bleu": points, "exact_match": share}})
    bleu, exact_match = table.splitlines()[2:4]
    assert bleu.endswith("20.00 [10.00, 30.50]")
    assert exact_match.endswith("50.0 % [25.0, 75.0 %] n=4")
