"""Rounds in which programs take turns: medians with their spread, and ratios within a round."""

import statistics
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, TypedDict, cast

#: What one turn of a program measured: numbers by name, and whatever else the program answered.
Facts: TypeAlias = Mapping[str, Any]
#: The facts of one round by the name of the program.
Round: TypeAlias = Mapping[str, Facts]


class Spread(TypedDict):
    """Numbers, their median, the smallest and the largest."""

    median: float
    low: float
    high: float
    values: list[float]


class Figure(Spread, total=False):
    """The numbers of one program.

    Attributes:
        ratio: how many times better it was than another program, round by round.
    """

    ratio: Spread


def interleave(
    names: Iterable[str], rounds: int, measure: Callable[[str], Facts], warm_up: int = 1
) -> list[Round]:
    """Measures programs in turn: ours, peer, ours, peer, ...

    What changes on the machine meanwhile affects all of them, and hardly affects a ratio within a
    round.

    Args:
        names: of the programs.
        rounds: how many rounds count.
        measure: function of a name.
        warm_up: rounds before, which do not count: compilation, caches, memory from the system.

    Returns:
        A list of rounds.
    """
    names = list(names)
    measured: list[Round] = []
    for number in range(warm_up + rounds):
        taken = {name: measure(name) for name in names}
        label = f"round {number - warm_up + 1} of {rounds}" if number >= warm_up else "warm-up"
        print(f"  {label}", file=sys.stderr, flush=True)
        if number >= warm_up:
            measured.append(taken)
    return measured


def spread(values: Sequence[float]) -> Spread:
    """Returns the median, the smallest and the largest of some numbers."""
    return {
        "median": statistics.median(values),
        "low": min(values),
        "high": max(values),
        "values": list(values),
    }


def figure(
    rounds: Sequence[Round], key: str, against: str | None = None, lower_is_better: bool = True
) -> dict[str, Figure]:
    """Returns the figures of each program.

    Args:
        rounds: what `interleave` returned.
        key: which of the facts.
        against: the name of the program that others are compared with; None compares none.
        lower_is_better: whether a program whose fact is N times smaller is N times better.

    Returns:
        Dict from name to figure, with a ratio where `against` is given.
    """
    figures: dict[str, Figure] = {}
    for name in rounds[0]:
        values = [taken[name][key] for taken in rounds]
        figures[name] = cast(Figure, spread(values))
        if against is not None:
            others = [taken[against][key] for taken in rounds]
            pairs = zip(others, values) if lower_is_better else zip(values, others)
            figures[name]["ratio"] = spread([above / below for above, below in pairs])
    return figures


def with_spread(numbers: Spread, digits: int) -> str:
    """Returns a `Spread` as text: median (smallest to largest)."""
    median, low, high = (
        f"{number:,.{digits}f}" for number in (numbers["median"], numbers["low"], numbers["high"])
    )
    return f"{median} ({low} to {high})"
