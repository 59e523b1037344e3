"""NIST: NLTK's values, on resampled test sets too."""

import numpy as np
import pytest

from pipeline.metrics import scoring
from pipeline.metrics.scored_texts import ScoredTexts
from pipeline.metrics.scoring_options import ScoringOptions
from pipeline.metrics.segment_statistics import SegmentStatistics
from tests.pipeline.corpora import corpus


def _nist_by_nltk(outputs, references):
    from nltk.translate import nist_score

    return nist_score.corpus_nist(
        [[text.split() for text in texts] for texts in references], [o.split() for o in outputs]
    )


@pytest.mark.parametrize("seed", range(5))
def test_nist_equals_nltk(seed):
    references, good, bad = corpus(50, seed)
    options = ScoringOptions(tokenization="whitespace", bootstrap_samples=0)
    for outputs in (good, bad):
        result = scoring.score("nist", ScoredTexts(outputs, references), options)["nist"]
        assert result.value == pytest.approx(
            _nist_by_nltk(outputs, [[text] for text in references]), abs=1e-9
        )
    for count in (2, 3):
        several = [
            texts[: 1 + index % count]
            for index, texts in enumerate(zip(references, bad, references[::-1]))
        ]
        result = scoring.score("nist", ScoredTexts(good, several), options)["nist"]
        assert result.value == pytest.approx(_nist_by_nltk(good, several), abs=1e-9)
    short = [" ".join(text.split()[:-2]) or "cat" for text in good]
    result = scoring.score("nist", ScoredTexts(short, several), options)["nist"]
    assert result.value == pytest.approx(_nist_by_nltk(short, several), abs=1e-9)


def test_nist_of_resampled_test_sets_equals_nltk():
    references, outputs, others = corpus(20)
    several = list(zip(references, others))
    table = SegmentStatistics(
        "nist",
        [ScoredTexts(outputs, several), ScoredTexts(others, several)],
        ScoringOptions(tokenization="whitespace"),
    )
    values = table.resample(10, 1)
    generator = np.random.default_rng(1)
    for sample, indices in enumerate(generator.choice(20, size=(10, 20))):
        for system, texts in enumerate((outputs, others)):
            expected = _nist_by_nltk(
                [texts[index] for index in indices], [several[index] for index in indices]
            )
            assert values[system]["nist"][sample] == pytest.approx(expected, abs=1e-9)


def test_nist_of_almost_nothing():
    for outputs, references in ([""], ["a"]), (["a"], [""]), (["a b"], ["c d"]), ([""], [""]):
        assert (
            scoring.score(
                "nist", ScoredTexts(outputs, references), ScoringOptions(bootstrap_samples=10)
            )["nist"].value
            == 0
        )
    # Nothing but alternatives: each reference matches a word of its own.
    alternatives = scoring.score(
        "nist",
        ScoredTexts(["a b c d e"], [["a", "b"]]),
        ScoringOptions(tokenization="whitespace", bootstrap_samples=10),
    )
    assert (
        alternatives["nist"].value
        == pytest.approx(_nist_by_nltk(["a b c d e"], [["a", "b"]]), abs=1e-9)
        == 0.2
    )
    result = scoring.score("nist", ScoredTexts(["The cat."], ["The cat."]))["nist"]
    assert (
        result.details == {"hypothesis_length": 3, "reference_words": 3}
        and "tok:13a" in result.signature
    )
