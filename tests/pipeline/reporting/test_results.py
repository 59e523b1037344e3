"""What a run says of its models beside the metrics of the registry."""

import pytest

from pipeline.metrics.scored_texts import ScoredTexts
from pipeline.recipes.loading import load_recipe
from pipeline.reporting import attention, report, results


def answer(*rows):
    return {"tokens": ["x"] * len(rows), "attention": list(rows)}


def test_attention_entropy_is_a_mean_over_tokens_in_bits():
    explained = [answer([1.0, 0, 0, 0], [0.25] * 4), answer([0.5, 0.5])]
    (found,) = attention.attention_entropy(explained).values()
    assert found["value"] == pytest.approx((0 + 2 + 1) / 3)
    assert found["details"] == {"tokens": 3, "texts": 2}


def test_attention_that_a_gate_made_smaller_counts_as_a_distribution():
    (found,) = attention.attention_entropy([answer([0.1, 0.1], [0, 0])]).values()
    assert found["value"] == pytest.approx(1.0) and found["details"]["tokens"] == 1


@pytest.mark.parametrize("explained", [[], [answer()], [answer([], [])], [answer([0.0, 0.0])]])
def test_without_attention_there_is_no_entropy(explained):
    assert attention.attention_entropy(explained) == {}


def page_of(folder, sizes):
    systems = [
        {"name": f"run{size}", "parameters": size, "metrics": {"bleu": {"value": value}}}
        for size, value in sizes
    ]
    return report.write_report(folder, {"systems": systems}).read_text(encoding="utf-8")


def test_the_report_draws_parameters_against_quality(tmp_path):
    page = page_of(tmp_path, [(100_000, 20.0), (200_000, None), (400_000, 30.5), (1_600_000, 31.0)])
    part = page[page.index('id="size"') : page.index("</section>", page.index('id="size"'))]
    assert part.count('class="point"') == 3
    assert "run400000: 400,000, 30.5" in part and "<td>1,600,000</td>" in part


def test_two_systems_show_no_trend(tmp_path):
    assert 'id="size"' not in page_of(tmp_path, [(100_000, 20.0), (400_000, 30.5)])


def test_no_entropy_is_called_the_best(tmp_path):
    systems = [
        {
            "name": name,
            "metrics": {"bleu": {"value": value}, "attention_entropy": {"value": value / 10}},
        }
        for name, value in (("one", 20.0), ("other", 30.0))
    ]
    page = report.write_report(tmp_path, {"systems": systems}).read_text(encoding="utf-8")
    row = page[page.index("Attention entropy, bits") :]
    assert (
        "<b>30.00</b>" in page
        and "3.00" in row[: row.index("</tr>")]
        and "<b>" not in row[: row.index("</tr>")]
    )


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [([], True), (["data.source_features=['ner']", "data.tokenization=whitespace"], False)],
)
def test_a_source_with_two_targets_has_both_as_references(overrides, expected):
    recipe = load_recipe("question_generation", ["evaluation.bootstrap_samples=20", *overrides])
    sources, targets = (
        ["he was born in rome ."] * 2,
        ["where was he born ?", "who was born there ?"],
    )
    scored = [ScoredTexts([target] * 2, targets, sources, training_words={}) for target in targets]
    systems = [{}, {}]
    p_values = results._measure(recipe, systems, scored)
    assert ("bleu_all_references" in p_values) is expected
    assert all(("bleu_all_references" in system["metrics"]) is expected for system in systems)
    if expected:
        assert systems[0]["metrics"]["bleu_all_references"]["value"] == pytest.approx(100.0)
        assert systems[0]["metrics"]["bleu"]["value"] < 100.0
