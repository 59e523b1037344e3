"""Files given as test split: they are measured whole, however long their texts are."""

import sys

from pipeline.readers.formats import read_unit
from pipeline.readers.input_plan import InputPlan
from pipeline.readers.records import Pair
from pipeline.recipes.sections import DataConfig
from pipeline.text import tokenization

# Lengths are rounded up to a multiple, so that one more word is not another model.
_STEP = 8


def longest_text(plan: InputPlan, config: DataConfig) -> int:
    """Returns the most tokens that a text of the given test files has, 0 without such files."""
    tokenizers = [tokenization.Tokenizer.of(config, side) for side in ("source", "target")]
    longest = 0
    for unit in plan.units:
        if unit.split != "test":
            continue
        for record in read_unit(unit, config, sys.maxsize):
            if isinstance(record, Pair):
                texts = (record.source, record.target)
                counts = (one.count(text) for one, text in zip(tokenizers, texts))
                longest = max(longest, *counts)
    return longest


def with_longer_bucket(buckets: tuple[int, ...], longest: int) -> tuple[int, ...]:
    """Returns rising lengths of which the last holds a text of `longest` tokens."""
    if longest <= buckets[-1]:
        return buckets
    return (*buckets, -(-longest // _STEP) * _STEP)
