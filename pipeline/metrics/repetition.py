"""The share of outputs that repeat themselves."""

from collections.abc import Sequence

from pipeline.metrics.base import Row, Share
from pipeline.metrics.scored_texts import Segment
from pipeline.metrics.scoring_options import ScoringOptions

_LONGEST_REPEATED_RUN = 4


class RepetitionRate(Share):
    """Share of the outputs that repeat a run of one to four words at once, and no reference does.

    Coverage is meant to prevent this repetition of attention models (See et al., 2017).
    """

    cuts_words = True
    counted = ("n", "repeating")
    lower_is_better = True

    def __init__(self, options: ScoringOptions) -> None:
        self._words = options.tokenizer.words

    def statistics(self, segment: Segment) -> Row:
        excused = any(_has_repeated_run(self._words(reference)) for reference in segment.references)
        return [_has_repeated_run(self._words(segment.hypothesis)) and not excused, 1]

    def own_signature(self) -> str:
        return f"run:1-{_LONGEST_REPEATED_RUN} words"


def _has_repeated_run(tokens: Sequence[str]) -> bool:
    for size in range(1, _LONGEST_REPEATED_RUN + 1):
        for begin in range(len(tokens) - 2 * size + 1):
            if tokens[begin : begin + size] == tokens[begin + size : begin + 2 * size]:
                return True
    return False
