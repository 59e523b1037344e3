"""A test of two systems that were each trained with several seeds.

Two things vary: the sentences of the test set, and the seed of a training. Both are resampled, so
that neither a lucky seed nor a lucky test set makes a difference.
"""

import statistics
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pipeline.metrics import resampling, scoring
from pipeline.metrics.base import FloatArray, ScoringError
from pipeline.metrics.resampling import Comparison
from pipeline.metrics.scored_texts import ScoredTexts
from pipeline.metrics.scoring_options import DEFAULT_OPTIONS, ScoringOptions
from pipeline.metrics.segment_statistics import SegmentStatistics


def compare_over_seeds(
    metric_names: str | Sequence[str],
    ours: Sequence[ScoredTexts],
    theirs: Sequence[ScoredTexts],
    options: ScoringOptions = DEFAULT_OPTIONS,
) -> dict[str, Comparison]:
    """Tests the difference between the means of two systems over their seeds.

    A resample draws sentences, the same for all trainings, and for each system seeds. A few seeds
    underestimate their variance, so a draw's deviation from the system's mean is multiplied by
    sqrt(n / (n - 1)). A system with one seed adds no variance of its own, because it is unknown.
    With one seed each, this is `scoring.paired_bootstrap`.

    Args:
        metric_names: names out of `pipeline.metrics.registry.METRICS`.
        ours, theirs: the texts of each training; all have the same references and sources.
        options: how they are scored.

    Returns:
        A dict from metric name to `Comparison`; its difference is that of the means.

    Raises:
        ScoringError: as in `scoring.paired_bootstrap`, or a system without a training.
    """
    if not ours or not theirs:
        raise ScoringError("Each system needs the texts of at least one training.")
    if len(ours) == len(theirs) == 1:
        return scoring.paired_bootstrap(metric_names, ours[0], theirs[0], options)
    samples = options.bootstrap_samples
    if samples < 1:
        raise ScoringError(f"A paired bootstrap needs at least 1 resample; got {samples}.")
    table = SegmentStatistics(metric_names, [*ours, *theirs], options)
    resampled = table.resample(samples, options.seed)
    groups = (range(len(ours)), range(len(ours), len(ours) + len(theirs)))
    generator = np.random.default_rng(options.seed)
    draws = [generator.integers(len(group), size=(samples, len(group))) for group in groups]
    results = {}
    for name, metric in table.metrics.items():
        mean, other = (
            _mean([metric.value(table.sums(name, system)) for system in group]) for group in groups
        )
        difference = None if mean is None or other is None else mean - other
        drawn = [
            _drawn_means(np.array([resampled[system][name] for system in group]), draw)
            for group, draw in zip(groups, draws)
        ]
        differences = drawn[0] - drawn[1]
        low, high = resampling.percentiles(differences)
        results[name] = Comparison(
            name=name,
            difference=difference,
            low=low,
            high=high,
            p_value=resampling.shifted_p_value(difference, differences),
            signature=(
                f"test:bootstrap over seeds and segments|bs:{samples}|seed:{options.seed}|"
                f"seeds:{len(ours)}+{len(theirs)}"
            ),
        )
    return results


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if len(known) == len(values) else None


def _drawn_means(values: FloatArray, draws: npt.NDArray[np.int64]) -> FloatArray:
    """Returns for each resample the mean over the seeds that it draws.

    Args:
        values: `[seeds, samples]`, of each training on each resampled test set.
        draws: int `[samples, seeds]`, which trainings each resample takes.
    """
    seeds = len(values)
    means: FloatArray = values.mean(axis=0)
    if seeds == 1:
        return means
    drawn: FloatArray = np.take_along_axis(values.T, draws, axis=1).mean(axis=1)
    spread: FloatArray = means + np.sqrt(seeds / (seeds - 1)) * (drawn - means)
    return spread
