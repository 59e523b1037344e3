"""Recipes: one typed, frozen dataclass tree, read from TOML, overridden by `--set`.

A recipe says everything that makes one run differ from another. Each key has a default here, a TOML file
in `pipeline/recipes/` (or the user's own) changes some of them, and `--set section.key=value` changes one
more. An unknown key or an impossible value is a `RecipeError` whose sentence names the key.
"""

import dataclasses
import difflib
import json
import math
import os
import pathlib
import re
import sys
import types
import typing

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

RECIPES_DIRECTORY = pathlib.Path(__file__).parent / "recipes"


class RecipeError(ValueError):
    """A recipe that cannot be used; its message is one sentence for the user."""


# The copy mechanisms that a recipe can name, `softmax` being none; `keras_models.models.heads` has them.
HEADS = (
    "softmax",
    "pointer_generator",
    "pointer_softmax",
    "pointer_sentinel",
    "joint_copy",
    "pointer_network",
    "span_copy",
    "lexicon_bias",
    "lexicon_linear",
    "lexicon_copy",
)
# Those that read the lexicon of translations.
LEXICON_HEADS = ("lexicon_bias", "lexicon_linear", "lexicon_copy")
# Those that copy, or translate, by the decoder's attention, hence need one.
ATTENTIVE_HEADS = ("pointer_generator", "pointer_softmax", *LEXICON_HEADS)
# What a source word's vector is composed of its characters by; alone, or added to the looked-up one.
CHARACTER_COMPOSITIONS = ("sum", "average", "max", "bilstm", "cnn", "ngram")
COMPOSITIONS = ("lookup", *CHARACTER_COMPOSITIONS, *(f"lookup+{name}" for name in CHARACTER_COMPOSITIONS))
# What `pipeline.readers` reads.
FORMATS = ("tsv", "csv", "jsonl", "lines", "gettext")


def _choice(*values, default):
    return dataclasses.field(default=default, metadata={"choices": values})


def _number(default, low=None, high=None):
    return dataclasses.field(default=default, metadata={"low": low, "high": high})


@dataclasses.dataclass(frozen=True)
class DataConfig:
    """What is read and what is turned away at the door."""

    synthetic: str = _choice("", "rarest_word", "order_tokens", default="")  # a made-up task: `run` needs no --data
    format: str = _choice("auto", *FORMATS, "text", default="auto")  # `text`: plain text, for language models
    # Files of given splits, relative to the data folder; wildcards are allowed. An entry is a file, or `source,target` for two
    # line-aligned files. Without any, every file is read and the splits are divided by the shares below.
    train_files: tuple[str, ...] = ()
    eval_files: tuple[str, ...] = ()  # none: a share of the training files
    test_files: tuple[str, ...] = ()  # none: a share of the training files
    source_language: str = "en"
    target_language: str = "fr"
    source_column: str = "source"
    target_column: str = "target"
    columns: tuple[str, ...] = ()  # the names of the columns where TSV or CSV files have no header
    source_features: tuple[str, ...] = ()  # columns of tags, one for each token of the source; the encoder embeds them
    surface_features: tuple[str, ...] = ()  # features that the graph makes of the source's tokens: "case"
    slice_features: tuple[
        str, ...
    ] = ()  # columns of one value for each pair, such as its domain, for evaluation.slices
    # Lexicon files, relative to the data folder. A dictionary has a source word, a tab and a target word a line; a copy lexicon has
    # `phrase :- NP : name:type` (a copy of the phrase's first token writes `name:_type`) or phrase, tab, entity.
    dictionary: str = ""
    copy_lexicon: str = ""
    # What a token is: a word, or what a word is cut into by a model that is learned from the training text.
    units: str = _choice("words", "characters", "subwords", default="words")
    # `text` cuts at words and punctuation; `whitespace` takes text that is tokenized already.
    tokenization: str = _choice("text", "whitespace", default="text")
    # The source's own: `characters` cuts it into characters and forgets its white space, for the encoder that finds words itself.
    source_tokenization: str = _choice("", "characters", default="")
    lowercase: bool = False  # both sides, when read and when served
    max_characters: int = _number(2000, low=1)  # a longer source or target is rejected
    max_tokens: int = _number(120, low=1)  # so is one of more words and punctuation marks
    max_rejected_share: float = _number(0.1, low=0.0, high=1.0)  # above it the run stops
    drop_identical: bool = False  # reject pairs whose target equals their source (untranslated)
    drop_duplicates: bool = (
        True  # reject a pair already seen (same source and same target); never from given eval or test files
    )
    eval_share: float = _number(0.05, low=0.0, high=0.5)
    test_share: float = _number(0.05, low=0.0, high=0.5)
    split_salt: str = "verbatim"  # hashed with the normalised source to choose the split

    @property
    def extra_columns(self):
        """The columns that are read besides source and target: tags of the source's tokens, then what pairs are sliced by."""
        return (*self.source_features, *self.slice_features)


@dataclasses.dataclass(frozen=True)
class VocabularyConfig:
    """Word vocabularies of the two sides; protected tokens count as words."""

    source_size: int = _number(8000, low=16)
    target_size: int = _number(8000, low=16)
    min_count: int = _number(2, low=1)  # rarer words are unknown, hence copied
    protected_min_count: int = _number(20, low=1)  # the same for placeholders, tags, URLs, options
    joint: bool = False  # count both sides together, for languages that are one
    # `data.units` other than words: pieces that a side's model has, 256 bytes among them (every one may begin or continue a word, so a
    # vocabulary may have up to twice as many).
    pieces: int = _number(4000, low=300)
    # Of the source's words, for a `model.composition` with characters: how many have an id, and how rare they may be.
    characters: int = _number(4000, low=16)
    character_min_count: int = _number(2, low=1)


@dataclasses.dataclass(frozen=True)
class LexiconConfig:
    """Which target words translate a source word: learned from the training pairs, listed in `data.dictionary`, or both."""

    kind: str = _choice("none", "learned", "manual", "hybrid", default="none")
    # Passes of EM: IBM Model 1, then Model 2 with a diagonal prior (Dyer et al. 2013).
    model1_iterations: int = _number(5, low=1)
    diagonal_iterations: int = _number(5, low=0)
    # Count the links that both directions believe in (Liang et al. 2006), or those of p(target | source) alone.
    symmetrization: str = _choice("agreement", "none", default="agreement")
    top_k: int = _number(10, low=1)  # translations that a word keeps
    min_probability: float = _number(0.01, low=0.0, high=1.0)
    min_coverage: float = _number(0.2, low=0.0, high=1.0)  # of the training text's source words; less is warned of


