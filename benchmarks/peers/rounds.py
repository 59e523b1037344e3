"""Rounds in which programs take turns, and what is said of them:
medians with their spread, and ratios within a round.
"""

import statistics
import sys


def interleave(names, rounds, measure, warm_up=1):
    """Measures programs in turn: ours, peer, ours, peer, ...

    What changes on the machine meanwhile meets all of them, and a ratio within a round hardly
    notices.

    Args:
        names: of the programs.
        rounds: how many rounds count.
        measure: function of a name; returns a dict of facts.
        warm_up: rounds before, which do not count: compilation, caches, memory from the system.

    Returns:
        List of dicts from name to facts.
    """
    found = []
    for number in range(warm_up + rounds):
        taken = {name: measure(name) for name in names}
        label = f"round {number - warm_up + 1} of {rounds}" if number >= warm_up else "warm-up"
        print(f"  {label}", file=sys.stderr, flush=True)
        if number >= warm_up:
            found.append(taken)
    return found


def spread(values):
    """Returns `{"median", "low", "high", "values"}` of some numbers;
    low and high are the smallest and the largest.
    """
    return {
        "median": statistics.median(values),
        "low": min(values),
        "high": max(values),
        "values": list(values),
    }


def figure(rounds, key, against=None, lower_is_better=True):
    """Returns the figures of each program.

    Args:
        rounds: what `interleave` returned.
        key: which of the facts.
        against: the name of the program that others are compared with; None compares none.
        lower_is_better: whether a program is so many times better whose fact is so many times
            smaller.

    Returns:
        Dict from name to `spread`, with `ratio`, the `spread` of how many times better than
        `against` it was, round by round.
    """
    figures = {}
    for name in rounds[0]:
        values = [taken[name][key] for taken in rounds]
        figures[name] = spread(values)
        if against is not None:
            others = [taken[against][key] for taken in rounds]
            pairs = zip(others, values) if lower_is_better else zip(values, others)
            figures[name]["ratio"] = spread([above / below for above, below in pairs])
    return figures


def with_spread(found, digits):
    """Returns a `spread` as text: median (smallest to largest)."""
    return (
        f"{found['median']:,.{digits}f} ({found['low']:,.{digits}f} to {found['high']:,.{digits}f})"
    )
