"""The files beside a SavedModel."""

import itertools

from pipeline.export import extra_files


def test_warmup_requests_are_the_same_bytes_in_any_order_of_their_inputs(tmp_path):
    columns = {"target": ["a"], "source": ["b"], "tag": ["c"]}
    found = set()
    for number, names in enumerate(itertools.permutations(columns)):
        path = tmp_path / str(number)
        inputs = {name: columns[name] for name in names}
        extra_files.write_warmup(str(path), "model", [("score", inputs)])
        found.add(path.read_bytes())
    assert len(found) == 1