@dataclasses.dataclass(frozen=True)
class ModelConfig:
    """The network. `head` is the copy mechanism; `softmax` has none."""

    head: str = _choice(*HEADS, default="pointer_generator")
    body: str = _choice("rnn", "transformer", default="rnn")
    # Body rnn: cell of decoder and rnn encoder; the cnn encoder's width of convolution; without attention the decoder sees the source
    # through its first state alone.
    cell: str = _choice("gru", "lstm", default="gru")
    encoder: str = _choice("rnn", "cnn", "segmenting", default="rnn")  # `segmenting`: see the section segmentation
    kernel_size: int = _number(3, low=1, high=31)
    attention: str = _choice("additive", "dot", "bilinear", "none", default="additive")
    input_feeding: bool = True
    selective_read: bool = False  # feed the source states of the token just copied (head joint_copy)
    # Body transformer.
    decoder_layers: int = _number(1, low=1, high=24)
    attention_heads: int = _number(4, low=1, high=64)
    feed_forward_size: int = _number(1024, low=1)
    # Both.
    embedding_size: int = _number(256, low=1)
    hidden_size: int = _number(256, low=1)
    encoder_layers: int = _number(1, low=1, high=24)
    dropout: float = _number(0.2, low=0.0, high=0.95)
    coverage: bool = True  # coverage enters the attention score and the loss; with body transformer the loss alone
    # Head pointer_softmax: above 1 its switch is sharper; what the switch's hidden layers are activated by.
    inverse_temperature: float = _number(1.0, low=1e-6)
    switch_activation: str = _choice("tanh", "noisy_tanh", "relu", default="tanh")
    copy_tanh: bool = True  # head joint_copy: whether a position's score passes through tanh
    copying_context: str = _choice(
        "expected", "start", default="expected"
    )  # head span_copy: what predicts a span's end
    # Head span_copy: the longest and the shortest run of source tokens that is one copy. With a min_span of 1 a single word may be
    # copied too, even if the vocabulary has it; whatever min_span is, a word that the vocabulary lacks may be copied alone.
    max_span: int = _number(5, low=1, high=32)
    min_span: int = _number(1, low=1, high=32)
    # Head pointer_softmax: what points. `unknown`: a word that the vocabulary lacks points to itself in the source; `dictionary`: else
    # to one of its translations there (data.dictionary), else to where attention looks most; `entities`: a word of the source that
    # `entity_feature`, one of data.source_features, tags as an entity (all tags but O, -, _ and 0), even if the vocabulary has it.
    pointers: str = _choice("unknown", "dictionary", "entities", default="unknown")
    entity_feature: str = ""
    # Head lexicon_bias: what a word has beside its translations' probability. Head lexicon_linear: what the share of the lexicon is made of,
    # one number, or one for each step read off the decoder's state.
    lexicon_epsilon: float = _number(0.001, low=1e-9)
    lexicon_gate: str = _choice("constant", "state", default="constant")
    # What a source word's vector is: looked up in the vocabulary, composed of its characters, or both added (Arthur 2018, chapter 4).
    # `ngram` composes it of runs of up to 4 characters, which fall into so many buckets. Of a word of more than `word_length` characters
    # the first and the last ones count.
    composition: str = _choice(*COMPOSITIONS, default="lookup")
    word_length: int = _number(16, low=1, high=128)
    ngram_buckets: int = _number(50_021, low=1, high=2_000_000)
    feature_size: int = _number(16, low=1)  # size of the embedding of each of the source's features


@dataclasses.dataclass(frozen=True)
class SegmentationConfig:
    """`model.encoder = "segmenting"`: how words are found among characters, by REINFORCE (Arthur 2018, chapter 5).

    The reward of a sampled segmentation is the target's log-likelihood a token, log p(E|F) / |E|.
    """

    mean_length: float = _number(2.0, low=1.0)  # lambda: expected characters of a word; for all that follows a prior
    composes: str = _choice("states", "embeddings", default="states")  # what a word is composed of
    reinforce_weight: float = _number(1.0, low=0.0)
    # What a reward is compared with: a linear regression on the encoder's states, or the mean reward of the sentence's other samples.
    baseline: str = _choice("linear", "samples", default="linear")
    samples: int = _number(1, low=1, high=16)  # segmentations of a sentence in each update
    length_prior_weight: float = _number(0.0, low=0.0)  # of the log-probability of so many words, added to the reward
    novelty_weight: float = _number(
        0.0, low=0.0
    )  # of a bonus for words that training has not met, which fades as it meets them
    normalize_rewards: bool = False  # to mean 0 and variance 1 in each update
    confidence_penalty: float = _number(
        0.0, low=0.0
    )  # weight of the decisions' entropy, which is added to what is maximised
    fertility_weight: float = _number(0.0, low=0.0)  # of the penalty on words that do not stand for one target word
    epsilon: float = _number(0.0, low=0.0, high=1.0)  # share of sentences whose words' lengths are drawn from the prior
    # For the first updates words are those of a heuristic, which the policy learns to imitate: lengths drawn from the prior, or runs of
    # one script (kanji, hiragana, katakana, letters, digits).
    warm_up: str = _choice("none", "prior", "script", default="none")
    warm_up_updates: int = _number(500, low=1)
    # Above 0, so many updates train the translation alone, as many the segmentation alone, and so on.
    alternate_updates: int = _number(0, low=0)
    decoding_samples: int = _number(
        1, low=1, high=16
    )  # segmentations that a served model decodes, the likeliest and sampled ones


@dataclasses.dataclass(frozen=True)
class TrainingConfig:
    """How the weights are found."""

    epochs: int = _number(10, low=1)
    batch_tokens: int = _number(1024, low=8)  # source + target tokens of one update, padding included
    learning_rate: float = _number(0.001, low=0.0)
    final_learning_rate_share: float = _number(0.05, low=0.0, high=1.0)  # cosine decay down to this share
    warmup_steps: int = _number(100, low=0)
    gradient_clip_norm: float = _number(1.0, low=0.0)
    coverage_loss_weight: float = _number(0.2, low=0.0)
    # The softmax of an update runs over this many words, those of its targets and the most frequent; 0 for all.
    large_vocabulary_size: int = _number(0, low=0)
    # Training feeds the gold token less and less often, and the model's own prediction instead; the probability of the gold token
    # is one half at the update `half_life` and never below the floor.
    scheduled_sampling: str = _choice("none", "linear", "exponential", "inverse_sigmoid", default="none")
    scheduled_sampling_half_life: int = _number(2000, low=1)
    scheduled_sampling_floor: float = _number(0.0, low=0.0, high=1.0)
    bucket_lengths: tuple[int, ...] = (4, 8, 12, 16, 24, 36, 64, 128)
    seed: int = 1
    mixed_precision: bool = False  # compute in bfloat16, keep weights in float32
    max_seconds: float = _number(0.0, low=0.0)  # 0: no limit; else learning rate and epochs are fitted into it


