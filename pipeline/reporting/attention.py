"""An exported model's attention on texts from the whole test split."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from pipeline.export.served_model import Answer
from pipeline.metrics.base import MetricResult
from pipeline.reporting.facts import HeatMap, MetricFacts

if TYPE_CHECKING:
    from pipeline.export.served_model import ServedModel

HEAT_MAPS = 4
# The number of texts of the test split whose attention is measured.
EXPLAINED = 200


def explain(
    model: "ServedModel", sources: Sequence[str], features: Mapping[str, Sequence[str]]
) -> list[Answer]:
    """Returns answers of the signature `explain`, whose key `attention` says where it lay.

    Args:
        model: the model.
        sources: the texts of the test split, of which it takes some at equal distances.
        features: see `ServedModel.predict`.
    """
    chosen = range(0, len(sources), -(-len(sources) // EXPLAINED) or 1)
    return model.predict(
        [sources[index] for index in chosen],
        signature="explain",
        features={column: [tags[index] for index in chosen] for column, tags in features.items()},
    )


def attention_entropy(explained: Sequence[Answer]) -> dict[str, MetricFacts]:
    """Returns how widely a model spreads its attention, as the metric `attention_entropy`.

    It is empty for a model without attention.

        H = 1/N sum_t - sum_s a_ts log2 a_ts          bits for each of N output tokens (Arthur 2018,
        section 3.3.2)

    0 bits: it attends to one token; log2(source length) bits: to all equally. It does not measure
    quality by itself.

    Args:
        explained: answers of the signature `explain`, whose rows of `attention` may be short of 1
            by what a gate took.
    """
    bits, tokens = 0.0, 0
    for answer in explained:
        if not answer["tokens"]:
            continue
        rows = np.asarray(answer["attention"], "float64")
        rows = rows[rows.sum(-1) > 0]
        rows = rows / rows.sum(-1, keepdims=True)
        bits -= float(np.sum(rows * np.log2(np.where(rows > 0, rows, 1.0))))
        tokens += len(rows)
    if not tokens:
        return {}
    result = MetricResult(
        "attention_entropy",
        bits / tokens,
        signature=f"bits for each output token|{len(explained)} texts from the whole test split",
        details={"tokens": tokens, "texts": len(explained)},
    )
    return {result.name: cast(MetricFacts, result.to_dict())}


def heat_maps(system: str, explained: Sequence[Answer]) -> list[HeatMap]:
    """Returns a system's attention on a few texts of which it copied several words."""

    def copied(answer: Answer) -> int:
        return sum(position >= 0 for position in answer["copied_from"])

    fitting = [answer for answer in explained if 5 <= len(answer["tokens"]) <= 14]
    return [
        {
            "system": system,
            "source_tokens": answer["source_tokens"],
            "tokens": answer["tokens"],
            "attention": answer["attention"],
            "copy_probability": answer["copy_probability"],
            "copied_from": answer["copied_from"],
        }
        for answer in sorted(fitting, key=copied, reverse=True)[:HEAT_MAPS]
    ]
