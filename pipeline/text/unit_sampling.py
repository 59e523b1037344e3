"""Words cut into other units than the best ones, drawn by the unigram model (Kudo 2018).

With P(x | X) the model's probability of a cut x of the word X, one of the n best cuts is drawn by

    p(x) = P(x | X)^alpha / sum over the n best of P(x' | X)^alpha              (section 3.3)

`units.SegmentingTokenizer` takes the best cut, as does this module without a draw.

References:
    Kudo 2018, "Subword Regularization", https://arxiv.org/abs/1804.10959
"""

import bisect
import functools
import itertools
import math
from collections.abc import Callable, Collection, Iterable

from pipeline.text import tokenization, units, white_space
from pipeline.text.placeholders import ProtectedSyntax

# Words whose cuts are kept in memory.
_WORDS_IN_MEMORY = 1 << 17

#: The units of a word.
Cut = tuple[str, ...]


class UnitSampler:
    """Cuts the words of a side into units, drawn from the best cuts of each word.

    Args:
        model: the bytes of a sentencepiece model of units `subwords`.
        syntax: what is protected, hence never cut.
        vocabulary: the side's units; no cut with another unit is drawn.
        alpha: the smaller, the more even are the draws.
        best: how many cuts of a word are drawn from; 1 takes the best one.
    """

    def __init__(
        self,
        model: bytes,
        syntax: ProtectedSyntax,
        vocabulary: Collection[str],
        alpha: float = 0.2,
        best: int = 64,
    ) -> None:
        import sentencepiece

        self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        self._syntax = syntax
        self._vocabulary = frozenset(vocabulary)
        self._alpha = alpha
        self._best = best
        # Bound to this object, so that the memory ends with it.
        self.cuts: Callable[[str], tuple[list[Cut], list[float]]] = functools.lru_cache(
            _WORDS_IN_MEMORY
        )(self._cuts)

    def draw(self, words: Iterable[str], uniforms: Iterable[float]) -> list[Cut]:
        """Returns a cut of each word.

        Args:
            words: as the word tokenizer leaves them, with joiners.
            uniforms: a number from 0 to below 1 for each, which alone decides its cut.
        """
        drawn = []
        for word, uniform in zip(words, uniforms, strict=True):
            cuts, limits = self.cuts(word)
            drawn.append(cuts[bisect.bisect_right(limits, uniform, hi=len(cuts) - 1)])
        return drawn

    def _cuts(self, word: str) -> tuple[list[Cut], list[float]]:
        """Returns the cuts of a word, the best first, and the sums of their chances so far."""
        joiner = tokenization.JOINER
        before, bare, behind = units.split_marks(word)
        if word == joiner or self._syntax.is_protected(word) or white_space.is_white_space(word):
            return [(word,)], [1.0]
        found = self._processor.nbest_encode(bare, nbest_size=self._best, out_type="proto").nbests
        cuts: list[Cut] = []
        scores: list[float] = []
        for number, candidate in enumerate(found):
            # What sentencepiece cuts into nothing stays as it is.
            pieces = [piece.piece for piece in candidate.pieces] or [bare]
            first, *others = pieces
            cut = [before + first, *(joiner + piece for piece in others)]
            cut[-1] += behind
            if number == 0 or self._vocabulary.issuperset(cut):
                cuts.append(tuple(cut))
                scores.append(self._alpha * candidate.score)
        weights = [math.exp(score - max(scores)) for score in scores]
        return cuts, [part / sum(weights) for part in itertools.accumulate(weights)]
