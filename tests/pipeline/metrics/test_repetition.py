"""The repetition rate, on hand-counted cases."""

from pipeline.metrics import scoring
from pipeline.metrics.scored_texts import ScoredTexts


def test_repetition_rate_excuses_what_the_reference_repeats():
    outputs = ["the cat the cat sat", "vous vous connectez", "a b c d", "a a"]
    references = ["the cat sat", "Vous vous connectez, vous vous", "a b c d", "a"]
    result = scoring.score(["repetition_rate"], ScoredTexts(outputs, references))["repetition_rate"]
    assert (result.value, result.lower_is_better) == (0.5, True)
