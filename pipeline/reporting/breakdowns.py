"""Quality by a word's frequency in training and by length: which metrics measure it, and its names.

Tables and charts show the same breakdowns.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, cast

from pipeline.reporting.facts import SystemFacts


@dataclasses.dataclass(frozen=True)
class Breakdown:
    """One way to take a system's quality apart.

    Attributes:
        metric: the metric whose details have it; "" where no single metric does.
        key: where the details and a system's facts have the list of its parts.
        category, value, weight: the keys of a part's name, of its value, and of how many words it
            stands for.
        title: a table's.
        chart_title, x, y: a chart's title and what its axes show.
    """

    metric: str
    key: str
    category: str
    value: str
    weight: str
    title: str
    chart_title: str
    x: str
    y: str


@dataclasses.dataclass(frozen=True)
class Part:
    """One part of a breakdown: its name, its value, and how many words it stands for."""

    name: str
    value: float | None
    weight: int


_BY_FREQUENCY = ("By word frequency", "times that training saw the word")
_BY_LENGTH = ("By length", "words of the reference")
F1_BY_FREQUENCY = Breakdown(
    "word_f1_by_frequency",
    "by_frequency",
    "seen",
    "f1",
    "reference_words",
    "Word F1 by how often training saw it",
    *_BY_FREQUENCY,
    "F1 of words",
)
BLEU_BY_LENGTH = Breakdown(
    "bleu_by_length",
    "by_length",
    "words",
    "bleu",
    "reference_length",
    "BLEU by words of the reference",
    *_BY_LENGTH,
    "BLEU",
)
F1_BY_LENGTH = Breakdown(
    "word_f1_by_length",
    "f1_by_length",
    "words",
    "f1",
    "reference_words",
    "Word F1 by words of the reference",
    *_BY_LENGTH,
    "F1 of words",
)
PERPLEXITY_BY_FREQUENCY = Breakdown(
    "",
    "log_perplexity_by_frequency",
    "seen",
    "log_perplexity",
    "words",
    "",
    *_BY_FREQUENCY,
    "log perplexity",
)
#: In the order of the page.
CHARTS = (F1_BY_FREQUENCY, BLEU_BY_LENGTH, F1_BY_LENGTH, PERPLEXITY_BY_FREQUENCY)
#: In the order of the terminal.
TABLES = (BLEU_BY_LENGTH, F1_BY_LENGTH, F1_BY_FREQUENCY)


def parts_of(breakdown: Breakdown, facts: SystemFacts | Mapping[str, Any]) -> list[Part]:
    """Returns the parts in a system's facts, or in a metric's details; none where they lack it."""
    found = cast(Mapping[str, Any], facts).get(breakdown.key) or ()
    return list(_parts(breakdown, found))


def _parts(breakdown: Breakdown, found: Any) -> Iterator[Part]:
    for part in found:
        name, value = part[breakdown.category], part[breakdown.value]
        yield Part(name, value, part[breakdown.weight] or 0)
