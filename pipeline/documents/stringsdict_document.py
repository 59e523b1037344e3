"""Apple's .stringsdict files: plurals as a property list."""

from pipeline.documents.document import DocumentError
from pipeline.documents.languages import CATEGORIES
from pipeline.documents.resource_document import ResourceDocument
from pipeline.documents.resource_nodes import Node, one_part
from pipeline.documents.xml_files import read_xml
from pipeline.readers.inline_text import with_tags
from pipeline.readers.line_numbers import line_of
from pipeline.readers.xml_tree import Element, escape, not_in_xml, tokens

# What says how a plural is chosen.
_KEPT = ("NSStringFormatSpecTypeKey", "NSStringFormatValueTypeKey")


class StringsdictDocument(ResourceDocument):
    """A .stringsdict file.

    Args:
        path: its name in messages.
        content: its bytes.
        options: the language of the translations, and what is translated already.

    Raises:
        DocumentError: it is not well-formed, or no property list with a dictionary.
    """

    def read(self, text: str) -> list[Node]:
        """See `ResourceDocument`."""
        root = read_xml(self._path, text)
        if root.name != "plist" or [one.name for one in root.children] != ["dict"]:
            raise DocumentError(f"{self._path} is not a property list with a dictionary.")
        return self._nodes(text, root.children[0])

    def _nodes(self, text: str, dictionary: Element) -> list[Node]:
        nodes = []
        end = dictionary.tag_end
        parts = dictionary.children
        if len(parts) % 2 or any(key.name != "key" for key in parts[::2]):
            line = line_of(text, dictionary.begin)
            raise DocumentError(f"{self._path} has a key without a value: see line {line}.")
        for key, value in zip(parts[::2], parts[1::2]):
            name = _letters(text, key)
            node = Node(name, line_of(text, key.begin), (end, value.end), name=key.inner)
            node.begin = key.begin
            if value.name == "dict":
                node.children, node.inner = self._nodes(text, value), value.inner
                node.is_plural = any(child.key in CATEGORIES for child in node.children)
                if node.is_plural:
                    # The rest of the dictionary comes before them and stays.
                    node.children = [c for c in node.children if c.key in CATEGORIES]
            elif value.name == "string" and name not in _KEPT and not value.is_empty:
                pieces = with_tags(_letters(text, value))
                node.value = one_part(value.inner, pieces, escape, not_in_xml)
            nodes.append(node)
            end = value.end
        return nodes


def _letters(text: str, element: Element) -> str:
    return "".join(token.text for token in tokens(text, *element.inner))
