"""Fetches a public corpus into a folder, and checks every byte of it."""

import gzip
import hashlib
import io
import os
import pathlib
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Iterator

from pipeline.common import progress
from pipeline.common.file_digests import sha256_of
from pipeline.common.whole_files import whole_file
from pipeline.public_corpora.corpus import Corpus, CorpusError, CorpusFile

_SECONDS = 60.0
# No corpus is larger; an archive that unpacks to more is none of ours.
_MOST_BYTES = 2 << 30


def fetch(corpus: Corpus, directory: str | os.PathLike[str]) -> list[str]:
    """Puts the files of a corpus into a folder. Those that are there already are kept.

    A file appears whole and with the right content, or not at all. So a fetch that was interrupted
    goes on where it ended.

    Args:
        corpus: the corpus.
        directory: the folder, made if missing.

    Returns:
        The paths of the files that were written.

    Raises:
        CorpusError: a file of the folder has another content, an address does not answer or answers
            something else, or the corpus cannot be fetched; one sentence.
    """
    folder = pathlib.Path(directory).absolute()
    try:
        missing = [file for file in corpus.files if not _is_there(folder, file)]
        if any(not file.address for file in missing):
            lacking = ", ".join(file.path for file in missing if not file.address)
            raise CorpusError(f"{corpus.how} Missing in {folder}: {lacking}.")
        written = []
        for address, files in _by_address(corpus, missing):
            progress.say(f"Fetching {address}")
            content = _download(address)
            for file in files:
                _write(folder / file.path, _content(file, address, content))
                written.append(file.path)
    except OSError as error:
        raise CorpusError(
            f"The corpus {corpus.name} cannot be written to {folder}: {error.strerror or error}."
        ) from None
    return written


def _is_there(folder: pathlib.Path, file: CorpusFile) -> bool:
    """Returns whether a file is in the folder.

    Raises:
        CorpusError: it has another content.
    """
    path = folder / file.path
    if not path.exists():
        return False
    with open(path, "rb") as opened:
        digest = sha256_of(opened)
    if digest != file.sha256:
        raise CorpusError(
            f"{path} is not the corpus' own file: move it away, or name another folder."
        )
    return True


def _by_address(corpus: Corpus, files: list[CorpusFile]) -> Iterator[tuple[str, list[CorpusFile]]]:
    """Yields each address with its files: an archive is fetched once."""
    for address in dict.fromkeys(corpus.address(file) for file in files):
        yield address, [file for file in files if corpus.address(file) == address]


def _download(address: str) -> bytes:
    try:
        with urllib.request.urlopen(address, timeout=_SECONDS) as response:
            content: bytes = response.read(_MOST_BYTES + 1)
    except urllib.error.HTTPError as error:
        raise CorpusError(
            f"{address} answers {error.code} {error.reason}: the file may have moved."
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise CorpusError(
            f"{address} does not answer ({reason}): check the network, then run again."
        ) from None
    return content


def _content(file: CorpusFile, address: str, content: bytes) -> bytes:
    """Returns a file's content of what came from its address.

    Raises:
        CorpusError: it is not in there.
    """
    for candidate in _candidates(file, address, content):
        if hashlib.sha256(candidate).hexdigest() == file.sha256:
            return candidate
    raise CorpusError(
        f"{address} does not contain {file.path} as it was when the recipe was made: its SHA-256 "
        "digest differs."
    )


def _candidates(file: CorpusFile, address: str, content: bytes) -> Iterator[bytes]:
    """Yields what may be the file: all of the content, or a member of an archive."""
    name = pathlib.PurePosixPath(file.path).name
    try:
        if address.endswith(".zip"):
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                for member in archive.infolist():
                    fits = pathlib.PurePosixPath(member.filename).name == name
                    if fits and member.file_size <= _MOST_BYTES:
                        yield archive.read(member)
        elif address.endswith(".gz") and not name.endswith(".gz"):
            with gzip.open(io.BytesIO(content)) as unpacked:
                yield unpacked.read(_MOST_BYTES)
        else:
            yield content
    except (zipfile.BadZipFile, zlib.error, EOFError, gzip.BadGzipFile) as error:
        raise CorpusError(f"{address} is not a complete archive: {error}.") from None


def _write(path: pathlib.Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path, "wb") as file:
        file.write(content)
