"""Checks of shapes that name the wrong argument.

They use what is known when a function is called or traced, so they cost nothing in a compiled
function.
"""

import keras
import numpy as np


def shape_of(value):
    """The shape of an array or tensor, with None for sizes that are not known; None if none is."""
    shape = getattr(value, "shape", None)
    if shape is None:
        return np.shape(value)
    try:
        return tuple(shape)
    # A tensor of TensorFlow whose rank is not known.
    except ValueError:
        return None


def check_integers(owner, arguments, names):
    """Checks that ids are integers: float16 and bfloat16 round large ones to others.

    Args:
        owner: the owner of the arguments, for the error.
        arguments: dict from an argument's name to its value, which may be None.
        names: those of ids.

    Raises:
        TypeError: one has another type.
    """
    for name in names:
        value = arguments.get(name)
        if value is None:
            continue
        dtype = getattr(value, "dtype", None)
        dtype = np.asarray(value).dtype if dtype is None else dtype
        dtype = keras.backend.standardize_dtype(dtype)
        if "int" not in dtype:
            raise TypeError(
                f'{owner}: {name} must be integers; got {dtype}. Give keras.Input dtype="int32".'
            )


def check_axes(owner, arguments, axes, sizes=None):
    """Checks that arguments have their axes, and that an axis has one size in all of them.

    Args:
        owner: the owner of the arguments, for the error.
        arguments: dict from an argument's name to its value, which may be None; those that `axes`
            lacks are ignored. If two disagree, the error names the later one.
        axes: dict from an argument's name to the names of its axes, or to a list of such tuples
            where it may have either; an axis named "_" may have any size.
        sizes: dict from the names of axes to sizes that are known already, and are added to.

    Returns:
        `sizes`, with those of all axes that are known.

    Raises:
        ValueError: an argument has other axes.
    """
    sizes = {} if sizes is None else sizes
    first = dict.fromkeys(sizes)
    for name, value in arguments.items():
        if value is None or name not in axes:
            continue
        shape = shape_of(value)
        if shape is None:
            continue
        choices = axes[name] if isinstance(axes[name], list) else [axes[name]]
        fitting = [names for names in choices if len(names) == len(shape)]
        wanted = " or ".join(f"[{', '.join(names)}]" for names in choices)
        if not fitting:
            hint = " Take the mean of its heads first." if _has_heads(name, shape) else ""
            raise ValueError(
                f"{owner}: {name} must have the axes {wanted}; got the shape {shape}.{hint}"
            )
        for axis, size in zip(fitting[0], shape):
            if size is None or axis == "_":
                continue
            size = int(size) if isinstance(size, (int, np.integer)) else None
            if size is None:
                continue
            known = sizes.setdefault(axis, size)
            first.setdefault(axis, name)
            if known != size:
                by = "the layer was built for" if first[axis] is None else f"{first[axis]} has"
                raise ValueError(
                    f"{owner}: {name} must have the axes {wanted}; got the shape {shape}, but "
                    f"{by} {axis} {known}."
                )
    return sizes


def _has_heads(name, shape):
    return name.startswith("attention") and len(shape) == 4


def check_present(owner, arguments, names):
    """Checks that a dict of inputs has those that are needed.

    Raises:
        ValueError: some are missing.
    """
    missing = [name for name in names if name not in arguments]
    if missing:
        raise ValueError(
            f"{owner}: the inputs need {', '.join(missing)}; got "
            f"{', '.join(sorted(arguments)) or 'none'}."
        )
