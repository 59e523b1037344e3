"""Tags as well nested as the source's, and directives in its order, on hand-judged cases."""

import pytest

from pipeline.metrics import scoring
from pipeline.metrics.scored_texts import ScoredTexts

CASES = [
    ("<b>a</b> <i>x</i>", "<i>y</i> <b>c</b>", True),
    ("<b>a</b> <i>x</i>", "</b>a<b></i> x<i>", False),
    ("<b>a</b> <i>x</i>", "<b><i>x</i></b> y", True),
    ("<b>a</b> <i>x</i>", "<b><i>x</b></i> y", False),
    ("<b>a</b> x", "<b></b> a x", False),
    ("<b>a</b> x", "<b> </b> a x", False),
    ("<b>a</b> x", "<b>%s</b>", True),
    ("<b></b> x", "x <b></b>", True),
    ("<b></b> <b>x</b>", "<b>x</b> <b></b>", True),
    ("<b></b> <b>x</b>", "x <b></b> <b></b>", False),
    ('<a href="x"><img src="y"></a> z', 'z <a href="x"></a><img src="y">', False),
    ("<b>a</b> x", "a x", True),
    ("<b>a</b> x", "<b>a x", False),
    ("<b>a <br> x</b>", "<br> <b>x</b>", True),
    ("<p>a <b>x</b>", "<p>c <b>d</b>", True),
    ("<p>a <b>x</b>", "<b>d</b> <p>c", False),
    ("<p>a <b>x</b>", "<p>c <b></b>", False),
    ("{% if a %}x{% endif %} <b>y</b>", "{% if a %}z{% endif %} <b>y</b>", True),
    ("{% if a %}x{% endif %} <b>y</b>", "<b>y</b> {% if a %}z{% endif %}", False),
]


@pytest.mark.parametrize("source, output, is_valid", CASES)
def test_tag_validity(source, output, is_valid):
    result = scoring.score(["tag_validity"], ScoredTexts([output], [output], [source]))
    assert result["tag_validity"].value == is_valid
    assert result["tag_validity"].details["broken"] == (not is_valid)


def test_texts_without_tags_are_not_counted():
    sources, outputs = ["a", "<b>a</b>", "x"], ["b", "<b>c</b>", "<b>y"]
    result = scoring.score(["tag_validity"], ScoredTexts(outputs, outputs, sources))["tag_validity"]
    assert (result.value, result.details["n"]) == (1.0, 1)
    assert result.details["all_segments"] == pytest.approx(2 / 3)
    alone = scoring.score(["tag_validity"], ScoredTexts(["a"], ["a"], ["a"]))["tag_validity"]
    assert alone.value is None


@pytest.mark.parametrize(
    "source, output, placeholders, protected",
    [
        ("Copy %s to %d items?", "%s vers %d ?", 1, 1),
        ("Copy %s to %d items?", "%d fois %s ?", 0, 0),
        ("%1$s to %2$d", "%2$d fois %1$s", 1, 1),
        ("%(a)s of {b} {}", "{} {b} %(a)s", 1, 1),
        ("{} of {:.2f}", "{:.2f} de {}", 0, 0),
        ("%s <b>a</b>", "<b></b> %s", 1, 0),
        ("%s <b>a</b>", "<b>%s</b> a", 1, 1),
    ],
)
def test_fidelity_counts_order(source, output, placeholders, protected):
    names = ["placeholder_fidelity", "protected_fidelity"]
    result = scoring.score(names, ScoredTexts([output], [output], [source]))
    assert [result[name].value for name in names] == [placeholders, protected]
