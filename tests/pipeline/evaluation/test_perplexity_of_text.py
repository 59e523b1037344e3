"""Sentences on which two language models differ."""

import math

import pytest

from pipeline.evaluation import perplexity_of_text
from pipeline.reporting import report

WORDS = ["a", "b", "\n", "c", "\n", "d", "e"]
OURS = [0.5, 0.5, 0.5, 0.2, 0.5, 0.9, 0.1]
OTHERS = [0.5, 0.1, 0.5, 0.8, 0.5, 0.3, 0.1]


def found(count=10):
    systems = [{"log_probability": [math.log(p) for p in given]} for given in (OURS, OTHERS)]
    return perplexity_of_text.extremes(WORDS, systems, count)


def test_sentences_where_one_model_gains_most():
    extremes = found()
    assert [sentence["words"] for sentence in extremes["wins"]] == [["a", "b", "\n"], ["d", "e"]]
    assert [sentence["words"] for sentence in extremes["losses"]] == [["c", "\n"]]
    gains = [sentence["gain"] for part in extremes.values() for sentence in part]
    assert gains == pytest.approx([math.log(5), math.log(3), math.log(1 / 4)])
    assert extremes["wins"][1]["probabilities"] == [
        pytest.approx([0.9, 0.3]),
        pytest.approx([0.1, 0.1]),
    ]
    assert [len(part) for part in found(1).values()] == [1, 1]


def test_models_that_are_alike_win_and_lose_nothing():
    systems = [{"log_probability": [-1.0] * len(WORDS)}] * 2
    assert perplexity_of_text.extremes(WORDS, systems, 3) == {"wins": [], "losses": []}


def test_the_report_marks_the_words_that_tell_them_apart(tmp_path):
    systems = [
        {"name": name, "metrics": {}, "curves": []} for name in ("pointer_sentinel", "softmax")
    ]
    path = report.write_report(tmp_path, {"systems": systems, "sentences": found()})
    page = path.read_text(encoding="utf-8")
    part = page[page.index('id="wins"') : page.index("</section>", page.index('id="wins"'))]
    assert part.count("<mark") == 3 and part.index("+1.6") < part.index("+1.1") < part.index("-1.4")
    assert (
        'data-from="“b”: probability 0.5 against 0.1">▲b' in part and "▼c" in part and "▲d" in part
    )
    assert "¶" in part and 'href="#wins"' in page
