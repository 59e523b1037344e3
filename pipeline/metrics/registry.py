"""The metrics by their names: what they are called, what makes them, and what they need."""

import difflib
import functools

from pipeline.metrics.accuracy import ExactMatch, ExecutionAccuracy, TokenAccuracy
from pipeline.metrics.base import ScoringError
from pipeline.metrics.copying import CopyPrecision, CopyRate, Fidelity, UnseenCopies
from pipeline.metrics.frequency import RareWordRecall, WordF1ByFrequency, WordF1ByLength
from pipeline.metrics.nist import Nist
from pipeline.metrics.perplexity import Perplexity
from pipeline.metrics.repetition import RepetitionRate
from pipeline.metrics.rouge import Rouge
from pipeline.metrics.sacrebleu_metrics import Bleu, BleuByLength, Chrf, Ter

_FACTORIES = {
    "bleu": Bleu,
    "chrf": Chrf,
    "bleu_by_length": BleuByLength,
    "nist": Nist,
    "ter": Ter,
    "rouge1": functools.partial(Rouge, "rouge1"),
    "rouge2": functools.partial(Rouge, "rouge2"),
    "rougeL": functools.partial(Rouge, "rougeL"),
    "rouge1_recall": functools.partial(Rouge, "rouge1", "recall"),
    "rouge2_recall": functools.partial(Rouge, "rouge2", "recall"),
    "rougeL_recall": functools.partial(Rouge, "rougeL", "recall"),
    "exact_match": ExactMatch,
    "token_accuracy": TokenAccuracy,
    "execution_accuracy": ExecutionAccuracy,
    "placeholder_fidelity": functools.partial(Fidelity, "placeholders"),
    "protected_fidelity": functools.partial(Fidelity, "protected"),
    "copy_rate": CopyRate,
    "copy_precision": CopyPrecision,
    "unseen_copies": UnseenCopies,
    "rare_word_recall": RareWordRecall,
    "word_f1_by_frequency": WordF1ByFrequency,
    "word_f1_by_length": WordF1ByLength,
    "repetition_rate": RepetitionRate,
    "perplexity": functools.partial(Perplexity, "token"),
    "word_perplexity": functools.partial(Perplexity, "word"),
}
_GROUPS = {"rouge": ("rouge1", "rouge2", "rougeL")}

#: Every name that `pipeline.metrics.scoring.score` takes; `rouge` stands for `rouge1`, `rouge2` and
#: `rougeL`.
METRICS = (
    "bleu",
    "chrf",
    "ter",
    "rouge",
    *(name for name in _FACTORIES if name not in ("bleu", "chrf", "ter")),
)

#: What people call each metric.
LABELS = {
    "bleu": "BLEU",
    "chrf": "chrF",
    "bleu_by_length": "BLEU (by length)",
    "nist": "NIST",
    "ter": "TER",
    "rouge1": "ROUGE-1 F1",
    "rouge2": "ROUGE-2 F1",
    "rougeL": "ROUGE-L F1",
    "rouge1_recall": "ROUGE-1 recall",
    "rouge2_recall": "ROUGE-2 recall",
    "rougeL_recall": "ROUGE-L recall",
    "exact_match": "Exact match",
    "token_accuracy": "Token accuracy",
    "execution_accuracy": "Execution accuracy",
    "placeholder_fidelity": "Placeholder fidelity",
    "protected_fidelity": "Protected-token fidelity",
    "copy_rate": "Copy rate",
    "copy_precision": "Copy precision",
    "unseen_copies": "Unseen words copied",
    "rare_word_recall": "Rare-word recall",
    "word_f1_by_frequency": "Word F1",
    "word_f1_by_length": "Word F1 (by length)",
    "repetition_rate": "Repetition rate",
    "perplexity": "Perplexity",
    "word_perplexity": "Perplexity per word",
    # Measured by `pipeline.reporting.results`, from a model's attention.
    "attention_entropy": "Attention entropy, bits",
    # Of language models alone; measured by `pipeline.evaluation.perplexity_of_text`, not here.
    "perplexity_with_copies": "Perplexity, copied words credited",
    "passage_perplexity": "Perplexity of passages",
    "validation_perplexity": "Perplexity of the validation stream",
}

#: What describes a model and is better neither large nor small.
NEUTRAL = ("attention_entropy", "copy_rate")


def create_metric(name, **options):
    """Returns the `Metric` of a name.

    Args:
        name: a name out of `METRICS`, groups (`rouge`) excepted.
        **options: `language`, `tokenize`, `tokenization`, `database`, `training_words`; a metric
            ignores those that it has no use for.

    Raises:
        ScoringError: there is no such metric or tokenizer.
    """
    if name not in _FACTORIES:
        raise _unknown_metric(name)
    return _FACTORIES[name](**options)


def _unknown_metric(name):
    by_lower_case = {known.lower(): known for known in METRICS}
    close = [
        by_lower_case[found]
        for found in difflib.get_close_matches(name.lower(), by_lower_case, n=1)
    ]
    meant = f"did you mean '{close[0]}'? The" if close else "the"
    return ScoringError(f"There is no metric '{name}'; {meant} metrics are {', '.join(METRICS)}.")


def options_of(recipe):
    """Returns the options, for `pipeline.metrics.scoring.score` and `create_metric`, with which a
    recipe's outputs are measured.
    """
    return {
        "language": recipe.data.target_language,
        "tokenization": recipe.data.tokenization,
        "database": recipe.evaluation.database or None,
    }


def metric_class(name):
    """Returns the class of a metric: what it needs, its unit and direction;
    Bleu for an unknown name.
    """
    factory = _FACTORIES.get(name, Bleu)
    return getattr(factory, "func", factory)


def unit_and_direction(name):
    """Returns (`points` or `share`, whether lower is better) of a metric;
    those of BLEU for an unknown name.
    """
    return metric_class(name).unit, metric_class(name).lower_is_better


def expand_metric_names(names):
    """Returns single metric names in order, once each, with groups such as `rouge` taken apart.

    Args:
        names: names, or one string with commas.

    Raises:
        ScoringError: a name is unknown, or there is none.
    """
    if isinstance(names, str):
        names = names.split(",")
    expanded = []
    for name in filter(None, (name.strip() for name in names)):
        for single in _GROUPS.get(name, (name,)):
            if single not in _FACTORIES:
                raise _unknown_metric(single)
            if single not in expanded:
                expanded.append(single)
    if not expanded:
        raise ScoringError(f"No metric is named; the metrics are {', '.join(METRICS)}.")
    return expanded
