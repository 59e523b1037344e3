"""Resources of .NET: .resx files."""

from pipeline.documents.document import DocumentError
from pipeline.documents.resource_document import ResourceDocument
from pipeline.documents.resource_nodes import Node, one_part
from pipeline.documents.xml_files import read_xml
from pipeline.readers.inline_text import with_tags
from pipeline.readers.line_numbers import line_of
from pipeline.readers.xml_tree import escape, not_in_xml, tokens


class ResxDocument(ResourceDocument):
    """A .resx file. Values with a type, such as pictures, and names of designers stay.

    Args:
        path: its name in messages.
        content: its bytes.
        options: the language of the translations, and what is translated already.

    Raises:
        DocumentError: it is not well-formed, or no .resx file.
    """

    def read(self, text: str) -> list[Node]:
        """See `ResourceDocument`."""
        root = read_xml(self._path, text)
        if root.name != "root":
            raise DocumentError(f"{self._path} is not a .resx file: its root is {root.name}.")
        nodes = []
        end = root.tag_end
        for element in root.children:
            name = element.attributes.get("name", "")
            value = next((one for one in element.children if one.name == "value"), None)
            is_text = (
                element.name == "data"
                and not {"type", "mimetype"} & set(element.attributes)
                and not name.startswith((">>", "$"))
            )
            if is_text and value:
                line = line_of(text, element.begin)
                node = Node(name, line, (end, element.end), begin=element.begin)
                if not value.is_empty:
                    letters = "".join(token.text for token in tokens(text, *value.inner))
                    node.value = one_part(value.inner, with_tags(letters), escape, not_in_xml)
                nodes.append(node)
            end = element.end
        return nodes
