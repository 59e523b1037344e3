"""The section `training`."""

import dataclasses

from pipeline.recipes.choices import SELECTION_METRICS
from pipeline.recipes.fields import choice, number


@dataclasses.dataclass(frozen=True)
class TrainingConfig:
    """How the weights are learned."""

    # How often the training reads its pairs; the best epoch by `select_by` is kept.
    epochs: int = number(10, low=1)
    # The training ends after this many updates, and its schedule is fitted into them; 0 is no
    # limit but the epochs.
    max_updates: int = number(0, low=0)
    # What the eval split decides: the best epoch, `patience`, and a schedule that waits for it.
    # "loss", or a metric of the outputs that a greedy search writes for the eval split. It compares
    # tokens as the network knows them, so it is close to the evaluation's own figure, not the same.
    select_by: str = choice("loss", *SELECTION_METRICS, default="loss")
    # How many pairs of the eval split a metric of `select_by` decodes; 0 for all.
    select_pairs: int = number(500, low=0)
    # The training ends after this many epochs without a better one; 0 trains to the end.
    patience: int = number(0, low=0)
    # Which weights are measured and kept: those of the last update ("none"), the moving average of
    # all updates ("moving"), the mean of the last epochs' ("last"), or at the end the mean of the
    # best epochs' ("best"), if it is better than the best epoch.
    average: str = choice("none", "moving", "last", "best", default="none")
    # The epochs of which "last" and "best" take the mean.
    average_epochs: int = number(5, low=2, high=100)
    # What the moving average keeps of itself at each update.
    average_decay: float = number(0.999, low=0.0, high=0.999999)
    # Source and target tokens of a batch, padding included; an update is one batch or several.
    batch_tokens: int = number(1024, low=8)
    # Adam; AdamW, with `weight_decay`; Adadelta; or SGD, with `momentum`.
    optimizer: str = choice("adam", "adamw", "adadelta", "sgd", default="adam")
    # The share of each weight, times the learning rate, that an update takes away. Biases and the
    # scales of normalisation keep theirs.
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
    # the inverse square root of the update, not at all, or to one half or one quarter after each
    # epoch that is no better by `select_by`.
    schedule: str = choice(
        "cosine", "inverse_square_root", "constant", "halving", "quartering", default="cosine"
    )
    # Cosine decay ends at this share of the learning rate.
    final_learning_rate_share: float = number(0.05, low=0.0, high=1.0)
    # The updates in which the learning rate rises to `learning_rate`.
    warmup_steps: int = number(100, low=0)
    # Gradients are scaled down to this global norm; 0 clips nothing.
    gradient_clip_norm: float = number(1.0, low=0.0)
    # Each element of the gradients is cut to this size; 0 cuts nothing.
    gradient_clip_value: float = number(0.0, low=0.0)
    # The probability that a word that the network reads, of the source or of the target, is
    # replaced by [UNK] in training. A copy still writes the word.
    unknown_word_rate: float = number(0.0, low=0.0, high=0.9)
    # The sides whose words are cut into other subwords in each epoch, drawn by the unigram model
    # (Kudo 2018); it needs `data.units = "subwords"`. Decoding and the eval split take the best cut
    # of each word.
    subword_sampling: str = choice("none", "source", "target", "both", default="none")
    # A cut is drawn with its probability, raised to this power: the smaller, the more even.
    subword_alpha: float = number(0.2, low=0.0, high=10.0)
    # How many of a word's best cuts are drawn from.
    subword_nbest: int = number(64, low=2, high=512)
    # The share of the target distribution that is spread evenly over all that the head can say:
    # words and what it can copy. 0 smooths nothing. The eval loss is never smoothed.
    label_smoothing: float = number(0.0, low=0.0, high=0.9)
    # R-Drop (Liang et al. 2021): each pair is read twice, with other dropout, and this weight draws
    # the two distributions over all that the head can say together. 1 to 5 suit translation. An
    # update takes twice as long; 0 reads each pair one time.
    consistency_weight: float = number(0.0, low=0.0)
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
    # How often an epoch reads each pair of the corpora of `data.corpora`, one number for each: 2
    # reads all of them twice, 0.5 half of them, and the other half in the next epoch. Without
    # numbers each pair is read once.
    corpus_weights: tuple[float, ...] = ()
    # Above 1, small corpora of `data.corpora` are read more often and large ones less: their shares
    # of an epoch, raised to the power 1 / T. The epoch stays as long.
    corpus_temperature: float = number(1.0, low=1.0)
    # How many networks are trained, one after the other, with seeds from `seed` on. The model
    # predicts the mean of what they predict.
    ensemble: int = number(1, low=1, high=16)
    # The seed of first weights, dropout and the order of the pairs.
    seed: int = 1
    # The first weights are those of this model: the folder of a pushed version, of a model or of a
    # run; or "last pushed", the newest version in the run's own folder.
    initialize_from: str = ""
    # The parts that training leaves as they begin: "embeddings", "encoder", "decoder". They suit a
    # model that begins with `model.preset` or `initialize_from`. Bodies transformer and keras_hub.
    frozen: tuple[str, ...] = ()
    # Below 1, the layers of encoder and decoder learn more slowly the nearer they are to the input:
    # the last ones at this share of the learning rate, those before them at its square, and so on;
    # embeddings slowest. Bodies transformer and keras_hub.
    layer_decay: float = number(1.0, low=0.01, high=1.0)
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
