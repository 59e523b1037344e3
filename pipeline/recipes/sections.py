"""The sections of a recipe: a frozen dataclass each, with a default for each key."""

import dataclasses

from pipeline.recipes import search_space
from pipeline.recipes.choices import COMPOSITIONS, FORMATS, HEADS, METRIC_RANGES
from pipeline.recipes.fields import choice, number, read_by


@dataclasses.dataclass(frozen=True)
class DataConfig:
    """What is read and what is turned away at the door."""

    synthetic: str = choice(
        "", "rarest_word", "order_tokens", default=""
    )  # a made-up task: `run` needs no --data
    format: str = choice(
        "auto", *FORMATS, "text", default="auto"
    )  # `text`: plain text, for language models
    # Files of given splits, relative to the data folder; wildcards are allowed. An entry is a file,
    # or `source,target` for two line-aligned files. Without any, every file is read and the splits
    # are divided by the shares below.
    train_files: tuple[str, ...] = ()
    eval_files: tuple[str, ...] = ()  # none: a share of the training files
    test_files: tuple[str, ...] = ()  # none: a share of the training files
    source_language: str = "en"
    target_language: str = "fr"
    source_column: str = "source"
    target_column: str = "target"
    columns: tuple[str, ...] = ()  # the names of the columns where TSV or CSV files have no header
    source_features: tuple[
        str, ...
    ] = ()  # columns of tags, one for each token of the source; the encoder embeds them
    surface_features: tuple[
        str, ...
    ] = ()  # features that the graph makes of the source's tokens: "case"
    slice_features: tuple[
        str, ...
    ] = ()  # columns of one value for each pair, such as its domain, for evaluation.slices
    # Lexicon files, relative to the data folder. A dictionary has a source word, a tab and a target
    # word a line (malformed ones are skipped, counted and said, up to `max_rejected_share`); a copy
    # lexicon has `phrase :- NP : name:type` (a copy of the phrase's first token writes
    # `name:_type`) or phrase, tab, entity.
    dictionary: str = ""
    copy_lexicon: str = ""
    # What a token is: a word, or what a word is cut into by a model that is learned from the
    # training text.
    units: str = choice("words", "characters", "subwords", default="words")
    # The source's own: `words` leaves its words whole where `units` cuts the target's.
    source_units: str = choice("", "words", default="")
    # `text` cuts at words and punctuation; `whitespace` takes text that is tokenized already.
    tokenization: str = choice("text", "whitespace", default="text")
    # The source's own: `characters` cuts it into characters and forgets its white space, for the
    # encoder that finds words itself.
    source_tokenization: str = choice("", "characters", default="")
    lowercase: bool = False  # both sides, when read and when served
    max_characters: int = number(2000, low=1)  # a longer source or target is rejected
    max_tokens: int = number(120, low=1)  # so is one of more words and punctuation marks
    max_rejected_share: float = number(0.1, low=0.0, high=1.0)  # above it the run stops
    drop_identical: bool = False  # reject pairs whose target equals their source (untranslated)
    # Reject a pair already seen (same source and same target); never from given eval or test files.
    drop_duplicates: bool = True
    eval_share: float = number(0.05, low=0.0, high=0.5)
    test_share: float = number(0.05, low=0.0, high=0.5)
    split_salt: str = "verbatim"  # hashed with the normalised source to choose the split

    @property
    def extra_columns(self):
        """The columns that are read besides source and target:
        tags of the source's tokens, then what pairs are sliced by.
        """
        return (*self.source_features, *self.slice_features)


@dataclasses.dataclass(frozen=True)
class VocabularyConfig:
    """Word vocabularies of the two sides; protected tokens count as words."""

    source_size: int = number(8000, low=16)
    target_size: int = number(8000, low=16)
    min_count: int = number(2, low=1)  # rarer words are unknown, hence copied
    protected_min_count: int = number(20, low=1)  # the same for placeholders, tags, URLs, options
    joint: bool = False  # count both sides together, for languages that are one
    # `data.units` other than words: pieces that a side's model has, 256 bytes among them (every one
    # may begin or continue a word, so a vocabulary may have up to twice as many).
    pieces: int = number(4000, low=300)
    # Of the source's words, for a `model.composition` with characters: how many have an id, and how
    # rare they may be.
    characters: int = number(4000, low=16)
    character_min_count: int = number(2, low=1)


