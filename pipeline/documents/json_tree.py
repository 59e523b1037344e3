"""The values of a JSON file with their places, so that it can be edited."""

import dataclasses
import json
import re

from pipeline.documents.document import DocumentError
from pipeline.documents.edits import Place

_SPACE = re.compile(r"[ \t\n\r]*")
_OTHER = re.compile(r"[^\s,\]}]+")
_DEEPEST = 200
_DECODER = json.JSONDecoder()


@dataclasses.dataclass
class JsonValue:
    """A value.

    Attributes:
        key: that of a member, or the number of an element.
        chunk: from behind the separator before it to its end.
        name: the place of the key, without quotes.
        place: that of the value.
        text: that of a string, or None.
        children: members, or elements.
        is_object: whether it is an object.
    """

    key: str
    chunk: Place
    name: Place
    place: Place
    text: str | None = None
    children: list["JsonValue"] = dataclasses.field(default_factory=list)
    is_object: bool = False


def read_json(path: str, text: str) -> JsonValue:
    """Returns the value of a JSON file.

    Raises:
        DocumentError: it is not valid, or an object has a key twice.
    """
    try:
        json.loads(text, object_pairs_hook=_without_repeats)
    except json.JSONDecodeError as error:
        lines = " JSON Lines need --format jsonl." if error.msg == "Extra data" else ""
        raise DocumentError(
            f"{path} is not valid JSON: see line {error.lineno} ({error.msg}).{lines}"
        ) from None
    except _RepeatedKey as error:
        raise DocumentError(f"{path} has the key '{error}' twice in one object.") from None
    except RecursionError:
        raise DocumentError(f"{path} nests its values too deeply.") from None
    return _value(path, text, 0, "", (0, 0), 0, 0)


class _RepeatedKey(Exception):
    """An object with a key twice; its message is the key."""


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        raise _RepeatedKey(next(name for name in names if names.count(name) > 1))
    return members


def _value(
    path: str, text: str, place: int, key: str, name: Place, chunk: int, depth: int
) -> JsonValue:
    """Returns the value at a place of valid JSON."""
    if depth > _DEEPEST:
        raise DocumentError(f"{path} nests its values too deeply.")
    place = _skip(text, place)
    letter = text[place]
    if letter == '"':
        string, end = _string(text, place)
        return JsonValue(key, (chunk, end), name, (place, end), string)
    if letter not in "{[":
        match = _OTHER.match(text, place)
        assert match
        return JsonValue(key, (chunk, match.end()), name, match.span())
    value = JsonValue(key, (chunk, 0), name, (place, 0), is_object=letter == "{")
    end = place + 1
    while text[_skip(text, end)] not in "}]":
        begin, child_key, child_name = end, str(len(value.children)), (0, 0)
        if value.is_object:
            at = _skip(text, end)
            child_key, end = _string(text, at)
            child_name = at + 1, end - 1
            end = _skip(text, end) + 1
        child = _value(path, text, end, child_key, child_name, begin, depth + 1)
        value.children.append(child)
        end = _skip(text, child.place[1])
        if text[end] == ",":
            end += 1
    end = _skip(text, end) + 1
    value.place, value.chunk = (place, end), (chunk, end)
    return value


def _string(text: str, place: int) -> tuple[str, int]:
    """Returns the string at a place, and where it ends."""
    string, length = _DECODER.raw_decode(text, place)
    return str(string), length


def _skip(text: str, place: int) -> int:
    match = _SPACE.match(text, place)
    assert match
    return match.end()
