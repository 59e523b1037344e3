"""What models say is computed once for all that it depends on, and anew where that differs."""

import numpy as np

from pipeline.export import served_model
from pipeline.reporting import cached_results


class Counting:
    """A model that counts how often it was loaded, and answers with what it was asked."""

    loaded = 0

    def __init__(self, directory):
        type(self).loaded += 1
        self.directory = directory

    def predict(self, texts, features):
        return [{"text": f"{self.directory} {text} {features}"} for text in texts]

    def score(self, sources, targets, features):
        return np.array([len(text) / 2 for text in targets]), np.array(list(map(len, sources)))


def test_each_input_has_a_result_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(served_model, "ServedModel", Counting)
    monkeypatch.setattr(Counting, "loaded", 0)
    decodings = [("one", ["a"], {}), ("two", ["a"], {}), ("one", ["b"], {})]
    decodings.append(("one", ["a"], {"tag": ["x"]}))
    scorings = [("one", ["a"], ["b"], {}), ("one", ["a"], ["bc"], {}), ("one", ["d"], ["b"], {})]
    scorings += [("two", ["a"], ["b"], {}), ("one", ["a"], ["b"], {"tag": ["x"]})]

    def results():
        models = {name: cached_results.ExportedModel(name) for name in ("one", "two")}
        decoded = [
            cached_results.decode_once(models[name], texts, tmp_path, features)
            for name, texts, features in decodings
        ]
        return decoded, [
            cached_results.score_once(models[name], sources, targets, tmp_path, features)
            for name, sources, targets, features in scorings
        ]

    decoded, scored = results()
    assert [answer["text"] for (answer,) in decoded] == [
        "one/Format-Serving a {}",
        "two/Format-Serving a {}",
        "one/Format-Serving b {}",
        "one/Format-Serving a {'tag': ['x']}",
    ]
    assert [list(map(tuple, pairs)) for pairs in scored][:2] == [[(0.5, 1)], [(1.0, 1)]]
    assert len(list(tmp_path.iterdir())) == 9
    # Each model once, for all that it is asked.
    assert Counting.loaded == 2
    # From the files: pairs are lists there.
    again, scored_again = results()
    assert (again, Counting.loaded) == (decoded, 2)
    assert [list(map(tuple, pairs)) for pairs in scored_again] == [
        list(map(tuple, pairs)) for pairs in scored
    ]