@dataclasses.dataclass(frozen=True)
class LexiconConfig:
    """Which target words translate a source word:
    learned from the training pairs, listed in `data.dictionary`, or both.
    """

    kind: str = choice("none", "learned", "manual", "hybrid", default="none")
    # Passes of EM: IBM Model 1, then Model 2 with a diagonal prior (Dyer et al. 2013).
    model1_iterations: int = number(5, low=1)
    diagonal_iterations: int = number(5, low=0)
    # Count the links that both directions believe in (Liang et al. 2006), or those of p(target |
    # source) alone.
    symmetrization: str = choice("agreement", "none", default="agreement")
    top_k: int = number(10, low=1)  # translations that a word keeps
    min_probability: float = number(0.01, low=0.0, high=1.0)
    min_coverage: float = number(
        0.2, low=0.0, high=1.0
    )  # of the training text's source words; less is warned of


@dataclasses.dataclass(frozen=True)
class ModelConfig:
    """The network. `head` is the copy mechanism; `softmax` has none."""

    head: str = choice(*HEADS, default="pointer_generator")
    body: str = choice("rnn", "transformer", default="rnn")
    # Body rnn: cell of decoder and rnn encoder; the cnn encoder's width of convolution; without
    # attention the decoder sees the source through its first state alone.
    cell: str = choice("gru", "lstm", default="gru")
    encoder: str = choice(
        "rnn", "cnn", "segmenting", default="rnn"
    )  # `segmenting`: see the section segmentation
    kernel_size: int = number(3, low=1, high=31)
    attention: str = choice("additive", "dot", "bilinear", "none", default="additive")
    input_feeding: bool = True
    selective_read: bool = (
        False  # feed the source states of the token just copied (head joint_copy)
    )
    # With encoder rnn, above 0: embeddings and kernels are first drawn uniformly from plus and
    # minus this (0.1 suits hidden sizes around 512); 0: kernels Glorot's, embeddings from N(0, 1).
    initial_range: float = number(0.0, low=0.0, high=1.0)
    # Body transformer.
    decoder_layers: int = number(1, low=1, high=24)
    attention_heads: int = number(4, low=1, high=64)
    feed_forward_size: int = number(1024, low=1)
    # Both.
    embedding_size: int = number(256, low=1)
    hidden_size: int = number(256, low=1)
    encoder_layers: int = number(1, low=1, high=24)
    dropout: float = number(0.2, low=0.0, high=0.95)
    # Coverage enters the attention score and the loss; with body transformer the loss alone.
    coverage: bool = True
    # Head pointer_softmax: above 1 its switch is sharper; what the switch's hidden layers are
    # activated by.
    inverse_temperature: float = number(1.0, low=1e-6)
    switch_activation: str = choice("tanh", "noisy_tanh", "relu", default="tanh")
    copy_tanh: bool = True  # head joint_copy: whether a position's score passes through tanh
    copying_context: str = choice(
        "expected", "start", default="expected"
    )  # head span_copy: what predicts a span's end
    # Head span_copy: the longest and the shortest run of source tokens that is one copy. With a
    # min_span of 1 a single word may be copied too, even if the vocabulary has it; whatever
    # min_span is, a word that the vocabulary lacks may be copied alone.
    max_span: int = number(5, low=1, high=32)
    min_span: int = number(1, low=1, high=32)
    # Head pointer_softmax: what points. `unknown`: a word that the vocabulary lacks points to
    # itself in the source; `dictionary`: else to one of its translations there (data.dictionary),
    # else to where attention looks most; `entities`: a word of the source that `entity_feature`,
    # one of data.source_features, tags as an entity (all tags but O, -, _ and 0), even if the
    # vocabulary has it.
    pointers: str = choice("unknown", "dictionary", "entities", default="unknown")
    entity_feature: str = ""
    # Head lexicon_bias: what a word has beside its translations' probability. Head lexicon_linear:
    # what the share of the lexicon is made of, one number, or one for each step read off the
    # decoder's state.
    lexicon_epsilon: float = number(0.001, low=1e-9)
    lexicon_gate: str = choice("constant", "state", default="constant")
    # What a source word's vector is: looked up in the vocabulary, composed of its characters, or
    # both added (Arthur 2018, chapter 4). `ngram` composes it of runs of up to 4 characters, which
    # fall into so many buckets. Of a word of more than `word_length` characters the first and the
    # last ones count.
    composition: str = choice(*COMPOSITIONS, default="lookup")
    word_length: int = number(16, low=1, high=128)
    ngram_buckets: int = number(50_021, low=1, high=2_000_000)
    feature_size: int = number(16, low=1)  # size of the embedding of each of the source's features

    @property
    def segments(self):
        """Whether the encoder finds words among characters."""
        return self.body == "rnn" and self.encoder == "segmenting"


