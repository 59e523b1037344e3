"""The metrics by name: their labels, constructors and needs.

A new metric is a class in a module of this package, a line in `_METRICS`, and a line in
`pipeline.recipes.choices.METRIC_RANGES`, by which a recipe can demand it.
"""

import dataclasses
import difflib
import functools
from collections.abc import Callable, Iterable
from typing import Any

from pipeline.metrics.accuracy import ExactMatch, ExecutionAccuracy, TokenAccuracy
from pipeline.metrics.base import AnyMetric, ScoringError
from pipeline.metrics.copying import CopyPrecision, CopyRate, Fidelity, UnseenCopies
from pipeline.metrics.frequency import RareWordRecall, WordF1ByFrequency, WordF1ByLength
from pipeline.metrics.nist import Nist
from pipeline.metrics.perplexity import Perplexity
from pipeline.metrics.repetition import RepetitionRate
from pipeline.metrics.rouge import Rouge
from pipeline.metrics.sacrebleu_metrics import Bleu, BleuByLength, Chrf, Ter
from pipeline.metrics.scored_texts import TrainingWords
from pipeline.metrics.scoring_options import DEFAULT_OPTIONS, ScoringOptions
from pipeline.metrics.tag_validity import TagValidity
from pipeline.metrics.term_fidelity import TermFidelity


@dataclasses.dataclass(frozen=True)
class _Entry:
    """One metric.

    Attributes:
        label: its name for people.
        make: makes it from `ScoringOptions`, and from training words if it needs them.
        is_neutral: whether neither a high nor a low value is better.
    """

    label: str
    make: Callable[..., AnyMetric]
    is_neutral: bool = False

    @property
    def kind(self) -> type[AnyMetric]:
        """Its class."""
        make: Any = self.make
        kind: type[AnyMetric] = getattr(make, "func", make)
        return kind


_METRICS = {
    "bleu": _Entry("BLEU", Bleu),
    "chrf": _Entry("chrF", Chrf),
    "bleu_by_length": _Entry("BLEU (by length)", BleuByLength),
    "nist": _Entry("NIST", Nist),
    "ter": _Entry("TER", Ter),
    "rouge1": _Entry("ROUGE-1 F1", functools.partial(Rouge, "rouge1", "f1")),
    "rouge2": _Entry("ROUGE-2 F1", functools.partial(Rouge, "rouge2", "f1")),
    "rougeL": _Entry("ROUGE-L F1", functools.partial(Rouge, "rougeL", "f1")),
    "rouge1_recall": _Entry("ROUGE-1 recall", functools.partial(Rouge, "rouge1", "recall")),
    "rouge2_recall": _Entry("ROUGE-2 recall", functools.partial(Rouge, "rouge2", "recall")),
    "rougeL_recall": _Entry("ROUGE-L recall", functools.partial(Rouge, "rougeL", "recall")),
    "exact_match": _Entry("Exact match", ExactMatch),
    "token_accuracy": _Entry("Token accuracy", TokenAccuracy),
    "execution_accuracy": _Entry("Execution accuracy", ExecutionAccuracy),
    "placeholder_fidelity": _Entry(
        "Placeholder fidelity", functools.partial(Fidelity, "placeholders")
    ),
    "protected_fidelity": _Entry(
        "Protected-token fidelity", functools.partial(Fidelity, "protected")
    ),
    "tag_validity": _Entry("Tag validity", TagValidity),
    "term_fidelity": _Entry("Term fidelity", TermFidelity),
    "copy_rate": _Entry("Copy rate", CopyRate, is_neutral=True),
    "copy_precision": _Entry("Copy precision", CopyPrecision),
    "unseen_copies": _Entry("Unseen words copied", UnseenCopies),
    "rare_word_recall": _Entry("Rare-word recall", RareWordRecall),
    "word_f1_by_frequency": _Entry("Word F1", WordF1ByFrequency),
    "word_f1_by_length": _Entry("Word F1 (by length)", WordF1ByLength),
    "repetition_rate": _Entry("Repetition rate", RepetitionRate),
    "perplexity": _Entry("Perplexity", functools.partial(Perplexity, "token")),
    "word_perplexity": _Entry("Perplexity per word", functools.partial(Perplexity, "word")),
}
_GROUPS = {"rouge": ("rouge1", "rouge2", "rougeL")}