@dataclasses.dataclass(frozen=True)
class DecodingConfig:
    """How a served model searches."""

    beam_size: int = _number(4, low=1, high=64)
    n_best: int = _number(4, low=1, high=64)
    min_length: int = _number(1, low=0)
    max_length_factor: float = _number(1.5, low=0.1)  # longest output = factor * source bucket + offset
    max_length_offset: int = _number(10, low=1)
    length_penalty: float = _number(1.0, low=0.0)
    coverage_penalty: float = _number(0.0, low=0.0)
    # 0 searches with a beam. Else n_best outputs are drawn, by the numbers of training.seed: the same request gets the same answer.
    temperature: float = _number(0.0, low=0.0)
    top_k: int = _number(0, low=0)  # draw among so many of the likeliest; 0 for all
    top_p: float = _number(1.0, low=0.01, high=1.0)  # draw among the likeliest that have this mass
    no_repeat_ngram: int = _number(0, low=0)  # no run of so many tokens stands twice in an output; 0 allows all
    # What is put where the model says [UNK]: nothing (another word is chosen), the source token that attention looks at most, or that
    # token's translation (else the token), by data.dictionary or the likeliest of the lexicon.
    replace_unknown: str = _choice("none", "copy", "dictionary", "lexicon", default="none")
    # Outputs hold each placeholder, tag, URL and option as often as their source does (as far as the head can output it).
    keep_protected: bool = True
    batch_buckets: tuple[int, ...] = (1, 8, 32)
    length_buckets: tuple[int, ...] = (16, 64, 128)


# The range of each metric of `pipeline.metrics` that the Evaluator measures, or None above where there is no highest.
_METRIC_RANGES = {
    "bleu": 100.0,
    "chrf": 100.0,
    "bleu_by_length": 100.0,
    "nist": None,
    "ter": None,
    "rouge1": 100.0,
    "rouge2": 100.0,
    "rougeL": 100.0,
    "rouge1_recall": 100.0,
    "rouge2_recall": 100.0,
    "rougeL_recall": 100.0,
    "exact_match": 1.0,
    "token_accuracy": 1.0,
    "execution_accuracy": 1.0,
    "placeholder_fidelity": 1.0,
    "protected_fidelity": 1.0,
    "copy_rate": 1.0,
    "copy_precision": 1.0,
    "repetition_rate": 1.0,
    "perplexity": None,
    "word_perplexity": None,
    "unseen_copies": 1.0,
    "rare_word_recall": 1.0,
    "word_f1_by_frequency": 1.0,
}
#: Names of metrics, as in `pipeline.metrics.registry`.
METRICS = tuple(_METRIC_RANGES)


def _metric_keys(name, make_field, doc):
    """Returns a section of a recipe with a key for each metric that the Evaluator measures."""
    fields = [(metric, float | None, make_field(high)) for metric, high in _METRIC_RANGES.items()]
    section = dataclasses.make_dataclass(name, fields, frozen=True, namespace={"__doc__": doc})
    section.__module__ = __name__
    return section


ThresholdsConfig = _metric_keys(
    "ThresholdsConfig",
    lambda high: _number(None, low=0.0, high=high),
    """What a model must reach on the test split before it is pushed: at least, or at most for error rates and perplexity.

    One key for each metric of `pipeline.metrics` that the Evaluator measures; a metric without a value stops no model.
    """,
)

ChangeThresholdsConfig = _metric_keys(
    "ChangeThresholdsConfig",
    lambda high: _number(None),
    """How far a model must be above the last blessed one, metric by metric: -0.5 allows a loss of 0.5.

    For error rates and perplexity it is how far the model may be above: 0.5 allows a rise of 0.5. In the metric's own unit.
    """,
)


#: Slices that need no column: how many tokens the source has, whether the model's source vocabulary lacks one of them, and the file
#: that the pair stood in.
SLICES = ("source_length", "unknown_words", "file")


@dataclasses.dataclass(frozen=True)
class EvaluationConfig:
    """What is measured on the test split, and what a model must reach before it is pushed."""

    # In the order of the run's table; the model and its baseline are compared on each by paired bootstrap.
    metrics: tuple[str, ...] = (
        *("bleu", "chrf", "placeholder_fidelity", "protected_fidelity", "unseen_copies", "exact_match"),
    )
    thresholds: ThresholdsConfig = ThresholdsConfig()
    change_thresholds: ChangeThresholdsConfig = (
        ChangeThresholdsConfig()
    )  # against the last blessed model, if there is one
    # What the test split is divided by, each by itself: names out of SLICES and of data.slice_features. The last two sections are
    # demanded of each slice that has at least `min_slice_size` pairs, the two above of the whole split.
    slices: tuple[str, ...] = ()
    min_slice_size: int = _number(1, low=1)
    slice_thresholds: ThresholdsConfig = ThresholdsConfig()
    slice_change_thresholds: ChangeThresholdsConfig = ChangeThresholdsConfig()
    database: str = ""  # SQLite file for execution_accuracy, relative to the data folder
    bootstrap_samples: int = _number(1000, low=10)

    @property
    def compares_with_last_blessed(self):
        """Whether a change from the last blessed model is demanded, so that the Evaluator decodes with that model too."""
        sections = (self.change_thresholds, self.slice_change_thresholds)
        return any(bound is not None for section in sections for bound in vars(section).values())


@dataclasses.dataclass(frozen=True)
class BaselineConfig:
    """A second model to compare with: the same recipe with another head. Empty: none is trained."""

    head: str = _choice("", *HEADS, default="")


