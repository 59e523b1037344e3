"""The split that a source falls into."""

from pipeline.readers.splits import split_of


def test_split_of_is_fixed_and_blind_to_small_differences():
    assert split_of("Save", "verbatim", 0.05, 0.05) == split_of("  save… !", "verbatim", 0.05, 0.05)
    shares = [split_of(f"text number {number}", "salt", 0.1, 0.2) for number in range(5000)]
    assert (
        abs(shares.count("eval") / 5000 - 0.1) < 0.02
        and abs(shares.count("test") / 5000 - 0.2) < 0.02
    )
    # Written down, so that a change of the function cannot go unnoticed: it would leak test data
    # into training.
    assert shares[:12] == ["train", "test", "test", *["train"] * 6, "test", "test", "train"]
    assert split_of("Hello", "a", 0, 1) == "test" and split_of("Hello", "a", 1, 0) == "eval"
