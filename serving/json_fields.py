"""Fields of a request's JSON object."""

from collections.abc import Mapping
from typing import Any

from serving.errors import invalid


def text_field(fields: Mapping[str, Any], name: str) -> str:
    """Returns a field that must be a text.

    Raises:
        RequestRefused: INVALID_ARGUMENT, it is missing or of another type.
    """
    value = fields.get(name)
    if not isinstance(value, str):
        raise invalid(f"{name} must be a text." if name in fields else f"{name} is missing.")
    return value
