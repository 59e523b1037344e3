"""A machine's cores, shared between the batches that are computed at the same time.

One batch on all cores is answered soonest. Batches side by side, each on cores of its own, are
answered at the highest rate: nothing waits for a step's small operations, which one core computes
while the others have nothing to do, and no thread has to be woken for them.
"""

import os

# TensorFlow reads it once in a process, when the first operation runs: how many threads compute one
# operation, or what XLA compiled.
_THREADS = "TF_NUM_INTRAOP_THREADS"


def cores():
    """Returns how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def compute_each_batch_on(number):
    """Says how many cores compute a batch;
    to be said before TensorFlow's first operation in this process, after which that stays as it
    was.

    Raises:
        ValueError: `number` is not from 1 to the number of cores.
    """
    if not 1 <= number <= cores():
        raise ValueError(f"this machine has 1 to {cores()} cores for a batch; got {number}.")
    os.environ[_THREADS] = str(number)


def prefer_batches_side_by_side():
    """Has each batch computed on one core, for work that has many batches;
    what a user has set stands.
    """
    os.environ.setdefault(_THREADS, "1")


def batches_at_once():
    """Returns how many batches the cores suffice for at the same time: 1 where nothing was said,
    since a batch has all cores then.
    """
    given = os.environ.get(_THREADS, "")
    number = int(given) if given.isdecimal() else 0
    return max(1, cores() // number) if number else 1