@dataclasses.dataclass(frozen=True)
class SegmentationConfig:
    """`model.encoder = "segmenting"`:
    how words are found among characters, by REINFORCE (Arthur 2018, chapter 5).

    The reward of a sampled segmentation is the target's log-likelihood a token, log p(E|F) / |E|.
    """

    mean_length: float = number(
        2.0, low=1.0
    )  # lambda: expected characters of a word; for all that follows a prior
    composes: str = choice("states", "embeddings", default="states")  # what a word is composed of
    # Ours, and what makes it learn: whether a word's state also has its composed vector and its
    # last character's state, all normalised; vectors of whole words, found by a hash, besides (0:
    # none); whether REINFORCE leaves the states as they are that decisions are read from.
    residual: bool = False
    word_buckets: int = number(0, low=0, high=2_000_000)
    detached: bool = False
    reinforce_weight: float = number(1.0, low=0.0)
    # What a reward is compared with: a linear regression on the encoder's states, or the mean
    # reward of the sentence's other samples.
    baseline: str = choice("linear", "samples", default="linear")
    samples: int = number(1, low=1, high=16)  # segmentations of a sentence in each update
    length_prior_weight: float = number(
        0.0, low=0.0
    )  # of the log-probability of so many words, added to the reward
    novelty_weight: float = number(
        0.0, low=0.0
    )  # of a bonus for words that training has not met, which fades as it meets them
    normalize_rewards: bool = False  # to mean 0 and variance 1 in each update
    confidence_penalty: float = number(
        0.0, low=0.0
    )  # weight of the decisions' entropy, which is added to what is maximised
    fertility_weight: float = number(
        0.0, low=0.0
    )  # of the penalty on words that do not stand for one target word
    epsilon: float = number(
        0.0, low=0.0, high=1.0
    )  # share of sentences whose words' lengths are drawn from the prior
    # For the first updates words are those of a heuristic, which the policy learns to imitate:
    # lengths drawn from the prior, runs of one script (kanji, hiragana, katakana, letters, digits),
    # or these with each hiragana alone.
    warm_up: str = choice("none", "prior", "script", "kana", default="none")
    warm_up_updates: int = number(500, low=1)
    # Above 0, so many updates train the translation alone, as many the segmentation alone, and so
    # on.
    alternate_updates: int = number(0, low=0)
    decoding_samples: int = number(
        1, low=1, high=16
    )  # segmentations that a served model decodes, the likeliest and sampled ones


@dataclasses.dataclass(frozen=True)
class TrainingConfig:
    """How the weights are found."""

    epochs: int = number(10, low=1)
    batch_tokens: int = number(
        1024, low=8
    )  # source + target tokens of one update, padding included
    learning_rate: float = number(0.001, low=0.0)
    final_learning_rate_share: float = number(
        0.05, low=0.0, high=1.0
    )  # cosine decay down to this share
    warmup_steps: int = number(100, low=0)
    gradient_clip_norm: float = number(1.0, low=0.0)
    coverage_loss_weight: float = number(0.2, low=0.0)
    # The softmax of an update runs over this many words, those of its targets and the most
    # frequent, and over so many drawn ones, which stand for all others; 0 of the former for the
    # whole vocabulary.
    large_vocabulary_size: int = number(0, low=0)
    large_vocabulary_drawn: int = number(500, low=0)
    # Training feeds the gold token less and less often, and the model's own prediction instead; the
    # probability of the gold token is one half at the update `half_life` and never below the floor.
    scheduled_sampling: str = choice(
        "none", "linear", "exponential", "inverse_sigmoid", default="none"
    )
    scheduled_sampling_half_life: int = number(2000, low=1)
    scheduled_sampling_floor: float = number(0.0, low=0.0, high=1.0)
    bucket_lengths: tuple[int, ...] = (4, 8, 12, 16, 24, 36, 64, 128)
    seed: int = 1
    deterministic: bool = (
        False  # the same weights each time, on a CPU to the last bit; half as fast on 2 cores
    )
    mixed_precision: bool = False  # compute in bfloat16, keep weights in float32
    max_seconds: float = number(
        0.0, low=0.0
    )  # 0: no limit; else learning rate and epochs are fitted into it
    # The gradients of so many batches make one update: a large batch where memory holds a small
    # one.
    accumulated_batches: int = number(1, low=1)
    # Processes on this machine, each with its share of every batch, and its own GPU where there are
    # any.
    workers: int = number(1, low=1, high=64)


