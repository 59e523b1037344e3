"""The files of a sharded data set, without what failed attempts left beside them."""

import os
import re
from collections.abc import Iterable

from pipeline.common.errors import VerbatimError

# Beam writes shards into a folder of this name, and moves them when all are whole.
_UNFINISHED = "beam-temp-"
_SHARD = re.compile(r"(?P<before>.*)-(?P<number>\d{5,})-of-(?P<total>\d{5,})(?P<after>[^/]*)")


class ShardsError(VerbatimError, ValueError):
    """A data set is not complete, or there are two; one sentence."""


def matching(patterns: Iterable[str]) -> list[str]:
    """Returns the paths of data that match glob patterns, sorted.

    Folders of unfinished writes, which a killed worker leaves behind, are no data.

    Raises:
        ShardsError: nothing matches, a shard is missing, or a folder has the shards of two
            attempts.
    """
    import tensorflow as tf

    patterns = list(patterns)
    paths = {path for pattern in patterns for path in tf.io.gfile.glob(pattern)}
    data = sorted(
        path for path in paths if not os.path.basename(path.rstrip("/")).startswith(_UNFINISHED)
    )
    if not data:
        raise ShardsError(f"No files match {', '.join(patterns)}: run the pipeline again.")
    _check_whole(data)
    return data


def of_split(examples_uri: str, split: str) -> list[str]:
    """Returns the files of a split of an Examples artifact; raises as `matching`."""
    return matching([os.path.join(examples_uri, f"Split-{split}", "*")])


def _check_whole(paths: Iterable[str]) -> None:
    """Checks that the shards among paths are whole sets, one per name; raises as `matching`."""
    totals: dict[str, int] = {}
    numbers: dict[str, set[int]] = {}
    for path in paths:
        shard = _SHARD.fullmatch(path)
        if not shard:
            continue
        name, total = shard["before"] + shard["after"], int(shard["total"])
        if totals.setdefault(name, total) != total:
            raise ShardsError(
                f"The folder {os.path.dirname(path)} holds the shards of two attempts, "
                f"{min(total, totals[name])} and {max(total, totals[name])}: remove it and run the "
                "pipeline again."
            )
        numbers.setdefault(name, set()).add(int(shard["number"]))
    for name, total in totals.items():
        if missing := set(range(total)) - numbers[name]:
            raise ShardsError(
                f"Shard {min(missing)} of the {total} shards of {name} is missing: remove the "
                "others and run the pipeline again."
            )
