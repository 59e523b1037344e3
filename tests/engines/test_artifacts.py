"""What of two runs counts as written alike."""

import pytest

from tests.engines import artifacts

METRICS = """name: "perplexity"
double_value {{
  value: {value}
}}"""


def of_metrics(value: str) -> dict[str, str]:
    return {"Evaluator/evaluation/metrics": METRICS.format(value=value), "model": "a5f0"}


@pytest.mark.parametrize(
    "value",
    [
        "8.073885567718092",
        # The same run in memory (above) and on Spark; to seven digits they differ.
        "8.073885464364304",
    ],
)
def test_metrics_may_differ_by_rounding(value: str) -> None:
    assert artifacts.differing(of_metrics("8.073885567718092"), of_metrics(value)) == []


@pytest.mark.parametrize("value", ["8.07390", "-8.073885567718092", "nan", "1e-9"])
def test_other_metrics_differ(value: str) -> None:
    found = artifacts.differing(of_metrics("8.073885567718092"), of_metrics(value))
    assert found == ["Evaluator/evaluation/metrics"]


def test_undefined_metrics_are_alike() -> None:
    assert artifacts.differing(of_metrics("nan"), of_metrics("nan")) == []


def test_all_else_is_equal_or_differs() -> None:
    expected = {"examples": "1234", "only here": "1", "model": "a5f0"}
    found = {"examples": "1235", "only there": "1", "model": "a5f0"}
    assert artifacts.differing(expected, found) == ["examples", "only here", "only there"]
