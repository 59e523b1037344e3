"""The charts: a line for each system, on axes of round numbers."""

import pytest

from pipeline.reporting import breakdowns, charts, page


def test_quality_by_frequency_and_length_has_a_line_for_each_system(facts):
    frequency, length = page.breakdown_figures(facts["systems"])
    assert [frequency.title, length.title] == ["By word frequency", "By length"]
    chart = frequency.chart
    assert [series.name for series in chart.series] == ["pointer_generator", "softmax"]
    # Only the ranges that a reference word falls into, and a point for each that has a value.
    assert [tick.label for tick in chart.x_ticks] == ["0", "1", "3", "10-99", "1000+"]
    assert [row[0] for row in chart.rows] == ["0", "1", "3", "10-99", "1000+"]
    for series in chart.series:
        assert len(series.points) == 5
        assert all(
            chart.frame.left < point.x < chart.frame.plot_right
            and chart.frame.top <= point.y <= chart.frame.plot_bottom
            for point in series.points
        )
    by_frequency = {part["seen"]: part["f1"] for part in facts["systems"][1]["by_frequency"]}
    assert chart.rows[1][3] == f"{by_frequency['1']:.4g}"
    assert charts.category_chart([{"name": "x"}], breakdowns.BLEU_BY_LENGTH) is None


@pytest.mark.parametrize(
    "low, high", [(0.0, 1.0), (1.2, 6.7), (3.0, 3.0), (0.001, 0.0042), (0.0, 99999.0)]
)
def test_ticks_enclose_the_values(low, high):
    ticks = charts.ticks(low, high, 5)
    assert ticks[0] <= low and ticks[-1] >= high - 1e-9
    assert 2 <= len(ticks) <= 8