@dataclasses.dataclass(frozen=True)
class DecodingConfig:
    """How a served model searches."""

    beam_size: int = number(4, low=1, high=64)
    n_best: int = number(4, low=1, high=64)
    min_length: int = number(1, low=0)
    max_length_factor: float = number(
        1.5, low=0.0
    )  # longest output = factor * source bucket + offset
    max_length_offset: int = number(10, low=1)
    length_penalty: float = number(1.0, low=0.0)
    # Of a copied span, an output's length counts every token, or the span once.
    length_unit: str = choice("tokens", "choices", default="tokens")
    coverage_penalty: float = number(0.0, low=0.0)
    # 0 searches with a beam. Else n_best outputs are drawn, by the numbers of training.seed: the
    # same request gets the same answer.
    temperature: float = number(0.0, low=0.0)
    top_k: int = number(0, low=0)  # draw among so many of the likeliest; 0 for all
    top_p: float = number(1.0, low=0.01, high=1.0)  # draw among the likeliest that have this mass
    no_repeat_ngram: int = number(
        0, low=0
    )  # no run of so many tokens stands twice in an output; 0 allows all
    # What is put where the model says [UNK]: nothing (another word is chosen), the source token
    # that attention looks at most, or that token's translation (else the token), by data.dictionary
    # or the likeliest of the lexicon.
    replace_unknown: str = choice("none", "copy", "dictionary", "lexicon", default="none")
    # The softmax runs over so many words of each text, the most frequent and those that the lexicon
    # proposes for its words; 0 for all. An answer whose tokens have a smaller mean probability
    # (geometric) than `shortlist_confidence` is sought once more, among all words.
    shortlist_size: int = number(0, low=0)
    shortlist_confidence: float = number(0.0, low=0.0, high=1.0)
    # Outputs hold each placeholder, tag, URL and option as often as their source does (as far as
    # the head can output it).
    keep_protected: bool = True
    batch_buckets: tuple[int, ...] = (1, 8, 32)
    length_buckets: tuple[int, ...] = (16, 64, 128)


def _metric_keys(name, make_field, doc):
    """Returns a section of a recipe with a key for each metric that the Evaluator measures."""
    fields = [(metric, float | None, make_field(high)) for metric, high in METRIC_RANGES.items()]
    section = dataclasses.make_dataclass(name, fields, frozen=True, namespace={"__doc__": doc})
    section.__module__ = __name__
    return section


ThresholdsConfig = _metric_keys(
    "ThresholdsConfig",
    lambda high: number(None, low=0.0, high=high),
    """What a model must reach on the test split before it is pushed: at least, or at most for error rates and perplexity.

    One key for each metric of `pipeline.metrics` that the Evaluator measures; a metric without a value stops no model.
    """,
)
ChangeThresholdsConfig = _metric_keys(
    "ChangeThresholdsConfig",
    lambda high: number(None),
    """How far a model must be above the last blessed one, metric by metric: -0.5 allows a loss of 0.5.

    For error rates and perplexity it is how far the model may be above: 0.5 allows a rise of 0.5. In the metric's own unit.
    """,
)


