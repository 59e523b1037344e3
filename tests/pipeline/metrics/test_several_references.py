"""Segments with several references: each metric reads them in its own way."""

import pytest
import sacrebleu

from pipeline.metrics import scoring
from pipeline.metrics.scored_texts import ScoredTexts
from pipeline.metrics.scoring_options import ScoringOptions
from tests.pipeline.corpora import several


@pytest.mark.parametrize(
    "name, oracle",
    [
        ("bleu", sacrebleu.corpus_bleu),
        ("chrf", sacrebleu.corpus_chrf),
        ("ter", sacrebleu.corpus_ter),
    ],
)
def test_several_references_equal_sacrebleu(name, oracle):
    outputs, references = several()
    streams = [
        [texts[index] if index < len(texts) else None for texts in references] for index in range(3)
    ]
    result = scoring.score(
        [name], ScoredTexts(outputs, references), ScoringOptions(bootstrap_samples=0)
    )[name]
    assert result.value == pytest.approx(oracle(outputs, streams).score, abs=1e-9)
    assert "nrefs:var" in result.signature
    everywhere = [[one, other] for one, other in zip(streams[0], reversed(streams[0]))]
    result = scoring.score(
        [name], ScoredTexts(outputs, everywhere), ScoringOptions(bootstrap_samples=0)
    )[name]
    assert result.value == pytest.approx(oracle(outputs, list(zip(*everywhere))).score, abs=1e-9)
    assert "nrefs:2" in result.signature


def test_several_references_of_the_other_metrics():
    from rouge_score import rouge_scorer

    outputs, references = several()
    scorer = rouge_scorer.RougeScorer(["rouge2", "rougeL"], use_stemmer=True)
    expected = [scorer.score_multi(texts, output) for output, texts in zip(outputs, references)]
    found = scoring.score(
        ["rouge2", "rougeL", "exact_match"],
        ScoredTexts(outputs, references),
        ScoringOptions(bootstrap_samples=0),
    )
    for name in ("rouge2", "rougeL"):
        mean = sum(scores[name].fmeasure for scores in expected) / len(expected)
        assert found[name].value == pytest.approx(100 * mean, abs=1e-9)
    equal = sum(output in texts for output, texts in zip(outputs, references))
    assert found["exact_match"].details == {"n": 60, "matches": equal}

    options = ScoringOptions(bootstrap_samples=0, tokenization="whitespace")
    texts = ScoredTexts(["a b c"], [["x y", "a b d e", "a x c"]])
    accuracy = scoring.score("token_accuracy", texts, options)["token_accuracy"]
    assert accuracy.details == {"positions": 3, "equal": 2}
    stutters = scoring.score(
        "repetition_rate", ScoredTexts(["a a", "a a"], [["a", "b b"], ["a", "b"]]), options
    )
    assert stutters["repetition_rate"].details == {"n": 2, "repeating": 1}
    copies = scoring.score(
        "unseen_copies",
        ScoredTexts(["x y"], [["x", "z y"]], ["x y z"], training_words=()),
        options,
    )
    assert copies["unseen_copies"].details == {"n": 3, "copied": 2}
