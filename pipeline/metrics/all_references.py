"""BLEU where the same source stands in several pairs with different targets."""

import dataclasses
from collections.abc import Sequence

from pipeline.metrics import scoring
from pipeline.metrics.base import MetricResult
from pipeline.metrics.scored_texts import ScoredTexts
from pipeline.metrics.scoring_options import ScoringOptions

#: Its name, and that of BLEU, with which it is measured.
NAME = "bleu_all_references"
METRIC = "bleu"


def score(
    metrics: Sequence[str], systems: Sequence[ScoredTexts], options: ScoringOptions
) -> tuple[list[MetricResult], float | None] | None:
    """Measures BLEU with one segment for each source, and the targets of all its pairs.

    An n-gram counts as right if any of these references has it. Scripts for question generation
    (Du et al. 2017) and for captions measure so.

    Args:
        metrics: those that are measured; without BLEU there is nothing to do.
        systems: the outputs of one system or two for the same pairs. Only the source's text may
            decide an output: there are no tags beside it.
        options: how outputs are scored.

    Returns:
        (a result for each system, the p-value of the first against the second or None); None where
        no source has two different targets.
    """
    if METRIC not in metrics or systems[0].sources is None:
        return None
    by_source = [texts.one_per_source() for texts in systems]
    if all(len(set(references)) == 1 for references in by_source[0].references):
        return None
    p_value = None
    if len(by_source) == 2:
        first, second = by_source
        *measured, compared = scoring.score_pair([METRIC], first, second, options)
        p_value = compared[METRIC].p_value
    else:
        measured = [scoring.score([METRIC], by_source[0], options)]
    return [dataclasses.replace(of_one[METRIC], name=NAME) for of_one in measured], p_value
