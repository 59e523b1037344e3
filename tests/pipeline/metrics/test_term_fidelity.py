"""Term fidelity: terms of the sources whose translations the outputs hold."""

import pytest

from pipeline.metrics import scoring
from pipeline.metrics.base import ScoringError
from pipeline.metrics.scored_texts import ScoredTexts
from pipeline.metrics.scoring_options import ScoringOptions


@pytest.fixture
def options(tmp_path):
    path = tmp_path / "terms.csv"
    path.write_text("homepage,page d'accueil\nart,art\nホーム,ホームA\nstart page,Page d'accueil\n")
    return ScoringOptions(glossary=str(path), bootstrap_samples=0)


def measured(options, *pairs):
    sources, outputs = zip(*pairs)
    texts = ScoredTexts(outputs, ["x"] * len(pairs), sources)
    return scoring.score(["term_fidelity"], texts, options)["term_fidelity"]


@pytest.mark.parametrize(
    ("source", "output", "translated", "number"),
    [
        ("the homepage", "La Page d'accueil", 1, 1),
        ("the homepage", "la page", 0, 1),
        ("homepage, homepage", "page d'accueil", 1, 2),
        ("homepage", "page d'accueil page d'accueil", 1, 1),
        ("homepage and start page", "page d'accueil et page d'accueil", 2, 2),
        ("art", "party arts", 0, 1),
        ("art", "art's l'art", 1, 1),
        ("ホームを", "ホームAを", 1, 1),
        ('<a title="homepage">', "x", 0, 0),
        ("no term", "x", 0, 0),
    ],
)
def test_counts(options, source, output, translated, number):
    result = measured(options, (source, output))
    assert result.details == {"terms": number, "translated": translated}
    assert result.value == (translated / number if number else None)


def test_it_is_summed_over_segments(options):
    result = measured(options, ("homepage", "page d'accueil"), ("art art art", "art"))
    assert result.value == 0.5 and "terms:4" in result.signature


def test_a_glossary_is_needed(tmp_path):
    with pytest.raises(ScoringError, match="needs a glossary: name it with decoding.glossary"):
        measured(ScoringOptions(), ("a", "b"))
    with pytest.raises(ScoringError, match="does not exist"):
        measured(ScoringOptions(glossary=str(tmp_path / "x.csv")), ("a", "b"))