@dataclasses.dataclass(frozen=True)
class LanguageModelConfig:
    """What the task `language_model` needs besides; see `keras_models.language_modeling` for the walk along the stream.

    Of the other sections it reads: data (files, `lowercase`), vocabulary (`target_size`, `min_count`, `protected_min_count`),
    model (`head`, `embedding_size`, `hidden_size`, `dropout`), training (`epochs`, `learning_rate`, `gradient_clip_norm`, `seed`,
    `mixed_precision`, `max_seconds`), decoding (both lists of buckets), baseline.
    """

    window: int = _number(
        100, low=1
    )  # words that the pointer sees, and steps of backpropagation where windows are read anew
    recurrent_layers: int = _number(2, low=1, high=8)
    zoneout_hidden: float = _number(0.025, low=0.0, high=1.0)
    zoneout_cell: float = _number(0.25, low=0.0, high=1.0)
    tie_weights: bool = False
    batch_size: int = _number(32, low=1)  # rows that the training stream is cut into
    stride: int = _number(100, low=1)  # words whose loss one update takes
    carry: bool = True  # carry states over; if not, read each window anew (stride 1 is then Merity et al.'s training)
    optimizer: str = _choice("adam", "sgd", default="adam")
    patience: int = _number(3, low=1)  # epochs without a lower validation perplexity after which training ends
    evaluation_batch_size: int = _number(1, low=1)  # rows of the validation stream; 1 is exact, more are faster
    unknown_word: str = "<unk>"  # the text's own word for unknown words, if the vocabulary has it
    max_perplexity: float = _number(0.0, low=0.0)  # a model with more is not pushed; 0 lets every one pass
    max_perplexity_change: float | None = None  # nor one that is above the last blessed model by more
    continuation_tokens: int = _number(50, low=1, high=1000)  # words that the signature `continue` writes
    temperature: float = _number(0.0, low=0.0)  # 0 writes the likeliest word; else words are drawn
    top_k: int = _number(0, low=0)
    top_p: float = _number(1.0, low=0.01, high=1.0)


TASKS = ("seq2seq", "language_model")
LANGUAGE_MODEL = "language_model"


@dataclasses.dataclass(frozen=True)
class Recipe:
    """All of a run's choices; `name` is the model's name when served."""

    name: str
    description: str = ""
    licence: str = ""  # of the data, in words, for the model card
    task: str = _choice(*TASKS, default="seq2seq")
    data: DataConfig = DataConfig()
    vocabulary: VocabularyConfig = VocabularyConfig()
    lexicon: LexiconConfig = LexiconConfig()
    model: ModelConfig = ModelConfig()
    segmentation: SegmentationConfig = SegmentationConfig()
    training: TrainingConfig = TrainingConfig()
    decoding: DecodingConfig = DecodingConfig()
    evaluation: EvaluationConfig = EvaluationConfig()
    baseline: BaselineConfig = BaselineConfig()
    language_model: LanguageModelConfig = LanguageModelConfig()

    def __post_init__(self):
        _check_together(self)

    def to_dict(self):
        """Returns the recipe as plain dicts, lists and scalars."""
        return json.loads(json.dumps(dataclasses.asdict(self)))

    def to_json(self):
        """Returns the recipe as one JSON string: how it travels into TFX components."""
        return json.dumps(self.to_dict(), sort_keys=True)

    @classmethod
    def from_json(cls, text):
        """Reads what `to_json` wrote."""
        return recipe_from_dict(json.loads(text))


def available_recipes():
    """Returns the names of the recipes that come with Verbatim."""
    return sorted(path.stem for path in RECIPES_DIRECTORY.glob("*.toml"))


