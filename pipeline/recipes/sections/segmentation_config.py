"""The section `segmentation`."""

import dataclasses

from pipeline.recipes.fields import choice, number


@dataclasses.dataclass(frozen=True)
class SegmentationConfig:
    """How `model.encoder = "segmenting"` finds words among characters.

    It learns by REINFORCE (Arthur 2018, chapter 5). The reward of a sampled segmentation is the
    target's log-likelihood per token, log p(E|F) / |E|.
    """

    # Lambda, the expected number of characters of a word, for every key that uses the prior.
    mean_length: float = number(2.0, low=1.0)
    # What a word's vector is composed of: the states of its characters, or their embeddings.
    composes: str = choice("states", "embeddings", default="states")
    # Not in Arthur 2018; makes learning much easier. A word's composed vector and its last
    # character's state are added to the word's state, all normalised.
    residual: bool = False
    # Not in Arthur 2018: the number of vectors of whole words. A hash of a word chooses its vector,
    # which is added; 0 adds none.
    word_buckets: int = number(0, low=0, high=2_000_000)
    # Not in Arthur 2018: REINFORCE does not change the states that decisions are read from.
    detached: bool = False
    # The weight of the REINFORCE loss.
    reinforce_weight: float = number(1.0, low=0.0)
    # A reward is compared with a linear regression on the encoder's states, or with the mean reward
    # of the sentence's other samples.
    baseline: str = choice("linear", "samples", default="linear")
    # The number of segmentations sampled for a sentence in each update.
    samples: int = number(1, low=1, high=16)
    # The weight of the log-probability of the number of words, which is added to the reward.
    length_prior_weight: float = number(0.0, low=0.0)
    # The weight of a bonus for words that are new to the training; it fades as a word recurs.
    novelty_weight: float = number(0.0, low=0.0)
    # Normalises rewards to mean 0 and variance 1 in each update.
    normalize_rewards: bool = False
    # The weight of the decisions' entropy, which is added to the objective.
    confidence_penalty: float = number(0.0, low=0.0)
    # The weight of the penalty on words that do not stand for exactly one target word.
    fertility_weight: float = number(0.0, low=0.0)
    # The share of sentences in which word lengths are drawn from the prior.
    epsilon: float = number(0.0, low=0.0, high=1.0)
    # In the first updates the policy learns to imitate another segmentation. `prior` draws lengths
    # from the prior. `multigrams` are words of a multigram model, which is learned from the
    # training's source texts. Two are written by hand: `script` takes runs of one script (kanji,
    # hiragana, katakana, letters, digits) as words; `kana` does the same, but takes each hiragana
    # as a word.
    warm_up: str = choice("none", "prior", "script", "kana", "multigrams", default="none")
    # The number of updates of the warm-up.
    warm_up_updates: int = number(500, low=1)
    # Above 0: this many updates train only the translation, the same number then train only the
    # segmentation, and so on.
    alternate_updates: int = number(0, low=0)
    # The number of segmentations that a served model decodes: the likeliest and sampled ones.
    decoding_samples: int = number(1, low=1, high=16)
