"""Counts of what a model could write."""

from benchmarks import copyable
from pipeline.recipes.loading import load_recipe


def test_targets_that_can_be_written(tmp_path):
    train = "".join(f"call self.f{n}\tself . f{n} ( )\n" for n in range(9))
    for name in ("train", "test"):
        (tmp_path / f"{name}.tsv").write_text("source\ttarget\n" + train)
    files = ['data.train_files=["train.tsv"]', 'data.test_files=["test.tsv"]']

    def count(*more):
        return copyable.count(load_recipe("translation", [*files, *more]), str(tmp_path))

    counts = count()
    assert (counts.pairs, counts.tokens, counts.unknown) == (9, 45, 9)
    assert (counts.known_targets, counts.writable_targets, counts.unknown_copyable) == (0, 0, 0)
    assert counts.examples[0] == ("f0", 1)
    counts = count("data.rare_words=parts")
    # `self` and the number of the function.
    assert (counts.known_targets, counts.writable_targets, counts.unknown_copyable) == (0, 9, 9)
    assert counts.copyable == 18 and not counts.examples