def load_recipe(name_or_path, overrides=()):
    """Reads a recipe by name (`localization_en_fr`) or from a `.toml` file, then applies overrides.

    Args:
        name_or_path: a name out of `available_recipes()`, or the path of a TOML file.
        overrides: strings `section.key=value`; the value is TOML, or plain text.

    Returns:
        A `Recipe`.

    Raises:
        RecipeError: the recipe is missing, unreadable, or has an unknown key or impossible value.
    """
    path = pathlib.Path(name_or_path)
    if path.suffix != ".toml":
        path = RECIPES_DIRECTORY / f"{name_or_path}.toml"
        if not path.is_file():
            raise RecipeError(
                f"There is no recipe named '{name_or_path}'{_suggestion(str(name_or_path), available_recipes())} "
                f"The recipes are: {', '.join(available_recipes())}; or give the path of a .toml file."
            )
    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RecipeError(f"The recipe file {path} cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RecipeError(f"The recipe file {path} is not valid TOML: {error}.") from None
    tree.setdefault("name", path.stem)
    for override in overrides:
        _apply_override(tree, override)
    return recipe_from_dict(tree)


def recipe_from_dict(tree):
    """Builds a `Recipe` from nested dicts, checking every key and value.

    Raises:
        RecipeError: an unknown key or impossible value; the sentence names the key.
    """
    return _build(Recipe, tree, prefix="")


def with_database_path(recipe, data_path):
    """Returns the recipe with the paths of its database and lexicons absolute, or as addresses: where they lie beside the data.

    Args:
        recipe: a `Recipe`.
        data_path: what is given as data, absolute or an address: a folder, or a file or two in it.
    """
    is_folder = recipe.data.train_files or "://" in data_path or os.path.isdir(data_path)
    folder = data_path if is_folder else os.path.dirname(data_path.split(",")[0])

    def beside(path):
        return path if not path or os.path.isabs(path) or "://" in path else os.path.join(folder, path)

    data, evaluation = recipe.data, recipe.evaluation
    return dataclasses.replace(
        recipe,
        data=dataclasses.replace(data, dictionary=beside(data.dictionary), copy_lexicon=beside(data.copy_lexicon)),
        evaluation=dataclasses.replace(evaluation, database=beside(evaluation.database)),
    )


def section_from_json(section_class, text):
    """Reads one section of a recipe, such as a `DataConfig`, that travelled as JSON.

    Raises:
        RecipeError: an unknown key or impossible value.
    """
    return _build(section_class, json.loads(text), prefix="")


def text_settings(recipe):
    """Returns what the vocabularies need to know of a recipe, and the Transform graph too.

    Only these keys take part in their cache keys: a recipe that changes others keeps its features.

    Args:
        recipe: a `Recipe`.

    Returns:
        Dict that JSON can hold; `tokenizer` has the arguments of `pipeline.tokenization.Tokenizer`; `units`, where words are cut, what into.
    """
    settings = {"tokenizer": {"kind": recipe.data.tokenization, "lowercase": recipe.data.lowercase}}
    if recipe.data.source_tokenization:
        settings["source_tokenizer"] = {**settings["tokenizer"], "kind": recipe.data.source_tokenization}
    if recipe.task == LANGUAGE_MODEL:
        settings.update(task=recipe.task, unknown_word=recipe.language_model.unknown_word)
    if recipe.data.units != "words":
        settings["units"] = recipe.data.units
    return settings


def vocabulary_settings(recipe):
    """Returns what the vocabularies need to know of a recipe's data: `text_settings`, and, where the recipe has them,

    - `source_features`: the columns whose tags are counted;
    - `dictionary`, `copy_lexicon`: paths of lexicons;
    - `characters`: true, where words are composed of them;
    - `entities`: how many of a text's entities have an id of their own: as many as a text has tokens.
    """
    settings = text_settings(recipe)
    data = recipe.data
    if data.source_features:
        settings["source_features"] = list(data.source_features)
    settings.update({key: getattr(data, key) for key in ("dictionary", "copy_lexicon") if getattr(data, key)})
    if composes(recipe):
        settings["characters"] = True
    if _points_at("entities", recipe):
        settings["entities"] = recipe.decoding.length_buckets[-1]
    return settings


def training_recipe(recipe):
    """Returns the recipe as its training sees it: what a trained model is used for is as in a recipe that does not say.

    So a changed beam size, metric or threshold finds the trained model in the cache. The buckets' lengths stay: other keys are
    checked against them.
    """
    decoding = DecodingConfig(length_buckets=recipe.decoding.length_buckets)
    return export_recipe(dataclasses.replace(recipe, decoding=decoding, evaluation=EvaluationConfig()))


def export_recipe(recipe):
    """Returns the recipe as an exported model sees it: what only judges a model, or concerns another one, is as in a recipe without it.

    The metrics stay: an exported model names them. The lexicon stays where the model reads it.
    """
    evaluation = dataclasses.replace(
        EvaluationConfig(), metrics=recipe.evaluation.metrics, database=recipe.evaluation.database
    )
    language_model = dataclasses.replace(recipe.language_model, max_perplexity=0.0, max_perplexity_change=None)
    alone = dataclasses.replace(
        recipe,
        licence="",
        evaluation=evaluation,
        baseline=BaselineConfig(),
        language_model=language_model,
    )
    return alone if reads_lexicon(alone) else dataclasses.replace(alone, lexicon=LexiconConfig())


def composes(recipe):
    """Whether the vectors of source words are composed of their characters."""
    return recipe.task != LANGUAGE_MODEL and recipe.model.composition != "lookup"


def reads_lexicon(recipe):
    """Whether the lexicon of translations is part of the recipe's model or its baseline, not only an artifact beside them."""
    heads = (recipe.model.head, recipe.baseline.head)
    return recipe.decoding.replace_unknown == "lexicon" or any(head in LEXICON_HEADS for head in heads)


def segments(recipe):
    """Whether the recipe's encoder finds words among characters."""
    return recipe.model.body == "rnn" and recipe.model.encoder == "segmenting"


def imitates_scripts(recipe):
    """Whether its segmentation begins with runs of one script."""
    return segments(recipe) and recipe.segmentation.warm_up == "script"


def transform_settings(recipe):
    """Returns what the Transform graph needs to know of a recipe: the same cache rule as for `text_settings`.

    Labels that only some heads learn from are asked for where the recipe's model or its baseline has such a head.

    Returns:
        `text_settings`, and, where the recipe has them: `spans` (dict with `max_span` and `min_span`), `pointers`
        (`"dictionary"` or `"entities"`), `entity_feature` and `entities` (see `vocabulary_settings`), `translate` (`"dictionary"` or
        `"lexicon"`), `copy_lexicon` (true), `lexicon_rows` (true), `word_length` (places of a word's characters), `scripts` (true),
        `source_features` and `surface_features` (lists).
    """
    settings = text_settings(recipe)
    if "span_copy" in (recipe.model.head, recipe.baseline.head):
        settings["spans"] = {"max_span": recipe.model.max_span, "min_span": recipe.model.min_span}
    for pointers in ("dictionary", "entities"):
        if _points_at(pointers, recipe):
            settings["pointers"] = pointers
    if settings.get("pointers") == "entities":
        settings["entity_feature"] = recipe.model.entity_feature
        settings["entities"] = vocabulary_settings(recipe)["entities"]
    if recipe.decoding.replace_unknown in ("dictionary", "lexicon"):
        settings["translate"] = recipe.decoding.replace_unknown
    if any(head in LEXICON_HEADS for head in (recipe.model.head, recipe.baseline.head)):
        settings["lexicon_rows"] = True
    if composes(recipe):
        settings["word_length"] = recipe.model.word_length
    if imitates_scripts(recipe):
        settings["scripts"] = True
    if recipe.data.copy_lexicon:
        settings["copy_lexicon"] = True
    for key in ("source_features", "surface_features"):
        if getattr(recipe.data, key):
            settings[key] = list(getattr(recipe.data, key))
    return settings


def _points_at(pointers, recipe):
    return recipe.model.pointers == pointers and "pointer_softmax" in (recipe.model.head, recipe.baseline.head)


def _suggestion(word, known):
    close = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean '{close[0]}'?" if close else "."


def _apply_override(tree, override):
    key, separator, text = override.partition("=")
    key = key.strip()
    if not separator or not key:
        raise RecipeError(f"--set needs section.key=value, for example model.head=softmax; got '{override}'.")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text.strip()
    *sections, last = key.split(".")
    for section in sections:
        tree = tree.setdefault(section, {})
        if not isinstance(tree, dict):
            raise RecipeError(f"--set {override}: '{section}' is a value, not a section.")
    tree[last] = value


def _build(cls, tree, prefix):
    if not isinstance(tree, dict):
        raise RecipeError(f"The recipe key '{prefix.rstrip('.')}' must be a section with keys of its own.")
    fields = {field.name: field for field in dataclasses.fields(cls)}
    hints = typing.get_type_hints(cls)
    values = {}
    for key, value in tree.items():
        if key not in fields:
            raise RecipeError(f"The recipe has an unknown key '{prefix}{key}'{_suggestion(key, fields)}")
        if dataclasses.is_dataclass(hints[key]):
            values[key] = _build(hints[key], value, f"{prefix}{key}.")
        else:
            values[key] = _check_value(f"{prefix}{key}", value, hints[key], fields[key].metadata)
    if "name" in fields and not values.get("name"):
        raise RecipeError("The recipe needs a 'name'.")
    return cls(**values)


def _check_value(key, value, hint, metadata: types.MappingProxyType):
    if hint == tuple[str, ...]:
        if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) and item.strip() for item in value):
            raise RecipeError(f"The recipe key '{key}' must be a list of texts, such as [\"a\"]; got {value!r}.")
        if len(set(value)) < len(value):
            raise RecipeError(f"The recipe key '{key}' names something twice: {value!r}.")
        return tuple(value)
    if hint == float | None:
        if value is None:
            return None
        hint = float
    if typing.get_origin(hint) is tuple:
        good = isinstance(value, (list, tuple)) and value
        good = good and all(isinstance(item, int) and not isinstance(item, bool) and item > 0 for item in value)
        if not good or list(value) != sorted(set(value)):
            raise RecipeError(f"The recipe key '{key}' must be a rising list of positive whole numbers; got {value!r}.")
        return tuple(value)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value) if abs(value) < 1e300 else math.inf
    if not isinstance(value, hint) or (hint is not bool and isinstance(value, bool)):
        name = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}[hint]
        raise RecipeError(f"The recipe key '{key}' must be {name}; got {value!r}.")
    choices = metadata.get("choices")
    if choices and value not in choices:
        names = ", ".join(repr(choice) for choice in choices)
        raise RecipeError(f"The recipe key '{key}' must be one of {names}; got {value!r}.")
    low, high = metadata.get("low"), metadata.get("high")
    if hint is float and not math.isfinite(value):
        raise RecipeError(f"The recipe key '{key}' must be a finite number; got {value!r}.")
    if (low is not None and value < low) or (high is not None and value > high):
        limits = f"at least {low}" if high is None else f"between {low} and {high}"
        raise RecipeError(f"The recipe key '{key}' must be {limits}; got {value!r}.")
    return value


