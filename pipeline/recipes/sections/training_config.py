"""The section `training`."""

import dataclasses

from pipeline.recipes.fields import choice, number


@dataclasses.dataclass(frozen=True)
class TrainingConfig:
    """How the weights are learned."""

    # How often the training reads its pairs; the best epoch by eval loss is kept.
    epochs: int = number(10, low=1)
    # Source and target tokens of one update, padding included.
    batch_tokens: int = number(1024, low=8)
    # The highest learning rate, which the schedule reaches after the warm-up.
    learning_rate: float = number(0.001, low=0.0)
    # Cosine decay ends at this share of the learning rate.
    final_learning_rate_share: float = number(0.05, low=0.0, high=1.0)
    # The updates in which the learning rate rises to `learning_rate`.
    warmup_steps: int = number(100, low=0)
    # Gradients are scaled down to this global norm; 0 clips nothing.
    gradient_clip_norm: float = number(1.0, low=0.0)
    # The share of the target distribution that is spread evenly over all that the head can say:
    # words and what it can copy. 0 smooths nothing. The eval loss is never smoothed.
    label_smoothing: float = number(0.0, low=0.0, high=0.9)
    # The weight of the coverage loss, where `model.coverage` is on.
    coverage_loss_weight: float = number(0.2, low=0.0)
    # The weight of the loss that teaches attention, or a head's own copy scores, where a target
    # token comes from: from a run of tokens that stands in both texts; else from what the lexicon
    # says it translates, unless `lexicon.kind` is none; else from where it stands in the source. It
    # suits copying with body transformer or with subwords.
    guided_alignment_weight: float = number(0.0, low=0.0)
    # The softmax of an update runs over this many words: those of its targets and the most
    # frequent. `large_vocabulary_drawn` more are drawn to stand for all others. 0 runs it over the
    # whole vocabulary.
    large_vocabulary_size: int = number(0, low=0)
    # How many words are drawn to stand for those outside `large_vocabulary_size`.
    large_vocabulary_drawn: int = number(500, low=0)
    # Training feeds the model's own prediction instead of the gold token, more and more often. The
    # probability of the gold token is one half at the update `half_life`, and never below the
    # floor.
    scheduled_sampling: str = choice(
        "none", "linear", "exponential", "inverse_sigmoid", default="none"
    )
    # The update at which a fed token is the gold one with probability one half.
    scheduled_sampling_half_life: int = number(2000, low=1)
    # The smallest probability that a fed token is the gold one.
    scheduled_sampling_floor: float = number(0.0, low=0.0, high=1.0)
    # The lengths, in tokens, that batches are padded to; longer pairs are left out and counted.
    bucket_lengths: tuple[int, ...] = (4, 8, 12, 16, 24, 36, 64, 128)
    # The seed of first weights, dropout and the order of the pairs.
    seed: int = 1
    # The first weights are those of this model: the folder of a pushed version, of a model or of a
    # run; or "last pushed", the newest version in the run's own folder.
    initialize_from: str = ""
    # The same weights each time, to the last bit on a CPU; half as fast on 2 cores.
    deterministic: bool = False
    # Computes in bfloat16 and keeps weights in float32.
    mixed_precision: bool = False
    # The learning rate's schedule and the epochs are fitted into this time; 0 is no limit.
    max_seconds: float = number(0.0, low=0.0)
    # The gradients of this many batches make one update: a large batch where memory holds a small
    # one.
    accumulated_batches: int = number(1, low=1)
    # Processes on this machine. Each takes its share of every batch, and its own GPU if there are
    # any.
    workers: int = number(1, low=1, high=64)
