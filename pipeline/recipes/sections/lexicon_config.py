"""The section `lexicon`."""

import dataclasses

from pipeline.recipes.fields import choice, number


@dataclasses.dataclass(frozen=True)
class LexiconConfig:
    """The source of translations of words.

    They are learned from the training pairs, listed in `data.dictionary`, or both.
    """

    # Where translations come from: the training pairs, `data.dictionary`, or both (`hybrid`).
    kind: str = choice("none", "learned", "manual", "hybrid", default="none")
    # Passes of EM with IBM Model 1, which come first.
    model1_iterations: int = number(5, low=1)
    # Passes of EM with IBM Model 2 and a diagonal prior (Dyer et al. 2013), which follow.
    diagonal_iterations: int = number(5, low=0)
    # Which links between words are counted: those that both directions agree on (Liang et al.
    # 2006), or those of p(target | source) alone.
    symmetrization: str = choice("agreement", "none", default="agreement")
    # The most translations of a word that are kept.
    top_k: int = number(10, low=1)
    # The smallest probability of a translation that is kept.
    min_probability: float = number(0.01, low=0.0, high=1.0)
    # A lexicon that covers a smaller share of the training text's source words gives a warning.
    min_coverage: float = number(0.2, low=0.0, high=1.0)
