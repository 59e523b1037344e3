"""BLEU against all targets of a source."""

import pytest
import sacrebleu

from pipeline.metrics import all_references
from pipeline.metrics.scored_texts import ScoredTexts
from pipeline.metrics.scoring_options import ScoringOptions

SOURCES = [
    "he was born in rome",
    "it is red",
    "he was born in rome",
    "the sea is deep",
    "it is red",
]
TARGETS = [
    "where was he born ?",
    "what colour is it ?",
    "who was born in rome ?",
    "how deep is the sea ?",
    "is it red ?",
]
OUTPUTS = ["who was born in rome ?", "is it red ?", "who was born in rome ?", "how deep is it ?"]
OUTPUTS.append(OUTPUTS[1])
OPTIONS = ScoringOptions(language="en", bootstrap_samples=50)


def texts(outputs=OUTPUTS):
    return ScoredTexts(outputs, TARGETS, SOURCES)


def test_each_source_counts_once_with_all_its_targets():
    (result,), p_value = all_references.score(["bleu", "chrf"], [texts()], OPTIONS)
    expected = sacrebleu.corpus_bleu(
        [OUTPUTS[0], OUTPUTS[1], OUTPUTS[3]],
        [[TARGETS[0], TARGETS[1], TARGETS[3]], [TARGETS[2], TARGETS[4], None]],
    )
    assert result.value == pytest.approx(expected.score)
    assert result.name == all_references.NAME and p_value is None
    assert result.low <= result.value <= result.high


def test_two_systems_are_compared():
    (ours, theirs), p_value = all_references.score(["bleu"], [texts(), texts(TARGETS)], OPTIONS)
    assert theirs.value == pytest.approx(100.0) and ours.value < theirs.value
    assert 0 < p_value <= 1


@pytest.mark.parametrize(
    "given",
    [
        (["chrf"], texts()),
        (["bleu"], ScoredTexts(OUTPUTS, TARGETS)),
        (["bleu"], ScoredTexts(OUTPUTS, TARGETS, [f"source {number}" for number in range(5)])),
        # A pair that stands there twice has one target.
        (["bleu"], ScoredTexts(OUTPUTS, [TARGETS[0]] * 5, [SOURCES[0]] * 5)),
    ],
)
def test_without_bleu_or_a_second_target_nothing_is_measured(given):
    metrics, scored = given
    assert all_references.score(metrics, [scored], OPTIONS) is None


def test_texts_without_sources_have_no_segment_for_each():
    with pytest.raises(ValueError, match="no sources"):
        ScoredTexts(OUTPUTS, TARGETS).one_per_source()
