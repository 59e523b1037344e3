"""BLEU, chrF and TER: sacrebleu's values, and BLEU by length."""

import urllib.error

import pytest
import sacrebleu

from pipeline.metrics import scoring
from pipeline.metrics.base import ScoringError
from pipeline.metrics.sacrebleu_metrics import bleu_tokenizer, sacrebleu_bleu
from pipeline.metrics.scored_texts import ScoredTexts
from pipeline.metrics.scoring_options import ScoringOptions
from tests.pipeline.corpora import corpus


@pytest.mark.parametrize(
    "name, oracle",
    [
        ("bleu", sacrebleu.corpus_bleu),
        ("chrf", sacrebleu.corpus_chrf),
        ("ter", sacrebleu.corpus_ter),
    ],
)
def test_values_equal_sacrebleu(name, oracle):
    references, outputs, _ = corpus()
    result = scoring.score(
        [name], ScoredTexts(outputs, references), ScoringOptions(bootstrap_samples=0)
    )[name]
    assert result.value == pytest.approx(oracle(outputs, [references]).score, abs=1e-9)
    assert (result.low, result.high) == (None, None)
    assert "version:" in result.signature and "nrefs:1" in result.signature


def test_bleu_by_length_is_the_bleu_of_each_part():
    references, outputs, _ = corpus()
    result = scoring.score(
        "bleu_by_length", ScoredTexts(outputs, references), ScoringOptions(bootstrap_samples=20)
    )["bleu_by_length"]
    assert result.value == pytest.approx(
        sacrebleu.corpus_bleu(outputs, [references]).score, abs=1e-9
    )
    for part, keep in (("0-9", lambda size: size < 10), ("10-19", lambda size: size >= 10)):
        chosen = [
            index
            for index, text in enumerate(references)
            if keep(len(sacrebleu.BLEU().tokenizer(text).split()))
        ]
        expected = sacrebleu.corpus_bleu(
            [outputs[i] for i in chosen], [[references[i] for i in chosen]]
        ).score
        found = {bucket["words"]: bucket["bleu"] for bucket in result.details["by_length"]}
        assert found[part] == pytest.approx(expected, abs=1e-9)
    assert found["60+"] is None


@pytest.mark.parametrize(
    "language, name", [("en", "13a"), ("fr_CA", "13a"), ("zh-Hans", "zh"), ("ja", "char")]
)
def test_bleu_tokenizer(language, name):
    assert bleu_tokenizer(language) == name


@pytest.mark.parametrize(
    "error, words",
    [
        (
            urllib.error.URLError("no route"),
            "'flores200' needs to download its model, which failed (no route)",
        ),
        (ImportError("\n\nPlease install"), "'flores200' needs packages that are not installed"),
    ],
)
def test_a_tokenizer_that_cannot_be_had_is_one_sentence(monkeypatch, error, words):
    def fail(self, **options):
        raise error

    monkeypatch.setattr(sacrebleu.BLEU, "__init__", fail)
    with pytest.raises(ScoringError) as caught:
        sacrebleu_bleu(ScoringOptions(tokenize="flores200"))
    assert words in str(caught.value) and "\n" not in str(caught.value)
