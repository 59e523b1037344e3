"""Intervals and p-values of resampled test sets, and of segments swapped between two systems."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pipeline.metrics import registry
from pipeline.metrics.base import FloatArray, MetricResult
from pipeline.metrics.scoring_options import ScoringOptions
from pipeline.metrics.segment_statistics import SegmentStatistics

#: A difference with a smaller p-value is called better or worse.
SIGNIFICANT = 0.05


@dataclasses.dataclass(frozen=True)
class Comparison:
    """A paired test of a system against a baseline on one metric.

    Attributes:
        name: the metric's name.
        difference: system minus baseline; None where either is undefined.
        low: 2.5th percentile of the difference over resampled test sets.
        high: 97.5th percentile.
        p_value: how often chance alone would give a difference this large; two-sided.
        signature: test, number of resamples or trials, and seed.
    """

    name: str
    difference: float | None
    low: float | None
    high: float | None
    p_value: float | None
    signature: str

    def to_dict(self) -> dict[str, Any]:
        """Returns the comparison as a dict that `json.dumps` takes."""
        return dataclasses.asdict(self)


def compare(
    table: SegmentStatistics,
    resampled: Sequence[Mapping[str, FloatArray]],
    options: ScoringOptions,
    swapped: Mapping[str, FloatArray] | None = None,
) -> dict[str, Comparison]:
    """Tests the difference of two systems on each metric.

    Args:
        table: the statistics of system and baseline.
        resampled: what its `resample` returned.
        options: whose samples and seed `resample` took.
        swapped: what its `swap` returned, for a test by randomisation; without it the test is by
            bootstrap.

    Returns:
        A dict from metric name to `Comparison`.
    """
    samples = options.bootstrap_samples
    results = {}
    for name, metric in table.metrics.items():
        value, other = (metric.value(table.sums(name, system)) for system in range(2))
        difference = None if value is None or other is None else value - other
        differences = resampled[0][name] - resampled[1][name]
        low, high = percentiles(differences)
        if swapped is None:
            kind = (
                "sacrebleu paired-bs" if metric.uses_sacrebleu_test else "shifted paired bootstrap"
            )
            test = f"{kind}|bs:{samples}"
            sizes = _shifted_sizes(differences, metric.uses_sacrebleu_test)
        else:
            kind = (
                "sacrebleu paired-ar"
                if metric.uses_sacrebleu_test
                else "paired approximate randomisation"
            )
            test = f"{kind}|ar:{len(swapped[name])}|bs:{samples}"
            sizes = np.abs(swapped[name])
        results[name] = Comparison(
            name=name,
            difference=difference,
            low=low,
            high=high,
            p_value=_p_value(difference, sizes, metric.uses_sacrebleu_test),
            signature=f"test:{test}|seed:{options.seed}",
        )
    return results


def verdict(
    result: MetricResult | None, baseline: MetricResult | None, p_value: float | None
) -> str:
    """Returns `better` or `worse` if a system clearly differs from a baseline, else nothing.

    It does if the p-value is below `SIGNIFICANT`. A neutral metric (`registry.NEUTRAL`) is neither.

    Args:
        result, baseline: those of the two on a metric; None where one was not measured.
        p_value: of their difference; None where it was not tested.
    """
    if result is None or baseline is None or p_value is None or p_value >= SIGNIFICANT:
        return ""
    if (
        result.value is None
        or baseline.value is None
        or result.value == baseline.value
        or result.name in registry.NEUTRAL
    ):
        return ""
    return "better" if (result.value > baseline.value) != result.lower_is_better else "worse"


def percentiles(values: FloatArray | None) -> tuple[float | None, float | None]:
    """Returns the ends of the 95 % interval of values, None twice if there is no value."""
    if values is None or np.isnan(values).all():
        return None, None
    low, high = np.nanpercentile(values, [2.5, 97.5])
    return float(low), float(high)


def shifted_p_value(difference: float | None, differences: FloatArray) -> float | None:
    """Returns the p-value of a difference, by resampled differences shifted to a mean of 0."""
    return _p_value(difference, _shifted_sizes(differences, False), False)


def _shifted_sizes(differences: FloatArray, uses_sacrebleu_test: bool) -> FloatArray:
    """Returns the sizes of resampled differences, shifted as if the systems did not differ.

    Undefined ones are left out.
    """
    differences = differences[~np.isnan(differences)]
    if not len(differences):
        return differences
    sizes: FloatArray = (
        np.abs(differences) - np.abs(differences).mean()
        if uses_sacrebleu_test
        else np.abs(differences - differences.mean())
    )
    return sizes


def _p_value(
    difference: float | None, sizes: FloatArray, uses_sacrebleu_test: bool
) -> float | None:
    """Returns (c + 1) / (n + 1): c of the n sizes are as large as the observed difference.

    For sacrebleu's metrics they are larger.
    """
    sizes = sizes[~np.isnan(sizes)]
    if difference is None or not len(sizes):
        return None
    if difference == 0:
        return 1.0  # sacrebleu's formula would give its smallest p-value to two equal systems
    if uses_sacrebleu_test:
        extreme = np.count_nonzero(sizes > abs(difference))
    else:
        # The tolerance keeps ties of shares, which are sums of a few equal steps, ties.
        extreme = np.count_nonzero(sizes >= abs(difference) - 1e-12)
    return float((extreme + 1) / (len(sizes) + 1))
