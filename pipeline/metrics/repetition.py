"""How often outputs stutter."""

from pipeline.metrics.base import DEFAULT_SEED, Share, join_signature
from pipeline.text.tokenization import Tokenizer

_LONGEST_REPEATED_RUN = 4


class RepetitionRate(Share):
    """Share of the outputs that say a run of one to four words twice in a row, where no reference
    does.

    It is the stutter of attention models that coverage is to cure (See et al., 2017).
    """

    counted = ("n", "repeating")
    lower_is_better = True

    def __init__(self, tokenization="text", **unused):
        self._words = Tokenizer(tokenization).words

    def statistics(self, hypothesis, references, source):
        excused = any(_has_repeated_run(self._words(reference)) for reference in references)
        return [_has_repeated_run(self._words(hypothesis)) and not excused, 1]

    def signature(self, samples=0, seed=DEFAULT_SEED, references=1):
        return join_signature(f"run:1-{_LONGEST_REPEATED_RUN} words", samples, seed, references)


def _has_repeated_run(tokens):
    for size in range(1, _LONGEST_REPEATED_RUN + 1):
        for begin in range(len(tokens) - 2 * size + 1):
            if tokens[begin : begin + size] == tokens[begin + size : begin + 2 * size]:
                return True
    return False
