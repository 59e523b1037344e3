"""The formats of documents by their names.

A new format is a class of this package and a line in `FORMATS`.
"""

import dataclasses
import os
from collections.abc import Callable

from pipeline.documents.android_document import AndroidDocument
from pipeline.documents.apple_strings_document import AppleStringsDocument
from pipeline.documents.document import Document, DocumentError
from pipeline.documents.i18n_json_document import ArbDocument, I18nJsonDocument
from pipeline.documents.json_lines_document import JsonLinesDocument
from pipeline.documents.options import Options
from pipeline.documents.php_document import PhpDocument
from pipeline.documents.po_document import PoDocument
from pipeline.documents.properties_document import PropertiesDocument
from pipeline.documents.resx_document import ResxDocument
from pipeline.documents.stringsdict_document import StringsdictDocument
from pipeline.documents.table_document import TableDocument
from pipeline.documents.text_document import TextDocument
from pipeline.documents.xliff_document import XliffDocument


@dataclasses.dataclass(frozen=True)
class Format:
    """One format.

    Attributes:
        suffixes: those of its files.
        refused: those of files of its kind that are refused, with what to do instead.
        read: function of a path for messages, the file's content, and options.
        has_one_language: whether a file has the texts of one language, so that translations are a
            file of their own.
    """

    suffixes: tuple[str, ...]
    read: Callable[[str, bytes, Options], Document]
    has_one_language: bool = False
    refused: tuple[str, ...] = ()

    def has(self, suffix: str) -> bool:
        """Whether files of a suffix, in lower case, are of this format, also if refused."""
        return suffix in self.suffixes or suffix in self.refused


def _fluent(path: str, content: bytes, options: Options) -> Document:
    # The parsers of this format and of YAML are imported only where they are used.
    from pipeline.documents.fluent_document import FluentDocument

    return FluentDocument(path, content, options)


def _yaml(path: str, content: bytes, options: Options) -> Document:
    from pipeline.documents.yaml_document import YamlDocument

    return YamlDocument(path, content, options)


#: By the name that a user gives.
FORMATS = {
    "text": Format((".txt",), lambda path, content, options: TextDocument(path, content)),
    "tsv": Format(
        (".tsv",),
        lambda path, content, options: TableDocument(path, content, "\t", False, options.columns),
    ),
    "csv": Format(
        (".csv",),
        lambda path, content, options: TableDocument(path, content, ",", True, options.columns),
    ),
    "jsonl": Format(
        (".jsonl",),
        lambda path, content, options: JsonLinesDocument(path, content, options.columns),
    ),
    "gettext": Format(
        (".po", ".pot"),
        lambda path, content, options: PoDocument(path, content),
        refused=(".mo",),
    ),
    "android": Format((".xml",), AndroidDocument, True),
    "xliff": Format((".xlf", ".xliff"), XliffDocument),
    "json": Format((".json",), I18nJsonDocument, True),
    "arb": Format((".arb",), ArbDocument, True),
    "properties": Format((".properties",), PropertiesDocument, True),
    "strings": Format((".strings",), AppleStringsDocument, True),
    "stringsdict": Format((".stringsdict",), StringsdictDocument, True),
    "resx": Format((".resx",), ResxDocument, True),
    "yaml": Format((".yml", ".yaml"), _yaml, True),
    "php": Format((".php",), PhpDocument, True),
    "fluent": Format((".ftl",), _fluent, True),
}


def format_of(path: str) -> str:
    """Returns the name of the format of a file, by its suffix.

    Raises:
        DocumentError: there is no such format.
    """
    suffix = os.path.splitext(path)[1].lower()
    for name, one in FORMATS.items():
        if one.has(suffix):
            return name
    known = ", ".join(suffix for one in FORMATS.values() for suffix in one.suffixes)
    raise DocumentError(
        f"{path} has no known suffix ({known}): name its format with --format, such as text."
    )
