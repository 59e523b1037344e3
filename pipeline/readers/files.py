"""Files, their paths and their lines.

Local files need only Python; addresses with a scheme go through TFX, imported only then.
"""

import codecs
import gzip
import io
import os
import zlib
from collections.abc import Iterator, Sequence
from typing import IO, TYPE_CHECKING, Protocol

from pipeline.common import object_stores
from pipeline.common.whole_files import absolute, is_remote
from pipeline.readers import DataError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

#: The suffix of a compressed file.
GZ = ".gz"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_BLOCK = 1 << 20


def resolve_data_path(data_path: str | os.PathLike[str]) -> str:
    """Makes a data path absolute, so that it means the same in every process.

    Args:
        data_path: a file, a folder, or two files separated by a comma; remote addresses
            (`scheme://...`) stay.
    """
    path = os.fspath(data_path)
    if "," in path and not os.path.exists(path):
        return ",".join(absolute(part.strip()) for part in path.split(","))
    return absolute(path)


def split_base(paths: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Splits absolute paths, or remote addresses, into their common part and the rest.

    Args:
        paths: one path or more.

    Returns:
        (base, names): `os.path.join(base, name)` gives each path back.
    """
    # Not os.path.commonpath: it would fold the two slashes of an address into one.
    base = os.path.commonprefix(
        [os.path.dirname(path).rstrip("/") + "/" for path in paths]
    ).rpartition("/")[0]
    # Nothing in common but the root, or the scheme.
    if not base or base.endswith(":/"):
        base += "/"
    return base, tuple(path[len(base) :].lstrip("/") for path in paths)


class Files(Protocol):
    """A file system, for reading."""

    def is_directory(self, path: str) -> bool:
        """Whether a path is a folder."""

    def exists(self, path: str) -> bool:
        """Whether a path is a file or folder."""

    def names_in(self, path: str) -> Sequence[str]:
        """Returns the names of the files and folders in a folder."""

    def open(self, path: str) -> IO[bytes]:
        """Opens a file for reading bytes, which are unpacked if its name ends in `.gz`."""


def files_for(path: str) -> Files:
    """Returns the file system of a path or an address."""
    return RemoteFiles() if is_remote(path) else LocalFiles()


class LocalFiles:
    """The local file system."""

    def is_directory(self, path: str) -> bool:
        """See `Files`."""
        return os.path.isdir(path)

    def exists(self, path: str) -> bool:
        """See `Files`."""
        return os.path.exists(path)

    def names_in(self, path: str) -> Sequence[str]:
        """See `Files`."""
        return os.listdir(path)

    def open(self, path: str) -> IO[bytes]:
        """See `Files`."""
        return _unpacked(path, open(path, "rb"))


class RemoteFiles:
    """The file systems that TFX has plug-ins for."""

    def __init__(self) -> None:
        from tfx.dsl.io import fileio

        self._fileio = fileio

    def is_directory(self, path: str) -> bool:
        """See `Files`."""
        with object_stores.one_sentence(path, "read"):
            return bool(self._fileio.isdir(path))

    def exists(self, path: str) -> bool:
        """See `Files`."""
        with object_stores.one_sentence(path, "read"):
            return bool(self._fileio.exists(path))

    def names_in(self, path: str) -> Sequence[str]:
        """See `Files`."""
        with object_stores.one_sentence(path, "read"):
            return [name.rstrip("/") for name in self._fileio.listdir(path)]

    def open(self, path: str) -> IO[bytes]:
        """See `Files`."""
        return _unpacked(path, self._fileio.open(path, "rb"))


def without_gz(name: str) -> str:
    """Returns the name of a file without the suffix `.gz`."""
    return name[: -len(GZ)] if name.lower().endswith(GZ) else name


def _unpacked(path: str, file: IO[bytes]) -> IO[bytes]:
    if without_gz(path) == path:
        return file
    return io.BufferedReader(_Unpacked(path, file), _BLOCK)


class _Unpacked(io.RawIOBase):
    """The content of a gzip file.

    Args:
        path: its name in messages.
        file: the file; it is closed with this one.
    """

    def __init__(self, path: str, file: IO[bytes]) -> None:
        super().__init__()
        self._path, self._file = path, file
        self._content = gzip.GzipFile(fileobj=file)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        view = memoryview(buffer).cast("B")
        try:
            block = self._content.read(len(view))
        # EOFError: it ends early.
        except (gzip.BadGzipFile, zlib.error, EOFError) as error:
            reason = str(error).rstrip(".")
            raise DataError(
                f"{self._path} is not a complete gzip file ({reason}): compress it again, or "
                "remove it."
            ) from None
        view[: len(block)] = block
        return len(block)

    def close(self) -> None:
        self._file.close()
        super().close()


def raw_lines(path: str, files: Files | None = None) -> Iterator[tuple[int, bytes]]:
    """Yields (line number from 1, bytes without line end) of a file, without a byte order mark.

    Args:
        path: the file.
        files: its file system; by default that of `files_for`.
    """
    with (files or files_for(path)).open(path) as handle:
        for number, raw in enumerate(handle, 1):
            if number == 1 and raw.startswith(BYTE_ORDER_MARK):
                raw = raw[len(BYTE_ORDER_MARK) :]
            yield number, raw.rstrip(b"\r\n")


def count_lines(path: str, files: Files) -> int:
    """Returns how many lines a file has; a last one without a line end counts."""
    count, last = 0, b"\n"
    with files.open(path) as handle:
        while block := handle.read(_BLOCK):
            count += block.count(b"\n")
            last = block[-1:]
    return count + (last != b"\n")


def is_utf16(path: str, files: Files) -> bool:
    """Whether a file is UTF-16 text, by its first bytes: see `starts_as_utf16`."""
    with files.open(path) as handle:
        return starts_as_utf16(handle.read(4096))


def starts_as_utf16(content: bytes) -> bool:
    """Whether bytes are UTF-16 text.

    They are by a byte order mark, or if at least a quarter of the first ones are NUL.
    """
    head = content[:4096]
    return head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or 0 < len(
        head
    ) <= 4 * head.count(b"\0")


def decode(raw: bytes) -> str | None:
    """Returns the text, or None where the bytes are not UTF-8."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return None
