"""Texts to `TensorProto`s and back to nested lists, for clients, without NumPy."""

import math
import struct
from collections.abc import Iterable, Sequence
from typing import Any

from serving import protos

# Type to the field of a TensorProto with its values, and the type's letter in `struct`.
_NUMBERS = {
    "float32": ("float_val", "f"),
    "float64": ("double_val", "d"),
    "int32": ("int_val", "i"),
    "int64": ("int64_val", "q"),
}


def fill(tensor: Any, texts: Sequence[str]) -> None:
    """Makes a `TensorProto` a vector of texts.

    Raises:
        UnicodeEncodeError: a text holds half a surrogate pair.
    """
    tensor.dtype = protos.STRING
    tensor.tensor_shape.dim.add(size=len(texts))
    tensor.string_val.extend(text.encode("utf-8") for text in texts)


def read(tensor: Any, axes: int, rows: int) -> list[Any] | None:
    """Returns a `TensorProto` as nested lists of strings or numbers.

    Args:
        tensor: the message.
        axes: how many axes it must have.
        rows: the size that the first must have.

    Returns:
        The lists; None if the tensor has another form, or a type that no Verbatim model has.
    """
    sizes = [dim.size for dim in tensor.tensor_shape.dim]
    if len(sizes) != axes or sizes[0] != rows or any(size < 0 for size in sizes):
        return None
    count = math.prod(sizes)
    kind = protos.DATA_TYPES.get(tensor.dtype)
    values: Iterable[Any]
    if kind == "string":
        values = [value.decode("utf-8", "replace") for value in tensor.string_val]
    elif kind in _NUMBERS:
        field, letter = _NUMBERS[kind]
        content = tensor.tensor_content
        if not content:
            values = list(getattr(tensor, field))
        elif len(content) == count * struct.calcsize(f"<{letter}"):
            values = struct.unpack(f"<{count}{letter}", content)
        else:
            return None
    else:
        return None
    values = list(values)
    return _nested(values, sizes) if len(values) == count else None


def _nested(values: list[Any], sizes: Sequence[int]) -> list[Any]:
    if len(sizes) == 1:
        return values
    step = math.prod(sizes[1:])
    return [_nested(values[row * step : (row + 1) * step], sizes[1:]) for row in range(sizes[0])]
