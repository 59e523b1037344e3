"""The section `training`."""

import dataclasses

from pipeline.recipes.choices import SELECTION_METRICS
from pipeline.recipes.fields import choice, number


@dataclasses.dataclass(frozen=True)
class TrainingConfig:
    """How the weights are learned."""

    # How many times the training reads its pairs.
    epochs: int = number(10, low=1)
    # The training ends after this many updates, and its schedule is fitted into them; 0 sets no
    # limit except the epochs.
    max_updates: int = number(0, low=0)
    # What measures an epoch on the eval split, for the choice of the best epoch, `patience`, and
    # schedules that depend on it: "loss", or a metric of the outputs of a greedy search. The metric
    # compares tokens as the network knows them, so its value is close to the evaluation's own
    # figure, but not the same.
    select_by: str = choice("loss", *SELECTION_METRICS, default="loss")
    # Which epoch's weights are kept: the best one by `select_by`, or the last one. A small corpus
    # has no pairs to spare for an eval split that can tell its epochs apart: it keeps the last one,
    # with a small `data.eval_share`.
    keep: str = choice("best", "last", default="best")
    # How many pairs of the eval split a metric of `select_by` decodes; 0 for all.
    select_pairs: int = number(500, low=0)
    # The training ends after this many epochs without a better one; 0 never ends it early.
    patience: int = number(0, low=0)
    # Which weights are measured and kept. "none": the weights after the last update. "moving": the
    # moving average over all updates. "last": the mean of the last epochs' weights. "best": at the
    # end, the mean of the best epochs' weights, if it is better than the best epoch.
    average: str = choice("none", "moving", "last", "best", default="none")
    # The number of epochs whose mean "last" and "best" take.
    average_epochs: int = number(5, low=2, high=100)
    # The share of itself that the moving average keeps at each update.
    average_decay: float = number(0.999, low=0.0, high=0.999999)
    # The number of source and target tokens of a batch, padding included. An update is one batch or
    # several (`accumulated_batches`).
    batch_tokens: int = number(1024, low=8)
    # Adam; AdamW, with `weight_decay`; Adadelta; or SGD, with `momentum`.
    optimizer: str = choice("adam", "adamw", "adadelta", "sgd", default="adam")
    # An update subtracts this share of each weight, times the learning rate. Biases and the scales
    # of normalisation do not decay.
    weight_decay: float = number(0.0, low=0.0, high=1.0)
    # The momentum of SGD.
    momentum: float = number(0.0, low=0.0, high=0.9999)
    # The decay of Adam's mean of gradients.
    beta_1: float = number(0.9, low=0.0, high=0.9999)
    # The decay of Adam's mean of squared gradients.
    beta_2: float = number(0.999, low=0.0, high=0.999999)
    # The highest learning rate, which the schedule reaches after the warm-up.
    learning_rate: float = number(0.001, low=0.0)
    # How the learning rate falls after the warm-up: by half a cosine over the whole training, by
    # the inverse square root of the update's number, or not at all. `halving` and `quartering`
    # reduce it to one half or one quarter after each epoch that is no better by `select_by`.
    schedule: str = choice(
        "cosine", "inverse_square_root", "constant", "halving", "quartering", default="cosine"
    )
    # Cosine decay ends at this share of the learning rate.
    final_learning_rate_share: float = number(0.05, low=0.0, high=1.0)
    # The number of updates in which the learning rate rises to `learning_rate`.
    warmup_steps: int = number(100, low=0)
    # Gradients are scaled down to this global norm; 0 clips nothing.
    gradient_clip_norm: float = number(1.0, low=0.0)
    # Each element of the gradients is clipped to this size; 0 clips nothing.
    gradient_clip_value: float = number(0.0, low=0.0)
    # The probability that training replaces a source or target word that the network reads by
    # [UNK]. A copy still writes the word.
    unknown_word_rate: float = number(0.0, low=0.0, high=0.9)
    # The sides whose words are cut into other subwords in each epoch, drawn by the unigram model
    # (Kudo 2018). It needs `data.units = "subwords"`. Decoding and the eval split take the best cut
    # of each word.
    subword_sampling: str = choice("none", "source", "target", "both", default="none")
    # A cut is drawn with its probability, raised to this power. Smaller powers make all cuts more
    # equally likely.
    subword_alpha: float = number(0.2, low=0.0, high=10.0)
    # The number of a word's best cuts among which one is drawn.
    subword_nbest: int = number(64, low=2, high=512)
    # The share of the target distribution that is spread evenly over all outcomes of the head:
    # words and copies. 0 smooths nothing. The eval loss is never smoothed.
    label_smoothing: float = number(0.0, low=0.0, high=0.9)
    # R-Drop (Liang et al. 2021): each pair is read twice with different dropout, and a loss of this
    # weight makes the two output distributions similar. 1 to 5 suit translation. An update takes
    # twice as long; 0 reads each pair once.
    consistency_weight: float = number(0.0, low=0.0)
    # The weight of the coverage loss, if `model.coverage` is on.
    coverage_loss_weight: float = number(0.2, low=0.0)
    # The weight of the loss that teaches attention, or a head's own copy scores, which source token
    # a target token comes from: first, by runs of tokens that both texts have; else by the
    # lexicon's translations, unless `lexicon.kind` is none; else by where the source has the same
    # token. It suits copying with body transformer or with subwords.
    guided_alignment_weight: float = number(0.0, low=0.0)
    # The softmax of an update runs over this many words: those of its targets and the most
    # frequent. `large_vocabulary_drawn` more are drawn to stand for all others. 0 runs it over the
    # whole vocabulary.
    large_vocabulary_size: int = number(0, low=0)
    # How many words are drawn to stand for those outside `large_vocabulary_size`.
    large_vocabulary_drawn: int = number(500, low=0)
    # Training feeds the model's own prediction instead of the gold token (the reference's token),
    # more and more often. The probability of the gold token falls to one half at the update
    # `scheduled_sampling_half_life`, and never below `scheduled_sampling_floor`.
    scheduled_sampling: str = choice(
        "none", "linear", "exponential", "inverse_sigmoid", default="none"
    )
    # The number of the update at which a fed token is the gold token with probability one half.
    scheduled_sampling_half_life: int = number(2000, low=1)
    # The smallest probability that a fed token is the gold token.
    scheduled_sampling_floor: float = number(0.0, low=0.0, high=1.0)
    # The lengths, in tokens, that batches are padded to; longer pairs are left out and counted.
    bucket_lengths: tuple[int, ...] = (4, 8, 12, 16, 24, 36, 64, 128)
    # How many times an epoch reads the pairs of each corpus of `data.corpora`, one number for each
    # corpus. 2 reads all pairs twice; 0.5 reads half of them, and the other half in the next epoch.
    # Without numbers, each pair is read once.
    corpus_weights: tuple[float, ...] = ()
    # T. Above 1, small corpora of `data.corpora` are read more often and large ones less often:
    # each share of an epoch is raised to the power 1 / T. The epoch keeps its length.
    corpus_temperature: float = number(1.0, low=1.0)
    # How many networks are trained, one after the other, with the seeds `seed`, `seed` + 1, and so
    # on. The model predicts the mean of their predictions.
    ensemble: int = number(1, low=1, high=16)
    # The seed of initial weights, dropout and the order of the pairs.
    seed: int = 1
    # Training starts from the weights of this model: the folder of a pushed version, of a model or
    # of a run; or "last pushed", the newest version in the run's own folder.
    initialize_from: str = ""
    # The parts that training does not change: "embeddings", "encoder", "decoder". It suits a model
    # that starts from `model.preset` or `initialize_from`. Bodies transformer and keras_hub.
    frozen: tuple[str, ...] = ()
    # Below 1, the layers of encoder and decoder learn more slowly the nearer they are to the input:
    # the last layers at this share of the learning rate, the layers before them at its square, and
    # so on; embeddings slowest. Bodies transformer and keras_hub.
    layer_decay: float = number(1.0, low=0.01, high=1.0)
    # Training gives the same weights each time, to the last bit on a CPU. It is half as fast on 2
    # cores.
    deterministic: bool = False
    # Computes in bfloat16 and keeps weights in float32.
    mixed_precision: bool = False
    # The schedule of the learning rate and the epochs are fitted into this many seconds; 0 sets no
    # limit.
    max_seconds: float = number(0.0, low=0.0)
    # The gradients of this many batches make one update. It acts as a large batch if memory only
    # holds a small one.
    accumulated_batches: int = number(1, low=1)
    # The number of training processes on this machine. Each takes its share of every batch, and its
    # own GPU if there are any.
    workers: int = number(1, low=1, high=64)
