"""A check of outputs whose length is forced."""

from collections.abc import Sequence


class WrongLength(RuntimeError):
    """Outputs that are not as long as they had to be."""


def check_lengths(name: str, lengths: Sequence[int], expected: int) -> None:
    """Checks that all outputs are as long as they had to be.

    Raises:
        WrongLength: some are not.
    """
    if set(lengths) != {expected}:
        raise WrongLength(
            f"{name} gave outputs of {min(lengths)} to {max(lengths)} tokens; all must have "
            f"{expected}."
        )
