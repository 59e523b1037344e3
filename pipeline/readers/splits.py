"""Which split a pair belongs to, by a hash of its source."""

import hashlib
import unicodedata

SPLITS = ("train", "eval", "test")


def normalize_source(source):
    """Returns the form under which near-identical sources are the same.

    Compatibility characters, case, runs of white space and trailing punctuation make no difference.
    """
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", source).casefold())
    text = " ".join(text.split())
    end = len(text)
    while end and (text[end - 1].isspace() or unicodedata.category(text[end - 1]).startswith("P")):
        end -= 1
    return text[:end]


def divided_shares(data_config):
    """Returns (eval share, test share) by which the training files are divided: 0 for a split that
    has files of its own.
    """
    return tuple(
        0.0 if getattr(data_config, f"{split}_files") else getattr(data_config, f"{split}_share")
        for split in SPLITS[1:]
    )


def split_of(source, salt, eval_share, test_share):
    """Chooses the split of a pair by its source alone, the same on every machine and in every run.

    Args:
        source: the source text; near-identical sources (`normalize_source`) share a split.
        salt: another salt is another division.
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
