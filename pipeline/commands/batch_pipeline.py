"""The part of `verbatim batch` that runs on Beam's workers.

A file is one element: it keeps its name and the order of its lines, is written whole or not at all,
and is tried again by itself. Beam's RunInference would batch texts across files: then the order of
lines is lost, and must be restored by grouping all texts. A batch is as large here, because a file
has many texts.
"""

import dataclasses
import functools
import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import apache_beam as beam

from components.untyped_in_beam import untyped_in_beam
from pipeline.commands import translated
from pipeline.common import whole_files
from pipeline.common.errors import VerbatimError
from pipeline.documents.columns import ColumnNames
from pipeline.documents.formats import FORMATS
from pipeline.documents.options import Options
from pipeline.documents.translation import answer_texts, choose
from serving.file_translator import note_of

if TYPE_CHECKING:
    from serving.glossary import Glossary
    from serving.model import Model


@dataclasses.dataclass(frozen=True)
class Shard:
    """One file.

    Attributes:
        source, target: its path, and that of its translation.
        format: the name of its format.
    """

    source: str
    target: str
    format: str

    @property
    def facts(self) -> str:
        """The path of the file that says what became of it; it is written last."""
        return f"{self.target}.facts.json"


@dataclasses.dataclass(frozen=True)
class Work:
    """What is done with each file.

    Attributes:
        model: the model's folder.
        shown: what JSON Lines show; if nothing, the file's own format is written.
        glossary: translations of phrases, or None.
        attempts: how often a file is tried.
    """

    model: str
    shown: translated.Shown
    glossary: "Glossary | None" = None
    attempts: int = 3


class TranslateFile(beam.DoFn):
    """Translates one file, unless the same model has translated it before.

    Args:
        work: what is done.
    """

    def __init__(self, work: Work) -> None:
        super().__init__()
        self._work = work

    @untyped_in_beam
    def process(self, shard: Shard) -> Iterator[str]:
        """Writes the translation of a file, then its facts; yields its path."""
        error = ""
        for _ in range(self._work.attempts):
            try:
                _translate(shard, self._work)
                yield shard.target
                return
            except (VerbatimError, OSError, EOFError, zlib.error) as failure:
                error = str(failure)
        _write(shard.facts, _as_bytes({"input": shard.source, "error": error}))


def read(path: str) -> bytes:
    """Returns the content of a file, wherever it is; as it is, compressed or not."""
    if not whole_files.is_remote(path):
        with open(path, "rb") as file:
            return file.read()
    import tensorflow as tf

    with tf.io.gfile.GFile(path, "rb") as file:
        content: bytes = file.read()
    return content


@functools.lru_cache(maxsize=1)
def _model(folder: str) -> "Model":
    """Returns the model, loaded once in each process, with TensorFlow Text's operations."""
    from serving import compiled_programs
    from serving.model import Model

    compiled_programs.keep()
    return Model(folder)


def _translate(shard: Shard, work: Work) -> None:
    model = _model(work.model)
    metadata = model.metadata()
    content = read(shard.source)
    terms = [] if work.glossary is None else sorted(work.glossary.terms.items())
    # What decides the output: it is made again if any of it is another.
    key = {
        "input": shard.source,
        "output": shard.target,
        "format": shard.format,
        "model": metadata.name,
        "version": metadata.version,
        "records": dataclasses.asdict(work.shown),
        "sha256": hashlib.sha256(content + _as_bytes(terms)).hexdigest(),
    }
    if _is_done(shard, key):
        return
    is_compressed = shard.source.endswith(".gz")
    plain = gzip.decompress(content) if is_compressed else content
    told = Options(ColumnNames("source", "target"), "", None)
    document = FORMATS[shard.format].read(shard.source, plain, told)
    texts = [segment.text for segment in document.segments]
    outcomes = answer_texts(model, texts, work.shown.n_best, work.glossary) if texts else {}
    translations, of_segments = choose(document, outcomes)
    note = note_of(metadata.name, metadata.version)
    made = (
        translated.records(document, of_segments, work.shown)
        if work.shown
        else document.filled(translations, note)
    )
    _write(shard.target, gzip.compress(made, mtime=0) if is_compressed else made)
    _write(shard.facts, _as_bytes({**key, **translated.facts_of(document, of_segments)}))


def _is_done(shard: Shard, key: dict[str, Any]) -> bool:
    """Whether a file is translated already, by the same model from the same content."""
    try:
        facts = json.loads(read(shard.facts))
        if not _exists(shard.target):
            return False
    # Of local files and addresses; or half a file from elsewhere.
    except Exception:
        return False
    return isinstance(facts, dict) and facts == {**facts, **key} and "error" not in facts


def _exists(path: str) -> bool:
    if not whole_files.is_remote(path):
        return os.path.isfile(path)
    import tensorflow as tf

    return bool(tf.io.gfile.exists(path))


def _write(path: str, content: bytes) -> None:
    with whole_files.whole_file(path, "wb") as file:
        file.write(content)


def _as_bytes(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=1).encode("utf-8")
