"""Intervals and p-values: sacrebleu's own, and right on cases that one can think through."""

import pytest
import sacrebleu
from sacrebleu.significance import PairedTest, _bootstrap_resample, estimate_ci

from pipeline.metrics import resampling, scoring, segment_statistics
from pipeline.metrics.base import MetricResult, ScoringError
from pipeline.metrics.scored_texts import ScoredTexts
from pipeline.metrics.scoring_options import ScoringOptions
from tests.pipeline.corpora import corpus


def test_interval_is_from_sacrebleus_own_resamples(monkeypatch):
    # Small chunks: drawing the indices in pieces must not change them.
    monkeypatch.setattr(segment_statistics, "_BOOTSTRAP_CHUNK_ELEMENTS", 1000)
    references, outputs, _ = corpus(61)
    result = scoring.score(
        ["bleu"], ScoredTexts(outputs, references), ScoringOptions(bootstrap_samples=200)
    )["bleu"]
    metric = sacrebleu.BLEU()
    _, scores = _bootstrap_resample(
        metric._extract_corpus_statistics(outputs, [references]), metric, 200
    )
    values = sorted(score.score for score in scores)
    assert values[4] <= result.low <= values[5]
    assert values[194] <= result.high <= values[195]
    assert "bs:200|seed:12345" in result.signature
    _, half_width = estimate_ci(values)
    assert (result.high - result.low) / 2 == pytest.approx(half_width, rel=0.05)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_p_value_equals_sacrebleus_paired_test(seed):
    references, better, worse = corpus(40, seed)
    ours = scoring.paired_bootstrap(
        ["bleu", "chrf"],
        ScoredTexts(better, references),
        ScoredTexts(worse, references),
        ScoringOptions(bootstrap_samples=300),
    )
    test = PairedTest(
        [("baseline", worse), ("system", better)],
        {"BLEU": sacrebleu.BLEU(), "CHRF": sacrebleu.CHRF()},
        [references],
        test_type="bs",
        n_samples=300,
    )
    theirs = {key: results[1].p_value for key, results in test()[1].items() if key != "System"}
    # sacrebleu sums in float32, so that one resample may fall on the other side of a tie.
    assert ours["bleu"].p_value == pytest.approx(theirs["BLEU"], abs=1.5 / 301)
    assert ours["chrf"].p_value == pytest.approx(theirs["chrF2"], abs=1.5 / 301)
    assert ours["bleu"].difference > 0


@pytest.mark.parametrize("seed", [1, 2])
def test_randomisation_equals_sacrebleus(seed, monkeypatch):
    monkeypatch.setattr(
        segment_statistics, "_BOOTSTRAP_CHUNK_ELEMENTS", 3000
    )  # several chunks must be the same trials
    references, better, worse = corpus(41, seed)
    both = list(zip(references, worse))
    metrics = {"BLEU": sacrebleu.BLEU(), "CHRF": sacrebleu.CHRF(), "TER": sacrebleu.TER()}
    for first, second, texts, streams in (
        (better, worse, references, [references]),
        (better, better[:20] + worse[20:23] + better[23:], both, [references, worse]),
    ):
        ours = scoring.paired_randomisation(
            "bleu,chrf,ter",
            ScoredTexts(first, texts),
            ScoredTexts(second, texts),
            ScoringOptions(trials=200, bootstrap_samples=100),
        )
        test = PairedTest(
            [("b", second), ("s", first)], metrics, streams, test_type="ar", n_samples=200
        )
        theirs = {key: results[1].p_value for key, results in test()[1].items() if key != "System"}
        # Sums in another order may fall on the other side of a tie.
        for name, key in (("bleu", "BLEU"), ("chrf", "chrF2"), ("ter", "TER")):
            assert ours[name].p_value == pytest.approx(theirs[key], abs=1.5 / 201), name
            assert ours[name].low <= ours[name].difference <= ours[name].high
    assert "ar:200|bs:100|seed:12345" in ours["bleu"].signature


