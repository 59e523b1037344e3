"""Translates files for a server's web page."""

from pipeline.documents import languages
from pipeline.documents.formats import FORMATS, format_of
from pipeline.documents.options import Options
from pipeline.documents.translation import choose, outcome_of, refused_places
from serving.file_translator import SourceFile, TranslatedFile
from serving.text_model import TextModel


class DocumentTranslator:
    """A `serving.file_translator.FileTranslator` for all formats of `verbatim translate`."""

    suffixes = tuple(suffix for one in FORMATS.values() for suffix in one.suffixes)

    def translate(self, model: TextModel, file: SourceFile) -> TranslatedFile:
        """Translates a file; each distinct text is asked once.

        Raises:
            DocumentError: the file cannot be read or filled.
            RequestError: the model cannot answer at all.
        """
        reader = FORMATS[format_of(file.name)].read
        told = Options(language=languages.normalize(file.language))
        document = reader(file.name, file.content, told)
        texts = list(dict.fromkeys(segment.text for segment in document.segments))
        answers = (
            model.predict(texts, glossary=file.glossary, return_exceptions=True) if texts else []
        )
        translations, outcomes = choose(document, dict(zip(texts, map(outcome_of, answers))))
        return TranslatedFile(
            document.filled(translations, file.note),
            translated=len(translations),
            blank=len(document.blank),
            translated_before=document.translated_before,
            refused=refused_places(document, outcomes),
        )