def _check_together(recipe):
    """Rules that span several keys, and the name's."""
    # It names folders, the pipeline, and the model in requests; a dot would part it in ML Metadata and Kubeflow.
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}", recipe.name):
        raise RecipeError(
            "The recipe key 'name' (by default the file's name) must be letters, digits, '-' and '_' alone, at most 100; "
            f"got {recipe.name!r}."
        )
    if recipe.task == LANGUAGE_MODEL:
        _check_language_model(recipe)
        return
    if recipe.data.format == "text":
        raise RecipeError(
            "The recipe key 'data.format' = \"text\" needs 'task' = \"language_model\": plain text has no pairs."
        )
    _check_data(recipe.data)
    _check_units(recipe)
    _check_slice_features(recipe.data)
    _check_evaluation(recipe.evaluation, recipe.data)
    # What is read must be trainable (the end takes one place) and decodable: nothing is left out later.
    for key, longest in (
        ("training.bucket_lengths", recipe.training.bucket_lengths[-1] - 1),
        ("decoding.length_buckets", recipe.decoding.length_buckets[-1]),
    ):
        if recipe.data.max_tokens > longest:
            raise RecipeError(
                f"The recipe key 'data.max_tokens' ({recipe.data.max_tokens}) must be at most {longest} to fit the last of "
                f"'{key}'."
            )
    shortest_limit = int(recipe.decoding.length_buckets[0] * recipe.decoding.max_length_factor)
    if recipe.decoding.min_length > shortest_limit + recipe.decoding.max_length_offset:
        raise RecipeError(
            f"The recipe key 'decoding.min_length' ({recipe.decoding.min_length}) exceeds the longest output of the first "
            "of 'decoding.length_buckets'."
        )
    if not recipe.decoding.temperature and recipe.decoding.n_best > recipe.decoding.beam_size:
        raise RecipeError(
            f"The recipe key 'decoding.n_best' ({recipe.decoding.n_best}) cannot exceed "
            f"'decoding.beam_size' ({recipe.decoding.beam_size})."
        )
    _check_model(recipe)
    _check_segmentation(recipe)
    if recipe.model.min_span > recipe.model.max_span:
        raise RecipeError(
            f"The recipe key 'model.min_span' ({recipe.model.min_span}) cannot exceed 'model.max_span' "
            f"({recipe.model.max_span})."
        )
    _check_lexicons(recipe)
    if recipe.training.learning_rate <= 0:
        raise RecipeError("The recipe key 'training.learning_rate' must be above 0.")