@dataclasses.dataclass(frozen=True)
class EvaluationConfig:
    """What is measured on the test split, and what a model must reach before it is pushed."""

    # In the order of the run's table; the model and its baseline are compared on each by paired
    # bootstrap.
    metrics: tuple[str, ...] = (
        *(
            "bleu",
            "chrf",
            "placeholder_fidelity",
            "protected_fidelity",
            "unseen_copies",
            "exact_match",
        ),
    )
    thresholds: ThresholdsConfig = ThresholdsConfig()
    change_thresholds: ChangeThresholdsConfig = (
        ChangeThresholdsConfig()
    )  # against the last blessed model, if there is one
    # What the test split is divided by, each by itself: names out of SLICES and of
    # data.slice_features. The last two sections are demanded of each slice that has at least
    # `min_slice_size` pairs, the two above of the whole split.
    slices: tuple[str, ...] = ()
    min_slice_size: int = number(1, low=1)
    slice_thresholds: ThresholdsConfig = ThresholdsConfig()
    slice_change_thresholds: ChangeThresholdsConfig = ChangeThresholdsConfig()
    database: str = ""  # SQLite file for execution_accuracy, relative to the data folder
    bootstrap_samples: int = number(1000, low=10)

    @property
    def compares_with_last_blessed(self):
        """Whether a change from the last blessed model is demanded, so that the Evaluator decodes
        with that model too.
        """
        sections = (self.change_thresholds, self.slice_change_thresholds)
        return any(bound is not None for section in sections for bound in vars(section).values())


@dataclasses.dataclass(frozen=True)
class BaselineConfig:
    """A second model to compare with: the same recipe with another head. Empty: none is trained."""

    head: str = choice("", *HEADS, default="")


@dataclasses.dataclass(frozen=True)
class LanguageModelConfig:
    """What the task `language_model` needs besides;
    see `keras_models.language_modeling` for the walk along the stream.

    Of the other sections it reads: data (files, `lowercase`), vocabulary (`target_size`,
    `min_count`, `protected_min_count`), model (`head`, `embedding_size`, `hidden_size`, `dropout`),
    tuning, training (`epochs`, `learning_rate`, `gradient_clip_norm`, `seed`, `deterministic`,
    `mixed_precision`, `max_seconds`), decoding (both lists of buckets), baseline.
    """

    window: int = number(
        100, low=1
    )  # words that the pointer sees, and steps of backpropagation where windows are read anew
    recurrent_layers: int = number(2, low=1, high=8)
    zoneout_hidden: float = number(0.025, low=0.0, high=1.0)
    zoneout_cell: float = number(0.25, low=0.0, high=1.0)
    tie_weights: bool = False
    batch_size: int = number(32, low=1)  # rows that the training stream is cut into
    stride: int = number(100, low=1)  # words whose loss one update takes
    # Carry states over; if not, read each window anew (stride 1 is then Merity et al.'s training).
    carry: bool = True
    optimizer: str = choice("adam", "sgd", default="adam")
    patience: int = number(
        3, low=1
    )  # epochs without a lower validation perplexity after which training ends
    evaluation_batch_size: int = number(
        1, low=1
    )  # rows of the validation stream; 1 is exact, more are faster
    unknown_word: str = "<unk>"  # the text's own word for unknown words, if the vocabulary has it
    max_perplexity: float = number(
        0.0, low=0.0
    )  # a model with more is not pushed; 0 lets every one pass
    max_perplexity_change: float | None = (
        None  # nor one that is above the last blessed model by more
    )
    continuation_tokens: int = number(
        50, low=1, high=1000
    )  # words that the signature `continue` writes
    temperature: float = number(0.0, low=0.0)  # 0 writes the likeliest word; else words are drawn
    top_k: int = number(0, low=0)
    top_p: float = number(1.0, low=0.01, high=1.0)


#: The sections whose keys can be searched.
SEARCHED_SECTIONS = {"model": ModelConfig, "training": TrainingConfig}


@dataclasses.dataclass(frozen=True)
class TuningConfig:
    """A search for values of the recipe's keys, before the training, which takes the best instead
    of the recipe's own.
    """

    trials: int = number(0, low=0)  # trainings at most; 0 searches nothing
    # `hyperband` trains many for few epochs and the best of them again for more; each of these
    # trainings is a trial.
    algorithm: str = choice("random", "bayesian", "hyperband", default="random")
    epochs: int = number(
        0, low=0
    )  # of a trial, with `hyperband` of the longest; 0 for training.epochs
    seed: int = number(1, low=1)
    # From a key of the sections model and training to a list of values, or to {low, high, scale =
    # "linear" or "log"}.
    space: dict[str, tuple | search_space.Range] = read_by(
        lambda key, tree: search_space.read(key, tree, SEARCHED_SECTIONS)
    )
