"""Data files that tests write, plan and read."""

import pytest

from pipeline.readers import DataError
from pipeline.readers.formats import read_plan
from pipeline.readers.planning import plan_inputs
from pipeline.readers.records import Pair, Reject
from pipeline.recipes.sections import DataConfig


def config(**changes):
    return DataConfig(**changes)


def read(path, data_config=None):
    """Plans and reads; returns (pairs, rejects)."""
    data_config = data_config or config()
    records = list(read_plan(plan_inputs(path, data_config), data_config))
    pairs = [record for record in records if isinstance(record, Pair)]
    return pairs, [record for record in records if isinstance(record, Reject)]


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def fails(path, *words, **changes):
    """Checks that planning fails with one sentence that holds the words."""
    with pytest.raises(DataError) as caught:
        plan_inputs(path, config(**changes))
    message = str(caught.value)
    assert message.endswith(".") and "\n" not in message
    for word in words:
        assert str(word) in message


TAGS = {"tokenization": "whitespace", "source_features": ("pos", "answer")}
