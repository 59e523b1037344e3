"""Checks of a search's arguments."""

from keras import ops

from keras_models import debugging
from keras_models.argument_shapes import check_axes

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
    debugging.check_range(owner, "extended_ids", extended_ids, 0, extended_size)
    return ops.cast(extended_ids, "int32")
