"""What a server needs to translate files. The package `pipeline` implements it.

`serving` stands alone and reads no documents. `verbatim serve` gives the server a `FileTranslator`;
without one, the web page takes no files.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from serving.glossary import Glossary
    from serving.text_model import TextModel


@dataclasses.dataclass(frozen=True)
class SourceFile:
    """A file to translate.

    Attributes:
        name: its name.
        content: its bytes.
        language: the language of the translations, such as `fr`; empty if it is unknown.
        note: one line that tells where the translations come from.
        glossary: translations of phrases; or None.
    """

    name: str
    content: bytes
    language: str = ""
    note: str = ""
    glossary: Glossary | None = None


@dataclasses.dataclass(frozen=True)
class TranslatedFile:
    """A translated file.

    Attributes:
        content: its bytes, in the format of the source.
        translated: how many texts were translated.
        blank: how many places have no text.
        translated_before: how many places had a translation, which stays.
        refused: (line, reason) of each place that stays untranslated.
    """

    content: bytes
    translated: int
    blank: int
    translated_before: int
    refused: list[tuple[int, str]]


def note_of(model: str, version: int) -> str:
    """Returns the line that tells which version of a model made translations."""
    return f"Machine translation: {model}, version {version} (verbatim)"


class FileTranslator(Protocol):
    """Translates files of several formats.

    Attributes:
        suffixes: those of the files that it reads, such as `.po`.
    """

    suffixes: tuple[str, ...]

    def translate(self, model: TextModel, file: SourceFile) -> TranslatedFile:
        """Translates a file.

        Raises:
            VerbatimError: the file cannot be read or filled, or the model cannot answer; one
                sentence.
        """
