"""JSON with keys and texts: flat or nested, i18next, ICU messages, and ARB."""

import collections
import json
import re
from collections.abc import Sequence

from pipeline.documents.document import DocumentError
from pipeline.documents.edits import Edit
from pipeline.documents.icu_messages import ARGUMENT, CHOICE, IcuError, IcuMessage
from pipeline.documents.json_tree import JsonValue, read_json
from pipeline.documents.languages import CATEGORIES
from pipeline.documents.resource_document import ResourceDocument
from pipeline.documents.resource_nodes import PIPE, Node, Value, forms_of, one_part
from pipeline.readers.inline_text import with_tags
from pipeline.readers.line_numbers import line_of

_PLURAL_KEY = re.compile(rf"(.+)_({'|'.join(CATEGORIES)})")
_ORDINAL = "_ordinal"
_DOUBLE = re.compile(r"\{\{[^{}]*\}\}")


class I18nJsonDocument(ResourceDocument):
    """A JSON object whose strings are texts.

    Texts are ICU messages if one of them has an argument in single braces.

    Args:
        path: its name in messages.
        content: its bytes.
        options: the language of the translations, and what is translated already.

    Raises:
        DocumentError: it is no valid JSON object, or has a key twice.
    """

    separator = ","
    #: Whether keys that begin with `@` are not texts, as in ARB.
    is_arb = False

    def read(self, text: str) -> list[Node]:
        """See `ResourceDocument`."""
        self._escapes_letters = text.isascii() and re.search(r"\\u[0-9a-fA-F]{4}", text) is not None
        root = read_json(self._path, text)
        if not root.is_object:
            raise DocumentError(f"{self._path} is not a JSON object with keys and texts.")
        texts = list(_texts(root))
        is_i18next = any(map(_DOUBLE.search, texts))
        has_choice, has_argument = (any(map(one.search, texts)) for one in (CHOICE, ARGUMENT))
        # `{{n} files}` begins a form of a plural in ICU messages.
        self._is_icu = self.is_arb or has_choice or (has_argument and not is_i18next)
        self.locale = next((m for m in root.children if m.key == "@@locale"), None)
        if self.is_arb and self.locale and not self.language:
            raise DocumentError(
                f"{self._path} names its language (@@locale): name the language of the "
                "translations with --target-language."
            )
        return self._nodes(root)

    def extra_edits(self) -> list[Edit]:
        """See `ResourceDocument`."""
        if self.is_arb and self.locale:
            begin, end = self.locale.place
            return [(begin, end, json.dumps(self.language.replace("-", "_")))]
        return []

    def _nodes(self, value: JsonValue) -> list[Node]:
        nodes = [
            self._node(child)
            for child in value.children
            if not (self.is_arb and child.key.startswith("@"))
        ]
        keys = [node.key for node in nodes]
        if value.is_object and not set(keys) <= set(CATEGORIES):
            nodes = _with_plurals(nodes)
        return nodes

    def _node(self, value: JsonValue) -> Node:
        node = Node(
            value.key,
            line_of(self.text, value.place[0]),
            value.chunk,
            name=value.name,
            separator=",",
        )
        if value.text is not None:
            node.value = self._value(value)
            return node
        if value.is_object or value.children:
            node.children = self._nodes(value)
            node.inner = value.place[0] + 1, value.place[1] - 1
        keys = {child.key for child in node.children}
        node.is_plural = (
            value.is_object
            and {"one", "other"} <= keys <= set(CATEGORIES)
            and all(child.value for child in node.children)
        )
        return node

    def _value(self, value: JsonValue) -> Value:
        assert value.text is not None
        place = value.place[0] + 1, value.place[1] - 1
        if not self._is_icu:
            forms = [one_part(place, one, self._escaped) for one in forms_of(with_tags(value.text))]
            return Value(
                place,
                [form.parts[0] for form in forms],
                lambda parts: PIPE.join(forms[0].write([part]) for part in parts),
                refuse,
            )
        try:
            message = IcuMessage(value.text, self.language)
        except IcuError as error:
            return Value(place, (), lambda parts: "", problem=str(error))
        return Value(
            place, message.parts, lambda parts: self._escaped(message.written(parts)), refuse
        )

    def _escaped(self, text: str) -> str:
        return json.dumps(text, ensure_ascii=self._escapes_letters)[1:-1]


class ArbDocument(I18nJsonDocument):
    """An ARB file: JSON with ICU messages, and keys with `@` that are not translated."""

    is_arb = True


def refuse(text: str) -> str:
    """Returns why a text cannot be written as UTF-8; empty if it can."""
    return "half a character" if re.search("[\ud800-\udfff]", text) else ""


def _texts(value: JsonValue) -> Sequence[str]:
    found = []
    waiting = [value]
    while waiting:
        one = waiting.pop()
        waiting += one.children
        if one.text is not None:
            found.append(one.text)
    return found


def _with_plurals(nodes: Sequence[Node]) -> list[Node]:
    """Returns nodes with those of a plural, such as `key_one` and `key_other`, in one."""
    places: dict[str, list[int]] = collections.defaultdict(list)
    for number, node in enumerate(nodes):
        if node.value and (match := _PLURAL_KEY.fullmatch(node.key)):
            places[match[1]].append(number)
    plurals: dict[int, list[int]] = {}
    for base, numbers in places.items():
        keys = {nodes[number].key for number in numbers}
        together = numbers[-1] - numbers[0] == len(numbers) - 1
        if {f"{base}_one", f"{base}_other"} <= keys and together:
            plurals[numbers[0]] = numbers
    grouped: list[Node] = []
    inside: set[int] = set()
    for number, node in enumerate(nodes):
        if number in plurals:
            children = [nodes[one] for one in plurals[number]]
            base = node.key.rpartition("_")[0]
            grouped.append(_plural(base, children))
            inside.update(plurals[number])
        elif number not in inside:
            grouped.append(node)
    return grouped


def _plural(base: str, children: list[Node]) -> Node:
    aliases = [child.key for child in children]
    for child in children:
        child.key = child.key[len(base) + 1 :]
        assert child.name
        child.name = child.name[1] - len(child.key), child.name[1]
    chunk = children[0].chunk[0], children[-1].chunk[1]
    node = Node(base, children[0].line, chunk, children=children, is_plural=True, separator=",")
    node.aliases = aliases
    node.ordinal = base.endswith(_ORDINAL)
    return node
