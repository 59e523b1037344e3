"""What a recipe can name: tasks, formats, heads, compositions, slices and metrics."""

# The heads that a recipe can name. `softmax` copies nothing. `keras_models.heads.HEADS` has the
# layers.
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
# Heads that read the lexicon of translations.
LEXICON_HEADS = ("lexicon_bias", "lexicon_linear", "lexicon_copy")
# Heads that copy or translate by the decoder's attention, so they need one.
ATTENTIVE_HEADS = ("pointer_generator", "pointer_softmax", *LEXICON_HEADS)
# Heads that score copies themselves, without the decoder's attention.
POINTING_HEADS = ("joint_copy", "pointer_network", "pointer_sentinel")
# Functions that compose a source word's vector of its characters; alone, or added to the looked-up
# vector.
CHARACTER_COMPOSITIONS = ("sum", "average", "max", "bilstm", "cnn", "ngram")
COMPOSITIONS = (
    "lookup",
    *CHARACTER_COMPOSITIONS,
    *(f"lookup+{name}" for name in CHARACTER_COMPOSITIONS),
)
# The formats that `pipeline.readers` reads.
FORMATS = ("tsv", "csv", "jsonl", "lines", "gettext", "tmx", "xliff")
# Where words end; `pipeline.text.word_patterns` has the patterns.
RARE_WORDS = ("cut", "whole", "parts", "letters")
# The dialects of placeholders; `pipeline.text.placeholders` has them.
PLACEHOLDER_DIALECTS = (
    *("template", "icu", "fluent", "javascript", "python-brace", "csharp", "ruby", "symfony"),
    *("drupal", "c", "objc", "java", "python", "php", "qt", "strftime", "laravel", "at"),
    *("i18next", "react", "shell", "variables", "mediawiki"),
)
# Dialects that do not match prose. Left out are names after `!` and `$` and numbers after `$`,
# which look like exclamations and prices, and dates, which languages order differently.
DEFAULT_PLACEHOLDERS = tuple(
    name
    for name in PLACEHOLDER_DIALECTS
    if name not in ("drupal", "strftime", "variables", "mediawiki")
)
TASKS = ("seq2seq", "language_model")

#: Slices that need no column: how many tokens the source has, whether the model's source vocabulary
#: lacks one of them, and the file of the pair.
SLICES = ("source_length", "unknown_words", "file")
# The highest value of each metric of `pipeline.metrics` that the Evaluator measures; None if there
# is none.
METRIC_RANGES = {
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
    "tag_validity": 1.0,
    "term_fidelity": 1.0,
    "copy_rate": 1.0,
    "copy_precision": 1.0,
    "repetition_rate": 1.0,
    "perplexity": None,
    "word_perplexity": None,
    "unseen_copies": 1.0,
    "rare_word_recall": 1.0,
    "word_f1_by_frequency": 1.0,
    "word_f1_by_length": 1.0,
}

#: Names of metrics, as in `pipeline.metrics.registry`.
METRICS = tuple(METRIC_RANGES)

#: Metrics by which a training can choose its best epoch: those of outputs and references alone.
SELECTION_METRICS = (
    "bleu",
    "chrf",
    "ter",
    "rouge1",
    "rouge2",
    "rougeL",
    "exact_match",
    "token_accuracy",
)

#: The parts of a network that `training.frozen` can name.
PARTS = ("embeddings", "encoder", "decoder")
#: The value of `training.initialize_from` that names the newest version in the run's own folder.
LAST_PUSHED = "last pushed"
