"""Words by their training count and by the length of their sentence, on hand-counted cases."""

import json

import pytest

from pipeline.metrics import scoring
from pipeline.metrics.base import ScoringError
from pipeline.metrics.scored_texts import ScoredTexts
from pipeline.metrics.scoring_options import ScoringOptions


def test_rare_word_recall_clips_and_takes_the_best_reference():
    training = {"often": 8, "seven": 7, "never": 0}
    options = ScoringOptions(bootstrap_samples=0)
    outputs, references = (
        ["often seven new new", "x"],
        [["often seven seven new"], ["often", "often y x"]],
    )
    result = scoring.score(
        "rare_word_recall", ScoredTexts(outputs, references, training_words=training), options
    )["rare_word_recall"]
    assert result.details == {"n": 5, "found": 3} and result.value == pytest.approx(0.6)
    nothing = scoring.score(
        "rare_word_recall", ScoredTexts(["often"], ["often"], training_words=training), options
    )["rare_word_recall"]
    assert nothing.value is None
    with pytest.raises(ScoringError, match="how often each word"):
        scoring.score("rare_word_recall", ScoredTexts(["a"], ["a"], training_words={"a"}))


def test_word_f1_by_frequency():
    training = {"one": 1, "six": 6, "many": 1000}
    outputs, references = ["many many six new", "six"], [["many six six gone"], ["many", "six"]]
    texts = ScoredTexts(outputs, references, training_words=training)
    result = scoring.score("word_f1_by_frequency", texts, ScoringOptions(bootstrap_samples=20))[
        "word_f1_by_frequency"
    ]
    assert result.value == pytest.approx(2 * 3 / (5 + 5))
    buckets = {bucket["seen"]: bucket for bucket in result.details["by_frequency"]}
    assert list(buckets) == ["0", "1", "2", "3", "4", "5-9", "10-99", "100-999", "1000+"]
    assert buckets["0"]["f1"] == 0 and buckets["1"]["f1"] is None
    assert (
        buckets["5-9"]["matches"],
        buckets["5-9"]["output_words"],
        buckets["5-9"]["reference_words"],
    ) == (2, 2, 3)
    assert buckets["1000+"]["f1"] == pytest.approx(2 / 3)
    json.dumps(result.to_dict(), allow_nan=False)


def test_word_f1_by_length():
    ten = " ".join(f"w{number}" for number in range(10))
    outputs, references = (
        ["a a b", f"{ten} more", "", "..."],
        [["a b c", "z"], [ten], ["x y"], ["!"]],
    )
    result = scoring.score(
        "word_f1_by_length", ScoredTexts(outputs, references), ScoringOptions(bootstrap_samples=20)
    )["word_f1_by_length"]
    short, long, *rest = result.details["f1_by_length"]
    assert (short["words"], short["matches"], short["output_words"], short["reference_words"]) == (
        "0-9",
        2,
        3,
        5,
    )
    assert (long["words"], long["matches"], long["output_words"], long["reference_words"]) == (
        "10-19",
        10,
        11,
        10,
    )
    assert short["f1"] == pytest.approx(4 / 8) and long["f1"] == pytest.approx(20 / 21)
    assert all(bucket["f1"] is None for bucket in rest) and rest[-1]["words"] == "60+"
    assert (
        result.value == pytest.approx(2 * 12 / (14 + 15))
        and result.low <= result.value <= result.high
    )
    json.dumps(result.to_dict(), allow_nan=False)
