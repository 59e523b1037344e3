"""A switch for debugging: whether ids are checked against their range.

An id out of range is an obscure error on one backend, and silent on another: a wrong word,
probabilities that do not sum to 1, NaN. Checking every id takes time, so it is off by default:

>>> import numpy as np
>>> from keras_models import debugging
>>> from keras_models.heads import PointerSentinel
>>> head, states = PointerSentinel(vocabulary_size=10), np.ones((1, 2, 4))
>>> with debugging.check_ids():
...     head(np.ones((1, 3, 4)), states, np.array([[10, 12]]))
Traceback (most recent call last):
...
ValueError: PointerSentinel: source_extended_ids must be in 0..11; got 12 at (0, 1).
"""

import warnings

import keras
import numpy as np

_enabled = False


class _Former:
    """Restores the switch at the end of a `with` block."""

    def __init__(self, former):
        self._former = former

    def __enter__(self):
        return self

    def __exit__(self, *error):
        global _enabled
        _enabled = self._former


def check_ids(enabled=True):
    """Turns the checks of ids on or off, for all heads, bodies and searches.

    A compiled function has no values to check: call a layer with arrays, or compile a model with
    `run_eagerly=True`. A warning reports ids that cannot be checked.

    Args:
        enabled: whether ids are checked from now on.

    Returns:
        A context manager, which restores the former state at the end of its block. Without `with`
        the new state stays.
    """
    global _enabled
    former, _enabled = _enabled, bool(enabled)
    return _Former(former)


def check_range(owner, name, ids, low, high, outermost=True):
    """Checks ids if that is turned on.

    Args:
        owner: the owner of the argument, for the error.
        name: the argument's name.
        ids: int tensor, or None.
        low: the smallest id that is allowed.
        high: the number above the largest one, or None if that is not known.
        outermost: whether to warn if the values cannot be seen.

    Raises:
        ValueError: an id is out of range.
    """
    if not _enabled or ids is None or isinstance(ids, keras.KerasTensor):
        return
    values, high = _values(ids), high if high is None else _values(high)
    if values is None:
        if outermost:
            warnings.warn(
                f"{owner}: {name} cannot be checked in a compiled function; call it with arrays, "
                "or compile the model with run_eagerly=True.",
                stacklevel=3,
            )
        return
    wrong = values < low
    if high is not None:
        wrong = wrong | (values >= high)
    if wrong.any():
        place = tuple(int(index) for index in np.argwhere(wrong)[0])
        allowed = f"at least {low}" if high is None else f"in {low}..{int(high) - 1}"
        raise ValueError(f"{owner}: {name} must be {allowed}; got {int(values[place])} at {place}.")


def _values(tensor):
    """The values of a tensor as a NumPy array; None where a function is being compiled."""
    try:
        return np.asarray(keras.ops.convert_to_numpy(tensor))
    # TensorFlow and JAX raise errors of their own, of several types.
    except Exception:
        return None
