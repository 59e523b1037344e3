"""Files with a glossary: CSV, TSV and TBX (ISO 30042)."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator
from xml.etree import ElementTree

from serving.errors import RequestError
from serving.glossary import Glossary

_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
# The elements of a concept, and of one of its languages: of TBX 2 and 3.
_CONCEPTS = {"termEntry", "conceptEntry"}
_LANGUAGES = {"langSet", "langSec"}


def read_glossary(path: str | os.PathLike[str]) -> Glossary:
    """Returns the glossary of a file.

    Args:
        path: a `.csv` or `.tsv` file, whose columns `source` and `target` count, or its only two if
            it does not name them; or a `.tbx` file of two languages, of which the first is the
            source's.

    Raises:
        RequestError: the file cannot be read, or is no glossary that can be used; one sentence.
    """
    name = os.fspath(path)
    suffix = os.path.splitext(name)[1].lower()
    if suffix != ".tbx" and suffix not in _SEPARATORS:
        raise RequestError(f"The glossary {name} must be a .csv, .tsv or .tbx file.")
    try:
        with open(name, "rb") as file:
            content = file.read()
    except FileNotFoundError:
        raise RequestError(f"The glossary {name} does not exist.") from None
    except OSError as error:
        raise RequestError(f"The glossary {name} cannot be read: {error.strerror}.") from None
    pairs = list(_of_tbx(content, name) if suffix == ".tbx" else _of_table(content, name))
    try:
        return Glossary(pairs)
    except RequestError as error:
        raise RequestError(f"The glossary {name} cannot be used: {error}") from None


def _of_table(content: bytes, name: str) -> Iterator[tuple[str, str]]:
    separator = _SEPARATORS[os.path.splitext(name)[1].lower()]
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise RequestError(f"The glossary {name} is not UTF-8: save it as UTF-8.") from None
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    columns: tuple[int, int] | None = None
    try:
        for row in rows:
            if not any(cell.strip() for cell in row):
                continue
            if columns is None:
                names = [cell.strip().lower() for cell in row]
                if "source" in names and "target" in names:
                    columns = names.index("source"), names.index("target")
                    continue
                if len(row) == 1:
                    between = "a tab" if separator == "\t" else "a comma"
                    raise RequestError(
                        f"The glossary {name} has one column: write phrase and translation on each "
                        f"line, with {between} between them."
                    )
                if len(row) != 2:
                    raise RequestError(
                        f"The glossary {name} has {len(row)} columns: name two of them source and "
                        "target in its first line."
                    )
                columns = 0, 1
            if len(row) <= max(columns):
                raise RequestError(
                    f"Line {rows.line_num} of the glossary {name} has no translation: give a "
                    "phrase and its translation."
                )
            yield row[columns[0]], row[columns[1]]
    except csv.Error as error:
        raise RequestError(
            f"Line {rows.line_num} of the glossary {name} is not valid: {error}."
        ) from None


def _of_tbx(content: bytes, name: str) -> Iterator[tuple[str, str]]:
    try:
        root = ElementTree.fromstring(content)
    except ElementTree.ParseError as error:
        raise RequestError(f"The glossary {name} is not valid XML: {error}.") from None
    languages: list[str] = []
    concepts = []
    for concept in _elements(root, _CONCEPTS):
        terms: dict[str, list[str]] = {}
        for part in _elements(concept, _LANGUAGES):
            language = part.get(_LANGUAGE) or part.get("lang") or ""
            found = ["".join(term.itertext()) for term in _elements(part, {"term"})]
            terms.setdefault(language.lower(), []).extend(found)
        languages.extend(language for language in terms if language not in languages)
        concepts.append(terms)
    if len(languages) != 2:
        raise RequestError(
            f"The glossary {name} must have two languages, the source's first; it has "
            f"{', '.join(languages) or 'none'}."
        )
    source, target = languages
    for terms in concepts:
        # Synonyms of the source share the preferred, first translation.
        for translation in terms.get(target, [])[:1]:
            for phrase in terms.get(source, []):
                yield phrase, translation


def _elements(root: ElementTree.Element, names: set[str]) -> Iterator[ElementTree.Element]:
    """Yields the elements below one that have one of these names, in whatever name space."""
    for element in root.iter():
        if isinstance(element.tag, str) and element.tag.rpartition("}")[2] in names:
            yield element
