"""Made-up tasks: the same data for every training."""

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
