"""ROUGE: its recall, and its words in other languages than English."""

import pytest

from pipeline.metrics import scoring
from pipeline.metrics.scored_texts import ScoredTexts
from pipeline.metrics.scoring_options import ScoringOptions


def test_rouge_recall_is_that_of_the_reference_with_the_best_f1():
    names = ["rouge1", "rouge1_recall", "rougeL_recall"]
    found = scoring.score(
        names, ScoredTexts(["a b c d"], [["a", "a b c x y z"]]), ScoringOptions(bootstrap_samples=0)
    )
    assert (
        found["rouge1_recall"].value
        == pytest.approx(50)
        == pytest.approx(found["rouge1"].details["recall"])
    )
    assert found["rouge1"].value == pytest.approx(60)
    assert found["rougeL_recall"].value == pytest.approx(50)
    assert found["rougeL_recall"].signature.startswith("nrefs:2|recall|")


def test_rouge_reads_other_languages():
    texts, french = ScoredTexts(["élève à Noël"], ["eleve a noel"]), ScoringOptions(language="fr")
    assert scoring.score(["rouge1"], texts, french)["rouge1"].value == 0
    assert (
        scoring.score(
            ["rouge1"], ScoredTexts(["東京の天気"], ["東京の空"]), ScoringOptions(language="ja")
        )["rouge1"].value
        > 50
    )
    english = scoring.score(["rouge"], ScoredTexts(["running dogs"], ["run dog"]))
    assert list(english) == ["rouge1", "rouge2", "rougeL"]
    assert english["rouge1"].value == pytest.approx(100)
    assert english["rouge1"].details["recall"] == pytest.approx(100)
