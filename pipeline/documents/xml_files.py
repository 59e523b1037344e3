"""XML files as documents."""

from pipeline.documents.document import DocumentError
from pipeline.readers import xml_tree


def read_xml(path: str, text: str) -> xml_tree.Element:
    """Returns the root element of an XML file: see `xml_tree.read_xml`.

    Raises:
        DocumentError: it is not well-formed, or says that it is not UTF-8.
    """
    try:
        return xml_tree.read_xml(path, text)
    except xml_tree.XmlError as error:
        raise DocumentError(str(error)) from None
