"""Fidelity, unseen copies, copy rate and copy precision, on hand-counted cases."""

import json

import pytest

from pipeline.metrics import scoring
from pipeline.metrics.scored_texts import ScoredTexts
from pipeline.metrics.scoring_options import ScoringOptions
from pipeline.reporting import score_tables


def test_placeholder_fidelity_counts_multisets():
    sources = ["%s of %s", "{a} and %(b)s", "no placeholder", "none here", "<b>%d</b>"]
    outputs = ["%s sur %s", "{a} et %(c)s", "rien", "rien %s", "%d"]
    results = scoring.score(
        ["placeholder_fidelity", "protected_fidelity"], ScoredTexts(outputs, outputs, sources)
    )
    result = results["placeholder_fidelity"]
    assert result.value == pytest.approx(2 / 3)
    assert result.details == {
        "n": 3,
        "broken": 1,
        "all_segments": pytest.approx(3 / 5),
        "all_n": 5,
        "invented": 1,
    }
    assert 0 <= result.low <= result.value <= result.high <= 1
    assert results["protected_fidelity"].value == pytest.approx(
        1 / 3
    )  # the tags of the last one are lost
    lost_one = scoring.score(
        ["placeholder_fidelity"], ScoredTexts(["%s sur"], ["x"], ["%s of %s"])
    )["placeholder_fidelity"]
    assert lost_one.value == 0


def test_share_of_nothing_is_undefined_and_json():
    result = scoring.score(["placeholder_fidelity"], ScoredTexts(["a"], ["a"], ["a"]))[
        "placeholder_fidelity"
    ]
    assert result.value is None and result.low is None
    assert json.loads(json.dumps(result.to_dict(), allow_nan=False))["value"] is None
    assert "n/a" in score_tables.format_table({"system": {"placeholder_fidelity": result}})
    comparison = scoring.paired_bootstrap(
        ["placeholder_fidelity"],
        ScoredTexts(["a"], ["a"], ["a"]),
        ScoredTexts(["b"], ["a"], ["a"]),
        ScoringOptions(bootstrap_samples=10),
    )
    assert comparison["placeholder_fidelity"].p_value is None


def test_unseen_copies():
    sources = ["Import Zanzibar now", "Use plone.app.quux twice plone.app.quux", "Known words"]
    references = ["Importer Zanzibar", "Utilisez plone.app.quux", "Mots connus"]
    outputs = ["Importer Zanzibar", "Utilisez cela", "Mots connus"]
    result = scoring.score(
        ["unseen_copies"],
        ScoredTexts(outputs, references, sources, training_words={"Import", "words"}),
    )
    assert result["unseen_copies"].details == {"n": 2, "copied": 1}
    assert result["unseen_copies"].value == 0.5
    seen = scoring.score(
        ["unseen_copies"], ScoredTexts(outputs, references, sources, {"Zanzibar", "plone.app.quux"})
    )
    assert seen["unseen_copies"].value is None


def test_copy_rate_and_precision_count_running_words():
    sources = ["open the Foo file", "nothing"]
    outputs = ["ouvrir Foo Foo the", "rien"]
    references = [["ouvrir Foo"], ["rien"]]
    names = "copy_rate,copy_precision"
    found = scoring.score(
        names, ScoredTexts(outputs, references, sources), ScoringOptions(bootstrap_samples=20)
    )
    assert found["copy_rate"].details == {"words": 5, "in_source": 3} and found[
        "copy_rate"
    ].value == pytest.approx(0.6)
    assert found["copy_precision"].details == {"copied": 3, "in_reference": 1}
    references = [["ouvrir Foo", "Foo Foo"], ["rien"]]
    found = scoring.score(
        names, ScoredTexts(outputs, references, sources), ScoringOptions(bootstrap_samples=20)
    )
    assert found["copy_precision"].value == pytest.approx(2 / 3)
    assert scoring.score(names, ScoredTexts([""], ["a"], ["a"]))["copy_rate"].value is None


def test_tokenized_text_is_measured_by_its_tokens():
    source, target = "la_bel:_ci 9:_dn", "( to la_bel:_ci ) 9:_dn"
    texts = ScoredTexts([target], [target], [source], training_words={"la_bel", "9:_dn"})
    options = ScoringOptions(tokenization="whitespace", bootstrap_samples=0)
    result = scoring.score(["unseen_copies", "bleu"], texts, options)
    assert result["unseen_copies"].details == {"n": 1, "copied": 1}
    assert "tok:none" in result["bleu"].signature
    assert "tok:13a" in scoring.score(["bleu"], ScoredTexts([target], [target]))["bleu"].signature
