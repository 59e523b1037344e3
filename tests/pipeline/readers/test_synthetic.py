"""Made-up tasks: the same data for every training."""

import collections
import random

from pipeline.readers import synthetic
from pipeline.readers.fingerprints import fingerprint_of

SIZES = {"train": 30, "eval": 5, "test": 5}


def fingerprint(folder):
    return fingerprint_of((path.name, str(path)) for path in sorted(folder.iterdir()))


def test_two_runs_have_the_same_data(tmp_path):
    first = synthetic.write_task("order_tokens", tmp_path / "first", sizes=SIZES)
    second = synthetic.write_task("order_tokens", tmp_path / "second", sizes=SIZES)
    assert fingerprint(first) == fingerprint(second)
    lines = (first / "test.tsv").read_text().splitlines()
    assert lines[0] == "source\ttarget" and len(lines) == 6
    assert all(sorted(s.split()) == t.split() for s, t in (li.split("\t") for li in lines[1:]))
    other = synthetic.write_task("order_tokens", tmp_path / "other", 2, SIZES)
    assert fingerprint(other) != fingerprint(first)


def test_the_ratio_says_how_rare_the_rare_words_are():
    counts = {}
    for ratio in (0.95, 0.995, 1.0):
        pair, generator = synthetic.rarest_word(ratio), random.Random(1)
        words = collections.Counter()
        for _ in range(5000):
            source, target = pair(generator)
            assert target == max(source.split())
            words.update(source.split())
        counts[ratio] = words
    # The shares of a geometric distribution: p(k) = (1 - r) r^k / (1 - r^600).
    for ratio in (0.95, 0.995):
        share = (1 - ratio) / (1 - ratio**600)
        assert abs(counts[ratio]["w000"] / 35_000 - share) < 0.005
    assert counts[0.95]["w400"] == 0
    assert 30 < counts[1.0]["w400"] < 90


def test_the_ratio_of_a_recipe_is_that_of_its_data(tmp_path):
    first = synthetic.write_task("rarest_word", tmp_path / "first", sizes=SIZES)
    same = synthetic.write_task("rarest_word", tmp_path / "same", sizes=SIZES, ratio=0.995)
    other = synthetic.write_task("rarest_word", tmp_path / "other", sizes=SIZES, ratio=0.97)
    assert fingerprint(first) == fingerprint(same) != fingerprint(other)