def _check_model(recipe):
    """Rules that span several keys of the model section, and those of training that depend on it."""
    model, training = recipe.model, recipe.training
    if model.composition.endswith("bilstm") and model.embedding_size % 2:
        raise RecipeError(
            "The recipe key 'model.embedding_size' must be even: 'bilstm' composes words in two directions."
        )
    if model.body == "transformer":
        for key, default in (
            ("attention", "none"),
            ("encoder", "cnn"),
            ("encoder", "segmenting"),
            ("selective_read", True),
        ):
            if getattr(model, key) == default:
                raise RecipeError(
                    f"The recipe key 'model.{key}' ({str(default).lower()}) needs 'model.body' = \"rnn\": the transformer has none."
                )
        if model.hidden_size % model.attention_heads or model.hidden_size % 2:
            raise RecipeError(
                f"The recipe key 'model.hidden_size' ({model.hidden_size}) must be even and divisible by 'model.attention_heads' "
                f"({model.attention_heads})."
            )
    elif model.encoder in ("rnn", "segmenting") and model.hidden_size % 2:
        raise RecipeError("The recipe key 'model.hidden_size' must be even: the encoder has two directions.")
    elif model.encoder == "cnn" and model.kernel_size % 2 == 0:
        raise RecipeError("The recipe key 'model.kernel_size' must be odd: as many words on either side.")
    for key, head in (("model.head", model.head), ("baseline.head", recipe.baseline.head)):
        if model.attention == "none" and head in ATTENTIVE_HEADS:
            raise RecipeError(
                f"The recipe key '{key}' ({head}) needs a 'model.attention' other than \"none\": it copies by it."
            )
    if model.selective_read and model.head != "joint_copy":
        raise RecipeError(
            f"The recipe key 'model.selective_read' needs 'model.head' = \"joint_copy\"; got {model.head!r}."
        )
    if training.large_vocabulary_size:
        # No target may be missing: a batch has at most so many words, and there are the special ids.
        least = max(training.batch_tokens // 2, training.bucket_lengths[-1]) + 4
        if training.large_vocabulary_size < least:
            raise RecipeError(
                f"The recipe key 'training.large_vocabulary_size' ({training.large_vocabulary_size}) must be at least {least}, so "
                "that it holds all words of an update: half of 'training.batch_tokens', or the last of 'training.bucket_lengths', "
                "and 4 more."
            )


def _check_segmentation(recipe):
    """Rules of the encoder that finds words, `model.encoder = "segmenting"`."""
    if not segments(recipe):
        return
    if recipe.data.source_tokenization != "characters":
        raise RecipeError(
            "The recipe key 'model.encoder' = \"segmenting\" needs 'data.source_tokenization' = \"characters\": it finds words among them."
        )
    for key, head in (("model.head", recipe.model.head), ("baseline.head", recipe.baseline.head)):
        if head not in ("", "softmax"):
            raise RecipeError(
                f"The recipe key '{key}' must be \"softmax\" for 'model.encoder' = \"segmenting\", which would copy single "
                f"characters; got {head!r}."
            )
    if recipe.model.attention == "none":
        raise RecipeError(
            "The recipe key 'model.encoder' = \"segmenting\" needs a 'model.attention' other than \"none\"."
        )
    if recipe.decoding.replace_unknown != "none":
        raise RecipeError(
            "The recipe key 'decoding.replace_unknown' must be \"none\" for 'model.encoder' = \"segmenting\": it would put single characters."
        )
    if recipe.decoding.temperature and recipe.segmentation.decoding_samples > 1:
        raise RecipeError(
            "The recipe key 'segmentation.decoding_samples' must be 1 with a 'decoding.temperature' above 0: drawn outputs do not compete."
        )
    if recipe.segmentation.baseline == "samples" and recipe.segmentation.samples < 2:
        raise RecipeError(
            "The recipe key 'segmentation.samples' must be at least 2 for 'segmentation.baseline' = \"samples\": a sample is compared "
            "with the others."
        )


def _check_language_model(recipe):
    """Rules of the task `language_model`."""
    settings = recipe.language_model
    if recipe.lexicon.kind != "none":
        raise RecipeError(
            "The recipe key 'lexicon.kind' must be \"none\" for a language model: its text is in one language."
        )
    if recipe.data.units != "words":
        raise RecipeError(
            f"The recipe key 'data.units' must be \"words\" for a language model; got {recipe.data.units!r}."
        )
    if recipe.data.format not in ("auto", "text"):
        raise RecipeError(
            f"The recipe key 'data.format' must be \"text\" for a language model; got {recipe.data.format!r}."
        )
    if recipe.data.tokenization != "whitespace":
        raise RecipeError(
            "The recipe key 'data.tokenization' must be \"whitespace\" for a language model: its text is tokenized already."
        )
    for split in ("train", "eval"):
        if not getattr(recipe.data, f"{split}_files"):
            raise RecipeError(f"The recipe key 'data.{split}_files' must name the {split} text of a language model.")
    for key, head in (("model.head", recipe.model.head), ("baseline.head", recipe.baseline.head)):
        if head not in ("softmax", "pointer_sentinel", ""):
            raise RecipeError(
                f"The recipe key '{key}' must be one of 'softmax', 'pointer_sentinel' for a language model; got {head!r}."
            )
    if not settings.carry and settings.stride > settings.window:
        raise RecipeError(
            f"The recipe key 'language_model.stride' ({settings.stride}) cannot exceed 'language_model.window' "
            f"({settings.window}) where 'language_model.carry' is false."
        )
    if recipe.decoding.length_buckets[-1] <= settings.window:
        raise RecipeError(
            f"The last of 'decoding.length_buckets' ({recipe.decoding.length_buckets[-1]}) must exceed "
            f"'language_model.window' ({settings.window}): a passage is measured after a window's words of context."
        )
    if settings.tie_weights and recipe.model.embedding_size != recipe.model.hidden_size:
        raise RecipeError(
            "The recipe key 'language_model.tie_weights' needs 'model.embedding_size' and 'model.hidden_size' to be equal."
        )
    if recipe.training.learning_rate <= 0:
        raise RecipeError("The recipe key 'training.learning_rate' must be above 0.")


def _check_data(data):
    """Rules that span several keys of the data section."""
    shares = {
        f"data.{split}_share": getattr(data, f"{split}_share")
        for split in ("eval", "test")
        if not getattr(data, f"{split}_files")
    }
    if any(share <= 0 for share in shares.values()):
        raise RecipeError(
            f"The recipe keys {' and '.join(map(repr, shares))} must be above 0 where no files are given for these splits: "
            "all splits are used."
        )
    if sum(shares.values()) >= 1:
        raise RecipeError(
            "The recipe keys 'data.eval_share' and 'data.test_share' must leave something to train on: their sum must be below 1."
        )
    if (data.eval_files or data.test_files) and not data.train_files:
        raise RecipeError(
            "The recipe keys 'data.eval_files' and 'data.test_files' need 'data.train_files': name the training files too."
        )
    if data.columns and (missing := [c for c in _named_columns(data) if c not in data.columns]):
        raise RecipeError(
            f"The recipe key 'data.columns' lacks {', '.join(map(repr, missing))}, which 'data.source_column', "
            "'data.target_column', 'data.source_features' or 'data.slice_features' name."
        )
    if data.source_features and data.tokenization != "whitespace":
        raise RecipeError(
            "The recipe key 'data.source_features' needs 'data.tokenization' = \"whitespace\": tags belong to the tokens of a "
            "text that is tokenized already."
        )
    if reserved := set(data.extra_columns) & {
        "source",
        "target",
        "file",
        "line",
        data.source_column,
        data.target_column,
    }:
        raise RecipeError(
            f"The recipe keys 'data.source_features' and 'data.slice_features' cannot name {', '.join(map(repr, sorted(reserved)))}: "
            "this column has another use; rename it."
        )


def _check_units(recipe):
    """What goes by words needs words as units."""
    data = recipe.data
    if data.units == "words" and not data.source_tokenization:
        return
    if data.units != "words" and data.source_tokenization:
        raise RecipeError(
            "The recipe key 'data.source_tokenization' needs 'data.units' = \"words\": each cuts the source."
        )
    if recipe.vocabulary.joint and data.source_tokenization:
        raise RecipeError(
            "The recipe key 'vocabulary.joint' must be false: 'data.source_tokenization' cuts the two sides differently."
        )
    blamed = "'data.source_tokenization' = \"\"" if data.source_tokenization else "'data.units' = \"words\""
    for key, uses_words in (
        ("lexicon.kind", recipe.lexicon.kind != "none"),
        ("data.dictionary", bool(recipe.data.dictionary)),
        ("data.copy_lexicon", bool(recipe.data.copy_lexicon)),
        ("data.source_features", bool(recipe.data.source_features)),
        ("data.surface_features", bool(recipe.data.surface_features)),
        ("evaluation.slices", "unknown_words" in recipe.evaluation.slices),
    ):
        if uses_words:
            raise RecipeError(f"The recipe key '{key}' goes by words: it needs {blamed}.")


def _check_slice_features(data):
    """Rules of `data.slice_features`: they become features of the examples beside the texts and their tags."""
    for name in data.slice_features:
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) or name in SLICES:
            raise RecipeError(
                f"The recipe key 'data.slice_features' cannot name {name!r}: a column must be called by letters, digits and '_', and "
                f"none of {', '.join(SLICES)}; rename the column."
            )
        if name in data.source_features:
            raise RecipeError(f"The recipe keys 'data.source_features' and 'data.slice_features' both name {name!r}.")


