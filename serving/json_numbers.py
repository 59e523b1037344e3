"""Numbers of tensors in JSON: written as short as their type allows, and read without loss."""

from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from serving.errors import invalid

# The most digits that are needed to distinguish values of a 16-bit type with 8 bits of precision.
_BFLOAT16_DIGITS = 4


def as_json(array: npt.NDArray[Any]) -> Any:
    """Returns numbers or truth values as nested lists.

    A number of less precision than a double becomes the double with the shortest decimal notation
    that reads as the same number: 0.2 stays 0.2, where its exact value is 0.20000000298023224.
    """
    if array.dtype == np.float64 or array.dtype.kind in "iub":
        return array.tolist()
    if array.dtype in (np.float32, np.float16):
        # NumPy writes as many digits as the type needs.
        return array.astype(str).astype(np.float64).tolist()
    kind = array.dtype.type
    flat = [_shortest(float(value), kind) for value in array.ravel()]
    return np.array(flat, np.float64).reshape(array.shape).tolist()


def _shortest(value: float, kind: Any) -> float:
    """Returns the double with the fewest digits that is the same number of a type."""
    for digits in range(1, _BFLOAT16_DIGITS + 1):
        short = float(f"{value:.{digits}g}")
        if float(kind(short)) == value:
            return short
    return value


def check_number(name: str, number: float, dtype: tf.DType) -> float:
    """Returns a number that an input's type can hold.

    Args:
        name: the input's name.
        number: a number of JSON; a whole one is an `int`.
        dtype: the input's type.

    Raises:
        RequestRefused: INVALID_ARGUMENT, the type would make another number of it.
    """
    if dtype.is_integer:
        if not dtype.min <= number <= dtype.max:
            raise invalid(
                f'Input "{name}" cannot hold {number}: {dtype.name} is from {dtype.min} to '
                f"{dtype.max}."
            )
        return number
    # As TensorFlow Serving has it: a whole number must be exact, another one only within range.
    exact = 2 ** _precision(dtype) - 1
    if isinstance(number, int) and abs(number) < 2**64:
        fits = abs(number) <= exact
    else:
        fits = not abs(number) > float(dtype.max) or abs(number) == float("inf")
    if not fits:
        raise invalid(
            f'Input "{name}" cannot hold {str(number)[:40]} as {dtype.name} without loss of '
            "precision."
        )
    return number


def _precision(dtype: tf.DType) -> int:
    """Returns how many bits of a whole number a floating-point type keeps."""
    return {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}.get(dtype.name, 4)
