"""Scoring outputs against references, and testing whether two systems differ.

Every metric (`pipeline.metrics`) is a sum of statistics over segments, and one value computed from
the sum. That one shape gives the score, its bootstrap interval (sums over resampled segments), the
paired tests of two systems (the same resamples for both, or segments swapped between them), and in
`pipeline.evaluation.tfma_metrics` a value that merges across Beam workers.

This module imports neither TensorFlow nor TFX: `verbatim score` starts at once.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.metrics import resampling
from pipeline.metrics.base import FloatArray, MetricResult, ScoringError
from pipeline.metrics.registry import create_metric
from pipeline.metrics.resampling import Comparison
from pipeline.metrics.scored_texts import ScoredTexts, Segment, as_tuple
from pipeline.metrics.scoring_options import DEFAULT_OPTIONS, ScoringOptions
from pipeline.metrics.segment_statistics import SegmentStatistics

DEFAULT_METRICS = ("bleu", "chrf")


def score(
    metric_names: str | Sequence[str],
    texts: ScoredTexts,
    options: ScoringOptions = DEFAULT_OPTIONS,
) -> dict[str, MetricResult]:
    """Scores outputs against references.

    Args:
        metric_names: names from `pipeline.metrics.registry.METRICS`, or one string with commas.
        texts: the outputs, with their references and sources.
        options: how they are scored.

    Returns:
        A dict from metric name to `MetricResult`, in the order asked for.

    Example:
        >>> from pipeline.metrics.scored_texts import ScoredTexts
        >>> from pipeline.metrics.scoring import score
        >>> texts = ScoredTexts(
        ...     hypotheses=["Ouvrir %(name)s", "Fermer"],
        ...     references=["Ouvrir %(name)s", "Fermer %(name)s"],
        ...     sources=["Open %(name)s", "Close %(name)s"],
        ... )
        >>> results = score("exact_match,placeholder_fidelity", texts)
        >>> {name: result.value for name, result in results.items()}
        {'exact_match': 0.5, 'placeholder_fidelity': 0.5}

    Raises:
        ScoringError: an unknown metric, lists of different lengths, no segments, or missing
            sources.
    """
    table = SegmentStatistics(metric_names, [texts], options)
    samples = options.bootstrap_samples
    resampled = table.resample(samples, options.seed)[0] if samples else {}
    return _results(table, 0, resampled, options)


def _results(
    table: SegmentStatistics,
    system: int,
    resampled: Mapping[str, FloatArray],
    options: ScoringOptions,
) -> dict[str, MetricResult]:
    """Returns a dict from metric name to the result of one system of a table, by its number."""
    results = {}
    is_usual = options.rare_words == "cut" or options.tokenization != "text"
    cut = "" if is_usual else f"|rare_words:{options.rare_words}"
    for name, metric in table.metrics.items():
        sums = table.sums(name, system)
        low, high = resampling.percentiles(resampled.get(name))
        results[name] = MetricResult(
            name=name,
            value=metric.value(sums),
            low=low,
            high=high,
            signature=metric.signature(
                options.bootstrap_samples, options.seed, table.reference_count
            )
            + (cut if metric.cuts_words else ""),
            details=metric.details(sums),
            unit=metric.unit,
            lower_is_better=metric.lower_is_better,
        )
    return results


def segment_values(
    metric_name: str, texts: ScoredTexts, options: ScoringOptions = DEFAULT_OPTIONS
) -> list[float | None]:
    """Returns the value of a metric on each segment alone, None where it is undefined.

    Args:
        metric_name: a single metric that reads neither sources nor training text.
        texts: the outputs and their references.
        options: how they are scored.

    Raises:
        ScoringError: there is no such metric.
    """
    metric = create_metric(metric_name, options)
    return [
        metric.value(
            metric.add(metric.zero(), metric.statistics(Segment(hypothesis, as_tuple(reference))))
        )
        for hypothesis, reference in zip(texts.hypotheses, texts.references, strict=True)
    ]


def paired_bootstrap(
    metric_names: str | Sequence[str],
    texts: ScoredTexts,
    baseline: ScoredTexts,
    options: ScoringOptions = DEFAULT_OPTIONS,
) -> dict[str, Comparison]:
    """Tests whether two systems differ by more than chance, on shared resamples (Koehn, 2004).

    For sacrebleu's metrics the p-value is that of `sacrebleu --paired-bs`, from the same resamples;
    ours sum statistics by a matrix product, so that 20,000 segments need some 200 MB instead of
    gigabytes. For the others it is the share of resampled differences, shifted to mean 0, that
    reach the observed one. Both are (c + 1) / (samples + 1), and 1 for two systems that do not
    differ at all.

    Args:
        metric_names: names from `pipeline.metrics.registry.METRICS`.
        texts: those of the system.
        baseline: those of the system to compare with: the same segments, with its outputs.
        options: how they are scored.

    Returns:
        A dict from metric name to `Comparison`.

    Raises:
        ScoringError: as in `score`.
    """
    return score_pair(metric_names, texts, baseline, options)[2]


def paired_randomisation(
    metric_names: str | Sequence[str],
    texts: ScoredTexts,
    baseline: ScoredTexts,
    options: ScoringOptions = DEFAULT_OPTIONS,
) -> dict[str, Comparison]:
    """Tests whether two systems differ by more than chance (Riezler and Maxwell, 2005).

    The test is approximate randomisation. If the systems do not differ, any segment's two outputs
    may as well be swapped. A trial swaps each segment's statistics with probability 1/2 and
    measures the two mixtures; with c trials whose difference is larger than the observed one,

        p = (c + 1) / (trials + 1)

    and 1 for two systems that do not differ at all. For sacrebleu's metrics it is the p-value of
    `sacrebleu --paired-ar`, from the same trials; for the others, shares of few equal steps, a
    difference as large counts too.

    Args:
        metric_names: names from `pipeline.metrics.registry.METRICS`.
        texts: those of the system.
        baseline: those of the system to compare with: the same segments, with its outputs.
        options: how they are scored; without bootstrap samples the difference has no interval.

    Returns:
        A dict from metric name to `Comparison`.

    Raises:
        ScoringError: as in `score`.
    """
    return score_pair(metric_names, texts, baseline, options, test="randomisation")[2]


def score_pair(
    metric_names: str | Sequence[str],
    texts: ScoredTexts,
    baseline: ScoredTexts,
    options: ScoringOptions = DEFAULT_OPTIONS,
    test: str = "bootstrap",
) -> tuple[dict[str, MetricResult], dict[str, MetricResult], dict[str, Comparison]]:
    """Scores a system and a baseline and tests their difference, reading the texts once.

    Args:
        metric_names: names from `pipeline.metrics.registry.METRICS`.
        texts: those of the system.
        baseline: those of the system to compare with: the same segments, with its outputs.
        options: how they are scored.
        test: `bootstrap` as in `paired_bootstrap`, or `randomisation` as in `paired_randomisation`.

    Returns:
        (results of the system, results of the baseline, comparisons): what `score`, `score` and the
        test would return.

    Raises:
        ScoringError: as in `score`, and too few samples or trials.
    """
    randomise = test == "randomisation"
    samples = options.bootstrap_samples
    if randomise and options.trials < 1:
        raise ScoringError(
            f"Approximate randomisation needs at least 1 trial; got {options.trials}."
        )
    if not randomise and samples < 1:
        raise ScoringError(f"A paired bootstrap needs at least 1 resample; got {samples}.")
    table = SegmentStatistics(metric_names, [texts, baseline], options)
    resampled = table.resample(samples, options.seed)
    swapped = table.swap(options.trials, options.seed) if randomise else None
    ours, theirs = (
        _results(table, system, resampled[system] if samples else {}, options)
        for system in range(2)
    )
    return ours, theirs, resampling.compare(table, resampled, options, swapped)


def results_to_dict(
    results: Mapping[str, MetricResult] | Mapping[str, Comparison],
) -> dict[str, dict[str, Any]]:
    """Returns what `score` or a paired test returned as plain dicts, which JSON can hold."""
    return {name: result.to_dict() for name, result in results.items()}