#: Every name that `pipeline.metrics.scoring.score` takes; `rouge` stands for `rouge1`, `rouge2` and
#: `rougeL`.
METRICS = (
    "bleu",
    "chrf",
    "ter",
    "rouge",
    *(name for name in _METRICS if name not in ("bleu", "chrf", "ter")),
)

#: Each metric's name for people.
LABELS = {
    **{name: entry.label for name, entry in _METRICS.items()},
    # Measured by `pipeline.reporting.results`, from a model's attention.
    "attention_entropy": "Attention entropy, bits",
    # Measured by `pipeline.metrics.segmentation_scores`, of words that an encoder finds.
    "word_f1": "F1 of words found",
    "boundary_f1": "F1 of boundaries found",
    # Measured by `pipeline.metrics.all_references`, where a source stands in several pairs.
    "bleu_all_references": "BLEU, all references of a source",
    # Of language models alone; measured by `pipeline.evaluation.perplexity_of_text`, not here.
    "perplexity_with_copies": "Perplexity, copied words credited",
    "passage_perplexity": "Perplexity of passages",
    "validation_perplexity": "Perplexity of the validation stream",
}

#: Metrics of which neither a high nor a low value is better.
NEUTRAL = (
    "attention_entropy",
    *(name for name, entry in _METRICS.items() if entry.is_neutral),
)


def metric_names() -> tuple[str, ...]:
    """Returns the names of all single metrics."""
    return tuple(_METRICS)


def create_metric(
    name: str,
    options: ScoringOptions = DEFAULT_OPTIONS,
    training_words: TrainingWords | None = None,
) -> AnyMetric:
    """Returns the `Metric` of a name.

    Args:
        name: a name from `METRICS`, except groups (`rouge`).
        options: how outputs are scored.
        training_words: the words seen in training, for a metric that needs them; none by default.

    Raises:
        ScoringError: there is no such metric or tokenizer.
    """
    if name not in _METRICS:
        raise _unknown_metric(name)
    entry = _METRICS[name]
    if entry.kind.needs_training_words:
        return entry.make(options, {} if training_words is None else training_words)
    return entry.make(options)


def _unknown_metric(name: str) -> ScoringError:
    by_lower_case = {known.lower(): known for known in METRICS}
    close = difflib.get_close_matches(name.lower(), by_lower_case, n=1)
    meant = f"did you mean '{by_lower_case[close[0]]}'? The" if close else "the"
    return ScoringError(f"There is no metric '{name}'; {meant} metrics are {', '.join(METRICS)}.")


def metric_class(name: str) -> type[AnyMetric]:
    """Returns the class of a metric, whose attributes tell its needs; Bleu for an unknown name."""
    return _METRICS[name].kind if name in _METRICS else Bleu


def unit_and_direction(name: str) -> tuple[str, bool]:
    """Returns (`points` or `share`, whether lower is better) of a metric.

    For an unknown name they are those of BLEU.
    """
    return metric_class(name).unit, metric_class(name).lower_is_better


def expand_metric_names(names: str | Iterable[str]) -> list[str]:
    """Returns single metric names in order, each once, with groups such as `rouge` expanded.

    Args:
        names: names, or one string with commas.

    Raises:
        ScoringError: a name is unknown, or there is none.
    """
    if isinstance(names, str):
        names = names.split(",")
    expanded: list[str] = []
    for name in filter(None, (name.strip() for name in names)):
        for single in _GROUPS.get(name, (name,)):
            if single not in _METRICS:
                raise _unknown_metric(single)
            if single not in expanded:
                expanded.append(single)
    if not expanded:
        raise ScoringError(f"Name at least one metric; the metrics are {', '.join(METRICS)}.")
    return expanded
