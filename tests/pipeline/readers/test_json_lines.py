"""JSON Lines files: what is wrong with a line."""

import json

from pipeline.readers.records import Pair, format_reject
from tests.pipeline.readers.data_files import read, write


def test_jsonl(tmp_path):
    values = [
        {"source": "Hello\nyou", "target": "Bonjour"},
        {"source": "x"},
        {"source": 1, "target": "y"},
        ["source", "target"],
        {"source": "\ud800", "target": "y"},
    ]
    content = "\n".join([*map(json.dumps, values), "{", "", "[" * 100000])
    pairs, rejects = read(write(tmp_path / "a.jsonl", content))
    assert pairs == [Pair("Hello\nyou", "Bonjour", "a.jsonl", 1)]
    assert [(reject.line, reject.reason) for reject in rejects] == [
        (2, "missing column"),
        (3, "value is not text"),
        (4, "not a JSON object"),
        (5, "not valid UTF-8"),
        (6, "not valid JSON"),
        (7, "empty line"),
        (8, "not valid JSON"),
    ]
    format_reject(rejects[3]).encode()
