"""A machine's cores, shared between concurrent batches.

One batch on all cores has the lowest latency. Concurrent batches, each on cores of its own, have
the highest throughput: no core idles while another computes a step's small operations, and no
thread has to be woken for them.
"""

import importlib.metadata
import os

# How many threads TensorFlow's operations share, and what XLA compiled. TensorFlow reads it when a
# process runs its first operation, and never again.
_THREADS = "TF_NUM_INTRAOP_THREADS"
# How many of them a batch has, as `compute_each_batch_on` was told.
_PER_BATCH = "VERBATIM_THREADS_PER_BATCH"
# From this version on, whatever XLA compiled runs in TensorFlow's threads, not in the caller's:
# with one thread, concurrent batches would wait for each other.
_RUNS_IN_THE_POOL = (2, 19)


def cores() -> int:
    """Returns how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def compute_each_batch_on(number: int) -> None:
    """Sets how many cores compute a batch.

    On newer versions of TensorFlow all batches share all cores instead, as many batches at a time.

    It takes effect only before TensorFlow's first operation in this process.

    Raises:
        ValueError: `number` is not from 1 to the number of cores.
    """
    if not 1 <= number <= cores():
        raise ValueError(f"a batch can have 1 to {cores()} cores of this machine; got {number}.")
    os.environ.update(variables(number))


def variables(number: int) -> dict[str, str]:
    """Returns the environment variables by which each batch is computed on so many cores."""
    threads = cores() if _runs_in_the_pool() else number
    return {_PER_BATCH: str(number), _THREADS: str(threads)}


def prefer_batches_side_by_side() -> None:
    """Computes each batch on one core, for work of many batches; a user's own setting wins."""
    if _THREADS not in os.environ:
        compute_each_batch_on(1)


def batches_at_once() -> int:
    """Returns how many batches the cores can compute at the same time.

    That is 1 by default: a batch then has all cores.
    """
    threads = os.environ.get(_PER_BATCH) or os.environ.get(_THREADS, "")
    number = int(threads) if threads.isdecimal() else 0
    return max(1, cores() // number) if number else 1


def _runs_in_the_pool() -> bool:
    version = importlib.metadata.version("tensorflow").split(".")
    return tuple(map(int, version[:2])) >= _RUNS_IN_THE_POOL
