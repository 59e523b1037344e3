"""The file for people who check translations: CSV or XLIFF, the most doubtful ones first."""

import csv
import dataclasses
import io
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from pipeline.commands.command_error import CommandError
from pipeline.documents.document import Document
from pipeline.documents.translation import Outcome
from pipeline.documents.xliff_document import MACHINE_STATES
from pipeline.readers.xml_tree import escape, in_xml, xml_attribute

if TYPE_CHECKING:
    from serving.answers import Answer

_XLIFF_SUFFIXES = (".xlf", ".xliff")
_UNKNOWN_LANGUAGE = "und"


@dataclasses.dataclass(frozen=True)
class Languages:
    """The codes of the languages of source and target; "" for one that is not known."""

    source: str = ""
    target: str = ""


@dataclasses.dataclass(frozen=True)
class _Row:
    """A text: its place, its translation, and what there is to say about it.

    Attributes:
        file, line: its place.
        source: the text; "" for a place that cannot be read.
        target: the translation; None if there is none.
        score: that of the translation.
        note: why there is none, or what became of the text.
    """

    file: str
    line: int
    source: str
    target: str | None
    score: float
    note: str


def check(path: str | None) -> None:
    """Refuses a review file that is no file, or of another kind; None stands for none."""
    if path == "-":
        raise CommandError("--review needs a file: name one, such as review.csv or review.xlf.")
    suffixes = (".csv", *_XLIFF_SUFFIXES)
    if path and os.path.splitext(path)[1].lower() not in suffixes:
        raise CommandError(
            f"The review file {path} must end in {', '.join(suffixes[:-1])} or {suffixes[-1]}."
        )


def content(
    path: str,
    documents: Iterable[tuple[str, Document, Sequence[Outcome]]],
    languages: Languages,
) -> bytes:
    """Returns the review of all texts of documents: XLIFF 1.2 by the path's suffix, else CSV.

    Args:
        path: the file.
        documents: (path, document, the outcome of each of its segments).
        languages: those of the texts, for XLIFF.
    """
    rows = sorted(_rows(documents), key=lambda row: row.score)
    is_xliff = os.path.splitext(path)[1].lower() in _XLIFF_SUFFIXES
    return (_xliff(rows, languages) if is_xliff else _table(rows)).encode("utf-8")


def _rows(documents: Iterable[tuple[str, Document, Sequence[Outcome]]]) -> Iterator[_Row]:
    for path, document, outcomes in documents:
        for line, reason in document.problems:
            yield _Row(path, line, "", None, -math.inf, reason)
        for segment, outcome in zip(document.segments, outcomes):
            if outcome.reason:
                yield _Row(path, segment.line, segment.text, None, -math.inf, outcome.reason)
            else:
                answer = outcome.answers[0]
                yield _Row(
                    path, segment.line, segment.text, answer.text, answer.score, _note(answer)
                )


def _note(answer: "Answer") -> str:
    notes = [f"{answer.parts} sentences"] if answer.parts > 1 else []
    if answer.tokens_dropped:
        notes.append(f"{answer.tokens_dropped} tokens cut off")
    return ", ".join(notes)


def _table(rows: Iterable[_Row]) -> str:
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(["file", "line", "source", "target", "score", "note"])
    for row in rows:
        told = ("", "") if row.target is None else (row.target, f"{row.score:.4f}")
        writer.writerow([row.file, row.line, row.source, *told, row.note])
    return table.getvalue()


def _xliff(rows: Iterable[_Row], languages: Languages) -> str:
    source = xml_attribute(languages.source or _UNKNOWN_LANGUAGE)
    target = f" target-language={xml_attribute(languages.target)}" if languages.target else ""
    units = "".join(_unit(number, row) for number, row in enumerate(rows, 1))
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">\n'
        f'  <file original="review" datatype="plaintext" source-language={source}{target}>\n'
        f"    <body>\n{units}    </body>\n  </file>\n</xliff>\n"
    )


def _unit(number: int, row: _Row) -> str:
    """Returns a unit with the place of its text; one without a text is not to be translated."""
    translate = "" if row.source else ' translate="no"'
    notes = [row.note] if row.note else []
    lines = [f"<source>{_written(row.source)}</source>"]
    if row.target is not None:
        states = "".join(f" {key}={xml_attribute(value)}" for key, value in MACHINE_STATES.items())
        lines.append(f"<target{states}>{_written(row.target)}</target>")
        notes.insert(0, f"score {row.score:.4f}")
    lines += [
        '<context-group purpose="location">',
        f'  <context context-type="sourcefile">{_written(row.file)}</context>',
        f'  <context context-type="linenumber">{row.line}</context>',
        "</context-group>",
        f"<note>{_written(', '.join(notes))}</note>",
    ]
    inner = "".join(f"        {line}\n" for line in lines)
    opening = f'      <trans-unit id="{number}"{translate} xml:space="preserve">\n'
    return f"{opening}{inner}      </trans-unit>\n"


def _written(text: str) -> str:
    return escape(in_xml(text))
