"""Perplexity by a model's scores."""

import numpy as np
import pytest

from pipeline.metrics import scoring
from pipeline.metrics.base import ScoringError
from pipeline.metrics.perplexity import perplexity_of
from pipeline.metrics.scored_texts import ScoredTexts
from pipeline.metrics.scoring_options import ScoringOptions


def test_perplexity_per_token_and_per_word():
    """A word is two subwords, and the end: words alone compare models of different units."""
    references = ["le chat", "oui !"]
    texts = ScoredTexts(["", ""], references, scores=[(-6.0, 5), (-3.0, 4)])
    options = ScoringOptions(bootstrap_samples=50)
    found = scoring.score("perplexity,word_perplexity", texts, options)
    assert (
        found["perplexity"].value == pytest.approx(np.exp(9 / 9))
        and found["perplexity"].details["tokens"] == 9
    )
    assert (
        found["word_perplexity"].value == pytest.approx(np.exp(9 / 6))
        and found["word_perplexity"].details["words"] == 6
    )
    assert (
        found["perplexity"].lower_is_better
        and found["perplexity"].low < np.e < found["perplexity"].high
    )
    worse = [(-9.0, 5), (-5.0, 4)]
    *_, compared = scoring.score_pair(
        "perplexity", texts, texts.with_outputs(["", ""], scores=worse), options
    )
    assert compared["perplexity"].difference == pytest.approx(np.e - np.exp(14 / 9))
    assert perplexity_of(-1e9, 1) == np.inf and perplexity_of(0.0, 0) is None
    assert np.isnan(perplexity_of(np.nan, 1))
    with pytest.raises(ScoringError, match="'perplexity' needs a model's probabilities"):
        scoring.score("perplexity", ScoredTexts([""], ["a"]))
