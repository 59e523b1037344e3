"""The section `language_model`."""

import dataclasses

from pipeline.recipes.fields import choice, number


@dataclasses.dataclass(frozen=True)
class LanguageModelConfig:
    """The keys that only the task `language_model` has.

    `keras_models.language_modeling` describes how training reads the text. Of other sections, the
    task reads these keys: data (files, `lowercase`), vocabulary (`target_size`, `min_count`,
    `protected_min_count`), model (`head`, `embedding_size`, `hidden_size`, `dropout`,
    `tie_embeddings`), tuning, training (`epochs`, `learning_rate`, `gradient_clip_norm`, `seed`,
    `deterministic`, `mixed_precision`, `max_seconds`), decoding (both lists of buckets), baseline.
    """

    # The number of words that the pointer sees. Without `carry`, it is also the number of steps of
    # backpropagation.
    window: int = number(100, low=1)
    # The number of stacked LSTM layers.
    recurrent_layers: int = number(2, low=1, high=8)
    # The share of hidden units that keep their last value (Krueger et al. 2016).
    zoneout_hidden: float = number(0.025, low=0.0, high=1.0)
    # The share of cell units that keep their last value (Krueger et al. 2016).
    zoneout_cell: float = number(0.25, low=0.0, high=1.0)
    # Whether softmax and embeddings share weights, as with `model.tie_embeddings` = "target".
    tie_weights: bool = False
    # How large word vectors are when training begins: `unit`, with variance 1 where they are read;
    # or `narrow`, uniform between -0.05 and 0.05.
    first_embeddings: str = choice("narrow", "unit", default="narrow")
    # The number of rows that the training text is cut into.
    batch_size: int = number(32, low=1)
    # The number of words whose loss one update takes.
    stride: int = number(100, low=1)
    # Carries states over from window to window. Without it, each window is read from an empty
    # state; with stride 1, this is the training of Merity et al.
    carry: bool = True
    # Adam, or SGD as Zaremba et al. 2014 train.
    optimizer: str = choice("adam", "sgd", default="adam")
    # Training ends after this many epochs without a lower validation perplexity.
    patience: int = number(3, low=1)
    # The number of rows that the validation text is cut into; 1 is exact, more are faster.
    evaluation_batch_size: int = number(1, low=1)
    # The text's own word for unknown words, if the vocabulary has it.
    unknown_word: str = "<unk>"
    # A model with a higher perplexity is not pushed; 0 lets every model pass.
    max_perplexity: float = number(0.0, low=0.0)
    # A model is not pushed if its perplexity exceeds the last blessed model's by more than this.
    max_perplexity_change: float | None = None
    # The number of words that the signature `continue` writes.
    continuation_tokens: int = number(50, low=1, high=1000)
    # 0 writes the likeliest word; above 0, words are drawn at random.
    temperature: float = number(0.0, low=0.0)
    # Draws among this many of the likeliest words; 0 draws among all.
    top_k: int = number(0, low=0)
    # Draws among the likeliest words whose probabilities add up to this mass; 1 draws among all.
    top_p: float = number(1.0, low=0.01, high=1.0)
