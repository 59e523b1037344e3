"""A test over seeds and sentences: a lucky seed makes no difference."""

import pytest

from pipeline.metrics import scoring, seed_test
from pipeline.metrics.base import ScoringError
from pipeline.metrics.scored_texts import ScoredTexts
from pipeline.metrics.scoring_options import ScoringOptions

REFERENCES = [f"open file {number}" for number in range(60)]
OPTIONS = ScoringOptions(bootstrap_samples=300)


def right(number):
    """The outputs of a training that has so many sentences right, spread over the test set."""
    return ScoredTexts(
        [text if i * number % 60 < number else "no" for i, text in enumerate(REFERENCES)],
        REFERENCES,
    )


def p_value(ours, theirs):
    texts = [[right(number) for number in numbers] for numbers in (ours, theirs)]
    return seed_test.compare_over_seeds(["exact_match"], *texts, OPTIONS)["exact_match"].p_value


def test_with_one_seed_each_it_is_the_paired_bootstrap():
    own = seed_test.compare_over_seeds(["bleu", "exact_match"], [right(50)], [right(30)], OPTIONS)
    assert own == scoring.paired_bootstrap(["bleu", "exact_match"], right(50), right(30), OPTIONS)


def test_the_difference_is_that_of_the_means():
    ours, theirs = [right(50), right(40), right(45)], [right(30), right(40)]
    result = seed_test.compare_over_seeds(["exact_match"], ours, theirs, OPTIONS)["exact_match"]
    shares = [
        [scoring.score("exact_match", texts, OPTIONS)["exact_match"].value for texts in system]
        for system in (ours, theirs)
    ]
    means = [sum(values) / len(values) for values in shares]
    assert result.difference == pytest.approx(means[0] - means[1])
    assert result.low < result.difference < result.high and "seeds:3+2" in result.signature


def test_one_lucky_seed_is_not_enough():
    # The first seeds alone differ clearly; the systems do not.
    assert p_value([55], [30]) < 0.01
    assert p_value([55, 30, 40], [30, 55, 41]) > 0.2
    assert p_value([55, 54, 56], [30, 31, 29]) < 0.01


def test_bad_calls():
    with pytest.raises(ScoringError, match="one training"):
        seed_test.compare_over_seeds(["bleu"], [], [right(30)], OPTIONS)
    with pytest.raises(ScoringError, match="at least 1 resample"):
        seed_test.compare_over_seeds(
            ["bleu"], [right(30)] * 2, [right(30)], ScoringOptions(bootstrap_samples=0)
        )
