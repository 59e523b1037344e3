"""Checks of a search's arguments."""

from keras import ops

from keras_models import debugging
from keras_models.argument_shapes import check_axes, check_integers, shape_of
from keras_models.decoding.hypotheses import StepOutput

_SOURCE = ("batch", "source_length")
_AXES = {
    "extended_ids": _SOURCE,
    "source_mask": _SOURCE,
    "uniforms": ("batch", "samples", "max_length + 1"),
    "protection.source": _SOURCE,
    "protection.vocabulary": [("vocabulary_size",), ("batch", "vocabulary_size")],
}


def checked_source(owner, extended_ids, source_mask, extended_size, protection=None, uniforms=None):
    """Checks the source of a search: see `beam_search` for the arguments.

    Args:
        owner: the search's name, for the error.

    Returns:
        `extended_ids`, int32.

    Raises:
        ValueError: shapes that do not fit together, or, where that is asked for
            (`keras_models.debugging`), an id out of range.
    """
    arguments = {
        "extended_ids": extended_ids,
        "source_mask": source_mask,
        "uniforms": uniforms,
        "protection.source": getattr(protection, "source", None),
        "protection.vocabulary": getattr(protection, "vocabulary", None),
    }
    check_axes(owner, arguments, _AXES)
    check_integers(owner, arguments, ("extended_ids",))
    debugging.check_range(owner, "extended_ids", extended_ids, 0, extended_size)
    return ops.cast(extended_ids, "int32")


def checked_output(owner, output, rules):
    """Returns what a step function returned, after a check of what is known of its shapes.

    Args:
        owner: the search's name, for the error.
        output: what the step function returned.
        rules: the search's `Rules`.

    Raises:
        TypeError: it is no `StepOutput`.
        ValueError: a part has another last axis.
    """
    if not isinstance(output, StepOutput):
        raise TypeError(
            f"{owner}: the step function must return a StepOutput; got {type(output).__name__}."
        )
    length, actions = rules.source_length, rules.number_of_actions
    for name, axis, size in (
        ("log_probs", "extended_size", actions),
        ("copy_log_probs", "source_length", length),
        ("attention", "source_length", length),
    ):
        shape = shape_of(getattr(output, name))
        if shape is None or not isinstance(size, int):
            continue
        if len(shape) != 2 or shape[1] not in (None, size):
            raise ValueError(
                f"{owner}: the step function's {name} must have the axes [rows, {axis}], with "
                f"{axis} {size}; got the shape {shape}."
            )
    return output