def _check_lexicons(recipe):
    """Rules about what is copied, what stands for a copy, and the files that this takes."""
    data, model = recipe.data, recipe.model
    if (model.pointers == "dictionary" or recipe.decoding.replace_unknown == "dictionary") and not data.dictionary:
        key = "model.pointers" if model.pointers == "dictionary" else "decoding.replace_unknown"
        raise RecipeError(
            f"The recipe key '{key}' = \"dictionary\" needs a file of translations: name it in 'data.dictionary'."
        )
    for key, value in (("model.head", model.head), ("baseline.head", recipe.baseline.head)):
        if value in LEXICON_HEADS and recipe.lexicon.kind == "none":
            raise RecipeError(
                f"The recipe key '{key}' = \"{value}\" needs a lexicon: set 'lexicon.kind' to learned, manual or hybrid."
            )
    if recipe.decoding.replace_unknown == "lexicon" and recipe.lexicon.kind == "none":
        raise RecipeError(
            "The recipe key 'decoding.replace_unknown' = \"lexicon\" needs a lexicon: set 'lexicon.kind' to learned, manual or hybrid."
        )
    if recipe.lexicon.kind in ("manual", "hybrid") and not data.dictionary:
        raise RecipeError(
            f"The recipe key 'lexicon.kind' = \"{recipe.lexicon.kind}\" needs a file of translations: name it in 'data.dictionary'."
        )
    if model.pointers == "entities" and model.entity_feature not in data.source_features:
        raise RecipeError(
            "The recipe key 'model.entity_feature' must name one of 'data.source_features' when 'model.pointers' is \"entities\"; "
            f"got {model.entity_feature!r}."
        )
    if recipe.decoding.replace_unknown != "none" and model.body == "rnn" and model.attention == "none":
        raise RecipeError(
            f"The recipe key 'decoding.replace_unknown' = \"{recipe.decoding.replace_unknown}\" puts what attention looks at: it needs a "
            "'model.attention' other than \"none\"."
        )
    if recipe.decoding.replace_unknown in ("dictionary", "lexicon"):
        for key, head in (("model.head", model.head), ("baseline.head", recipe.baseline.head)):
            # A search does not say which of the tokens of the source that it writes stand for [UNK].
            copies_translations = head == "pointer_softmax" and model.pointers == "dictionary"
            if head not in ("", "softmax", "lexicon_bias", "lexicon_linear") and not copies_translations:
                raise RecipeError(
                    f"The recipe key 'decoding.replace_unknown' = \"{recipe.decoding.replace_unknown}\" would translate all that is copied: it "
                    "fits heads softmax, lexicon_bias and lexicon_linear, and pointer_softmax with 'model.pointers' = \"dictionary\"; but "
                    f"'{key}' is {head!r}."
                )
    for name in data.surface_features:
        if name not in ("case",):
            raise RecipeError(f"The recipe key 'data.surface_features' can name 'case' alone; got {name!r}.")
        if name in data.source_features:
            raise RecipeError(f"The recipe keys 'data.surface_features' and 'data.source_features' both name {name!r}.")
    if "case" in data.surface_features and data.lowercase:
        raise RecipeError(
            "The recipe key 'data.surface_features' names 'case', which 'data.lowercase' leaves nothing of."
        )
    for name in data.source_features:
        # They are names of a model's inputs, beside its own.
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) or name in _OWN_SOURCE_FEATURES:
            raise RecipeError(
                f"The recipe key 'data.source_features' cannot name {name!r}: a column of tags must be called by letters, digits and "
                f"'_', and none of {', '.join(_OWN_SOURCE_FEATURES)}; rename the column."
            )


# `source_ids` and its like are features of the graph itself.
_OWN_SOURCE_FEATURES = (
    "ids",
    "tokens",
    "extended_ids",
    "feed_ids",
    "copy_tokens",
    "protected",
    "lexicon_rows",
    "characters",
)


def _check_evaluation(evaluation, data):
    """Rules that span several keys of the evaluation section."""
    if not evaluation.metrics:
        raise RecipeError("The recipe key 'evaluation.metrics' must name a metric at least.")
    for name in evaluation.metrics:
        if name not in METRICS:
            raise RecipeError(
                f"The recipe key 'evaluation.metrics' names an unknown metric '{name}'{_suggestion(name, METRICS)} "
                f"The metrics are: {', '.join(METRICS)}."
            )
    for section in ("thresholds", "change_thresholds", "slice_thresholds", "slice_change_thresholds"):
        bounds = {name: bound for name, bound in vars(getattr(evaluation, section)).items() if bound is not None}
        for name in bounds:
            if name not in evaluation.metrics:
                raise RecipeError(
                    f"The recipe key 'evaluation.{section}.{name}' needs '{name}' among 'evaluation.metrics': what is not measured "
                    "stops nothing."
                )
        if bounds and section.startswith("slice_") and not evaluation.slices:
            raise RecipeError(
                f"The recipe key 'evaluation.{section}.{next(iter(bounds))}' needs 'evaluation.slices': name what to slice by."
            )
    known = (*SLICES, *data.slice_features)
    for name in evaluation.slices:
        if name not in known:
            raise RecipeError(
                f"The recipe key 'evaluation.slices' names an unknown slice '{name}'{_suggestion(name, known)} It can name "
                f"{', '.join(known)}; a column of the data must be named in 'data.slice_features' too."
            )
    if "execution_accuracy" in evaluation.metrics and not evaluation.database:
        raise RecipeError(
            "The recipe key 'evaluation.database' must name an SQLite file: the metric 'execution_accuracy' runs queries on it."
        )


def _named_columns(data):
    return (data.source_column, data.target_column, *data.extra_columns)
