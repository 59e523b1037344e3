"""Fidelity counts what a recipe's dialects protect."""

from pipeline.metrics import scoring
from pipeline.metrics.scored_texts import ScoredTexts
from pipeline.metrics.scoring_options import ScoringOptions
from pipeline.recipes.recipe import recipe_from_dict


def fidelity(source, output, name="placeholder_fidelity", **options):
    texts = ScoredTexts([output], [(output,)], [source])
    options = ScoringOptions(bootstrap_samples=0, **options)
    return scoring.score([name], texts, options)[name].value


def test_what_used_to_be_unseen_is_measured():
    for token in ("%ld", "%-10s", ":name", "{ $x }", "{n, number}", "{n, plural, one {", "%1"):
        assert fidelity(f"Save {token} now", "Garder") == 0
        assert fidelity(f"Save {token} now", f"Garder {token}") == 1
    assert fidelity("&#x27; <0>x</0>", "x", "protected_fidelity") == 0


def test_dialects_and_patterns_are_options():
    assert fidelity("Save %s", "Garder", placeholders=["icu"]) is None
    assert fidelity("Save [[x]]", "Garder", placeholder_patterns=[r"\[\[\w+\]\]"]) == 0
    data = {"placeholders": ["c"], "placeholder_patterns": ["x+y"]}
    options = ScoringOptions.of(recipe_from_dict({"name": "x", "data": data}))
    assert options.tokenizer.placeholders("%s {0} xxy") == ["%s", "xxy"]
