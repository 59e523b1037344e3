"""How often the pairs of several corpora are read in an epoch."""

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pipeline.common import progress
from pipeline.recipes.recipe import Recipe
from pipeline.training.trainer_outputs import CorpusFacts
from pipeline.training.transformed_files import TrainingDataError


@dataclasses.dataclass(frozen=True)
class Mixture:
    """The corpora of a training and their weights.

    With n_c pairs and weight w_c of corpus c, and temperature T, an epoch draws

        draws_c = N (n_c w_c)^(1/T) / sum_d (n_d w_d)^(1/T)        N = sum_c n_c w_c

    pairs of corpus c. With T = 1 it reads each of them w_c times.

    Attributes:
        corpora: their names, patterns of files.
        weights: one for each.
        temperature: T.

    References:
        Arivazhagan et al. 2019, "Massively Multilingual Neural Machine Translation in the Wild",
        https://arxiv.org/abs/1907.05019 (section 4.2)
    """

    corpora: Sequence[str]
    weights: Sequence[float]
    temperature: float = 1.0

    @classmethod
    def of(cls, recipe: Recipe) -> "Mixture | None":
        """Returns that of a recipe, None without corpora."""
        corpora, training = recipe.data.corpora, recipe.training
        if not corpora:
            return None
        weights = training.corpus_weights or (1.0,) * len(corpora)
        return cls(corpora, weights, training.corpus_temperature)

    def reads(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Returns how often an epoch reads each pair, corpus by corpus.

        Args:
            counts: how many pairs each corpus has.

        Raises:
            TrainingDataError: a corpus that is to be read has none.
        """
        weighted = counts * np.asarray(self.weights, "float64")
        for corpus, weight, count in zip(self.corpora, self.weights, counts.tolist()):
            if weight and not count:
                raise TrainingDataError(
                    f"The corpus '{corpus}' of data.corpora has no training pair that fits "
                    "training.bucket_lengths: give it pairs, or set its weight in "
                    "training.corpus_weights to 0."
                )
        if self.temperature == 1:
            return np.asarray(self.weights, "float64")
        flattened = weighted ** (1 / self.temperature)
        draws = weighted.sum() * flattened / flattened.sum()
        return draws / np.maximum(counts, 1)

    def facts(self, counts: NDArray[np.int64]) -> dict[str, CorpusFacts]:
        """Returns how often an epoch reads each corpus, and says so."""
        facts: dict[str, CorpusFacts] = {
            corpus: {"pairs": count, "reads": reads}
            for corpus, reads, count in zip(
                self.corpora, self.reads(counts).tolist(), counts.tolist()
            )
        }
        parts = (
            f"'{corpus}' {own['reads']:.3g} times its {own['pairs']} pairs"
            for corpus, own in facts.items()
        )
        progress.say(f"An epoch reads {', '.join(parts)}.")
        return facts


@dataclasses.dataclass(frozen=True, eq=False)
class Draws:
    """The pairs that each epoch draws, as many of each kind in each epoch.

    A kind is a corpus and a bucket of lengths, so all epochs have as many batches. What a weight
    leaves of a kind for an epoch goes round all of its pairs: one half reads each pair in every
    second epoch.

    Attributes:
        kinds: the pairs of each kind, in a drawn order, and how many an epoch draws of it.
    """

    kinds: Sequence[tuple[NDArray[np.int64], int]]

    @classmethod
    def of(
        cls,
        pairs: NDArray[np.int64],
        kinds: NDArray[np.int64],
        reads: NDArray[np.float64],
        seed: int,
    ) -> "Draws":
        """Returns the draws of pairs.

        Args:
            pairs: their numbers.
            kinds: the kind of each of them.
            reads: how often the pairs of each kind are read in an epoch. Of a kind that is read at
                all, an epoch has a pair or more.
            seed: of the order in which an epoch's pairs follow those of the epoch before.
        """
        order = np.random.default_rng(seed % (1 << 63)).permutation(len(pairs))
        pairs, kinds = pairs[order], kinds[order]
        made = []
        for kind in np.flatnonzero(np.bincount(kinds, minlength=len(reads))).tolist():
            own = pairs[kinds == kind]
            if reads[kind]:
                made.append((own, max(1, round(reads[kind] * len(own)))))
        return cls(made)

    def epoch(self, number: int) -> NDArray[np.int64]:
        """Returns the numbers of the pairs of an epoch, a pair that is read twice two times."""
        parts = []
        for pairs, count in self.kinds:
            whole, rest = divmod(count, len(pairs))
            ring = (number * rest + np.arange(rest)) % len(pairs)
            parts += [np.tile(pairs, whole), pairs[ring]]
        return np.concatenate(parts)
