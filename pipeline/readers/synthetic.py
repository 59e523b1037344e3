"""Generated tasks, written as files that a recipe reads like any others.

The same seed gives the same bytes everywhere.
"""

import bisect
import itertools
import os
import pathlib
import random
from collections.abc import Callable, Mapping

from pipeline.common.whole_files import write_text

#: The seed of the data that runs use. It is not the training's seed: so all seeds of a training
#: share a test split, and results made of the data are found in the cache.
DATA_SEED = 1
SPLIT_SIZES = {"train": 200_000, "eval": 2_000, "test": 5_000}
RAREST_WORD_VOCABULARY = 600
RAREST_WORD_RATIO = 0.995
ORDER_VOCABULARY = 100
#: A function of a random generator to a source and its target.
Task = Callable[[random.Random], tuple[str, str]]


def rarest_word(ratio: float) -> Task:
    """Returns the rarest-word task (Gulcehre et al. 2016, section 5.1).

    Seven words out of 600, drawn from a geometric distribution, p(k) proportional to ratio^k (the
    paper does not print its ratio); the target is the word of the lowest probability. Words are
    named by rank: `w000` is the most frequent.

    Args:
        ratio: above 0; 1 makes all words equally probable.
    """
    cumulated = list(itertools.accumulate(ratio**rank for rank in range(RAREST_WORD_VOCABULARY)))

    def pair(generator: random.Random) -> tuple[str, str]:
        ranks = [bisect.bisect(cumulated, generator.random() * cumulated[-1]) for _ in range(7)]
        return " ".join(f"w{rank:03d}" for rank in ranks), f"w{max(ranks):03d}"

    return pair


def order_tokens(generator: random.Random) -> tuple[str, str]:
    """Returns one pair of the ordering task (Vinyals et al. 2015, section 4.1 in words).

    It is 3 to 9 different numbers, and the same sorted.
    """
    numbers = generator.sample(range(ORDER_VOCABULARY), generator.randint(3, 9))
    return " ".join(f"{number:02d}" for number in numbers), " ".join(
        f"{number:02d}" for number in sorted(numbers)
    )


def write_task(
    name: str,
    directory: str | os.PathLike[str],
    seed: int = DATA_SEED,
    sizes: Mapping[str, int] | None = None,
    ratio: float = RAREST_WORD_RATIO,
) -> pathlib.Path:
    """Writes `train.tsv`, `eval.tsv` and `test.tsv` of a task, unless they are there unchanged.

    Args:
        name: `rarest_word` or `order_tokens`.
        directory: the folder to write to.
        seed: whole number.
        sizes: from split to number of pairs; default `SPLIT_SIZES`.
        ratio: see `rarest_word`.

    Returns:
        The directory.
    """
    task = rarest_word(ratio) if name == "rarest_word" else order_tokens
    folder = pathlib.Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    for split, size in (sizes or SPLIT_SIZES).items():
        generator = random.Random(f"{name} {split} {seed}")
        lines = ["source\ttarget", *("\t".join(task(generator)) for _ in range(size))]
        content = "".join(f"{line}\n" for line in lines)
        path = folder / f"{split}.tsv"
        if not path.is_file() or path.read_text(encoding="utf-8") != content:
            write_text(path, content)
    return folder
