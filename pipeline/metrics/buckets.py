"""The ranges of breakdowns: by the length of a text, and by the training count of a word."""

from collections.abc import Sequence

#: Where the ranges of `word_f1_by_frequency` begin (how often training saw a word), and those of
#: `bleu_by_length` and `word_f1_by_length`.
FREQUENCY_BUCKETS = (0, 1, 2, 3, 4, 5, 10, 100, 1000)
LENGTH_BUCKETS = (0, 10, 20, 30, 40, 50, 60)


def bucket_names(bounds: Sequence[int]) -> list[str]:
    """Returns the names of the ranges that begin at `bounds`: `1`, `5-9`, `1000+`."""
    ends = [bound - 1 for bound in bounds[1:]]
    return [f"{low}" if low == high else f"{low}-{high}" for low, high in zip(bounds, ends)] + [
        f"{bounds[-1]}+"
    ]
