"""Whether a training had converged: a rule for all, from the losses on the eval split.

A training has converged if its last evaluations no longer improved the loss: the best of the last
`LAST` evaluations is not lower than the best before them by `MARGIN` of it. A training that has
fewer than twice as many evaluations has not been shown to converge, and nobody can tell.
"""

from collections.abc import Sequence

#: How many evaluations count as the last: a fifth of all, but at least this many.
LAST = 3
#: A smaller gain is none: half a percent.
MARGIN = 0.005


def has_converged(losses: Sequence[float]) -> bool | None:
    """Returns whether a training had converged, by the losses of its evaluations in order.

    None where there are too few.
    """
    last = max(LAST, len(losses) // 5)
    if len(losses) < 2 * last:
        return None
    before, after = min(losses[:-last]), min(losses[-last:])
    return after >= before - MARGIN * abs(before)
