"""Which worker of a training a process is, as `TF_CONFIG` says; needs no TensorFlow."""

import json
import re
from collections.abc import Sequence
from typing import NamedTuple

from pipeline.common.errors import VerbatimError


class DataParallelError(VerbatimError, ValueError):
    """The workers cannot train together; one sentence."""


class WorkerPlace(NamedTuple):
    """Which worker a process is.

    Attributes:
        workers: how many there are.
        number: which one this process is, from 0.
    """

    workers: int
    number: int


def tasks_of(config: str | None) -> WorkerPlace | None:
    """Returns which of a TF_CONFIG's workers this process is; None without several workers.

    Args:
        config: text of the environment variable; may be empty.

    Raises:
        DataParallelError: it is not what TensorFlow documents, or has other tasks than `chief` and
            `worker`.
    """
    if not config:
        return None
    try:
        parsed = json.loads(config)
        cluster, task = parsed.get("cluster", {}), parsed.get("task", {})
        addresses = {kind: len(cluster[kind]) for kind in cluster}
        kind, index = task.get("type", "worker"), int(task.get("index", 0))
    except (ValueError, AttributeError, TypeError) as error:
        raise DataParallelError(
            f"TF_CONFIG cannot be read ({error}); unset it, or set it as TensorFlow documents."
        ) from error
    if unknown := sorted(set(addresses) - {"chief", "worker"}):
        raise DataParallelError(
            f"TF_CONFIG names tasks {', '.join(unknown)}; only chief and worker can train here."
        )
    count = sum(addresses.values())
    if not count and "cluster" in parsed:
        raise DataParallelError(
            "TF_CONFIG has a cluster without a worker: name each worker's HOST:PORT in it, or "
            "unset TF_CONFIG."
        )
    if count < 2:
        return None
    if not 0 <= index < addresses.get(kind, 0):
        raise DataParallelError(
            f"TF_CONFIG says that this is {kind} {index}, which its cluster lacks."
        )
    _check_addresses(addresses_of(config))
    return WorkerPlace(count, index + (addresses.get("chief", 0) if kind == "worker" else 0))


def addresses_of(config: str) -> list[str]:
    """Returns HOST:PORT of each worker of a TF_CONFIG that `tasks_of` accepts, the chief first."""
    cluster = json.loads(config)["cluster"]
    return [address for kind in ("chief", "worker") for address in cluster.get(kind, [])]


def _check_addresses(addresses: Sequence[str]) -> None:
    for address in addresses:
        port = re.fullmatch(r".+:(\d{1,5})", address) if isinstance(address, str) else None
        if port is None or not 0 < int(port[1]) < 1 << 16:
            raise DataParallelError(
                f"TF_CONFIG names a worker at {address!r}: write HOST:PORT, such as host:2222."
            )
    if len(set(addresses)) < len(addresses):
        raise DataParallelError(
            "TF_CONFIG names two workers at one address: give each its own HOST:PORT."
        )
