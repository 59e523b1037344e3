"""The repetition rate, on hand-counted cases."""

import pytest

from pipeline.metrics import scoring
from pipeline.metrics.scored_texts import ScoredTexts


def test_repetition_rate_excuses_what_the_reference_repeats():
    outputs = ["the cat the cat sat", "vous vous connectez", "a b c d", "a a"]
    references = ["the cat sat", "Vous vous connectez, vous vous", "a b c d", "a"]
    result = scoring.score(["repetition_rate"], ScoredTexts(outputs, references))["repetition_rate"]
    assert (result.value, result.lower_is_better) == (0.5, True)


@pytest.mark.parametrize(
    "output, rate",
    [("a a", 1), ("x a a", 1), ("a b a", 0), ("x a b a b", 1), ("a b c d a b c d", 1)]
    # Runs of five words and more are no stutter.
    + [("a b c d e a b c d e", 0), ("a", 0), ("", 0)],
)
def test_a_run_of_one_to_four_words_counts_wherever_it_ends(output, rate):
    texts = ScoredTexts([output], ["x y"])
    assert scoring.score(["repetition_rate"], texts)["repetition_rate"].value == rate
