"""Which split a pair belongs to, by a hash of its source."""

import hashlib
import unicodedata

from pipeline.recipes.sections import DataConfig

SPLITS = ("train", "eval", "test")


def normalize_source(source: str) -> str:
    """Returns the form under which near-identical sources are the same.

    Compatibility characters, case, runs of white space and trailing punctuation make no difference.
    """
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", source).casefold())
    text = " ".join(text.split())
    end = len(text)
    while end and (text[end - 1].isspace() or unicodedata.category(text[end - 1]).startswith("P")):
        end -= 1
    return text[:end]


def divided_shares(data_config: DataConfig) -> tuple[float, float]:
    """Returns the (eval share, test share) of the training files.

    A split that has files of its own has a share of 0.
    """
    eval_share = 0.0 if data_config.eval_files else data_config.eval_share
    test_share = 0.0 if data_config.test_files else data_config.test_share
    return eval_share, test_share


def split_of(source: str, salt: str, eval_share: float, test_share: float) -> str:
    """Chooses the split of a pair by its source alone, the same on every machine and in every run.

    Args:
        source: the source text; near-identical sources (`normalize_source`) share a split.
        salt: another salt gives another division.
        eval_share: expected share of distinct sources in `eval`, 0 to 1.
        test_share: the same for `test`.

    Returns:
        `"train"`, `"eval"` or `"test"`.
    """
    digest = hashlib.sha256(f"{salt}\0{normalize_source(source)}".encode()).digest()
    place = int.from_bytes(digest[:8], "big") / 2**64
    if place < eval_share:
        return "eval"
    return "test" if place < eval_share + test_share else "train"