def test_randomisation_of_the_other_metrics():
    references, better, worse = corpus(30)
    names = "nist,exact_match,rouge1"
    found = scoring.paired_randomisation(
        names,
        ScoredTexts(better, references),
        ScoredTexts(worse, references),
        ScoringOptions(trials=100, bootstrap_samples=0),
    )
    assert found["nist"].p_value == pytest.approx(1 / 101) and found["nist"].low is None
    # One segment of difference: every trial reaches it.
    almost = ["cat", *references[1:]]
    found = scoring.paired_randomisation(
        "exact_match",
        ScoredTexts(references, references),
        ScoredTexts(almost, references),
        ScoringOptions(trials=100),
    )
    assert found["exact_match"].p_value == 1
    undefined = scoring.paired_randomisation(
        "placeholder_fidelity",
        ScoredTexts(["a"], ["a"], ["a"]),
        ScoredTexts(["b"], ["a"], ["a"]),
        ScoringOptions(trials=10),
    )
    assert undefined["placeholder_fidelity"].p_value is None
    with pytest.raises(ScoringError, match="1000001 trials are too many: use at most 1000000"):
        scoring.paired_randomisation(
            "bleu",
            ScoredTexts(better, references),
            ScoredTexts(worse, references),
            ScoringOptions(trials=1_000_001, bootstrap_samples=0),
        )
    with pytest.raises(ScoringError, match="at least 1 trial; got 0"):
        scoring.paired_randomisation(
            "bleu",
            ScoredTexts(better, references),
            ScoredTexts(worse, references),
            ScoringOptions(trials=0),
        )


@pytest.mark.parametrize("test", [scoring.paired_bootstrap, scoring.paired_randomisation])
def test_two_equal_systems_do_not_differ(test):
    references, outputs, _ = corpus()
    texts, options = ScoredTexts(outputs, references), ScoringOptions(bootstrap_samples=50)
    for result in test("bleu,exact_match,rouge", texts, texts, options).values():
        assert (result.difference, result.p_value) == (0, 1.0)


def test_paired_test_of_shares():
    sources = ["open %s"] * 40
    good, bad = ["ouvrir %s"] * 40, ["ouvrir %s"] * 20 + ["ouvrir"] * 20
    result = scoring.paired_bootstrap(
        ["placeholder_fidelity"],
        ScoredTexts(good, good, sources),
        ScoredTexts(bad, good, sources),
        ScoringOptions(bootstrap_samples=500),
    )
    comparison = result["placeholder_fidelity"]
    assert comparison.difference == pytest.approx(0.5)
    assert comparison.p_value < 0.01
    assert 0.3 < comparison.low < 0.5 < comparison.high < 0.7
    almost = ["ouvrir %s"] * 39 + ["ouvrir"]
    result = scoring.paired_bootstrap(
        ["placeholder_fidelity"],
        ScoredTexts(good, good, sources),
        ScoredTexts(almost, good, sources),
        ScoringOptions(bootstrap_samples=500),
    )
    assert result["placeholder_fidelity"].p_value > 0.1


@pytest.mark.parametrize(
    "name, value, p_value, said",
    [
        ("bleu", 31.0, 0.049, "better"),
        ("bleu", 29.0, 0.001, "worse"),
        ("bleu", 31.0, 0.05, ""),
        ("bleu", 31.0, None, ""),
        ("bleu", None, 0.001, ""),
        ("bleu", 30.0, 0.001, ""),
        ("ter", 29.0, 0.001, "better"),
        ("ter", 31.0, 0.001, "worse"),
        ("copy_rate", 31.0, 0.001, ""),
    ],
)
def test_what_is_called_better(name, value, p_value, said):
    result, baseline = (
        MetricResult(name, number, lower_is_better=name == "ter") for number in (value, 30.0)
    )
    assert resampling.verdict(result, baseline, p_value) == said
    assert (
        resampling.verdict(None, baseline, p_value)
        == resampling.verdict(result, None, p_value)
        == ""
    )
