"""Files, their paths and their lines:
local files need Python alone, addresses with a scheme go through TFX, imported only then.
"""

import codecs
import os

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_BLOCK = 1 << 20


def resolve_data_path(data_path):
    """Makes a data path absolute, so that it means the same in every process.

    Args:
        data_path: a file, a folder, or two files separated by a comma; remote addresses
            (`scheme://...`) stay.

    Returns:
        The path as a string.
    """
    data_path = os.fspath(data_path)
    if "," in data_path and not os.path.exists(data_path):
        return ",".join(_absolute(part.strip()) for part in data_path.split(","))
    return _absolute(data_path)


def split_base(paths):
    """Splits absolute paths, or remote addresses, into what they have in common and the rest.

    Args:
        paths: one path or more.

    Returns:
        (base, names): `os.path.join(base, name)` gives each path back.
    """
    # Not os.path.commonpath: it would fold the two slashes of an address into one.
    base = os.path.commonprefix(
        [os.path.dirname(path).rstrip("/") + "/" for path in paths]
    ).rpartition("/")[0]
    if not base or base.endswith(":/"):  # nothing in common but the root, or the scheme
        base += "/"
    return base, tuple(path[len(base) :].lstrip("/") for path in paths)


def files_for(path):
    """Returns the file system of a path or an address, with `is_directory`, `exists`, `list` and
    `open` (for reading bytes).
    """
    return RemoteFiles() if _is_remote(path) else LocalFiles()


class LocalFiles:
    """The local file system."""

    is_directory = staticmethod(os.path.isdir)
    exists = staticmethod(os.path.exists)
    list = staticmethod(os.listdir)

    @staticmethod
    def open(path):
        return open(path, "rb")


class RemoteFiles:
    """The file systems that TFX has plug-ins for."""

    def __init__(self):
        from tfx.dsl.io import fileio

        self._fileio = fileio
        self.exists = fileio.exists
        self.is_directory = fileio.isdir

    def list(self, path):
        return [name.rstrip("/") for name in self._fileio.listdir(path)]

    def open(self, path):
        return self._fileio.open(path, "rb")


def _is_remote(path):
    return "://" in path


def _absolute(path):
    return path if _is_remote(path) else os.path.abspath(path)


def raw_lines(path, files=None):
    """Yields (line number from 1, bytes without line end) of a file;
    a leading byte order mark is dropped.

    Args:
        path: the file.
        files: its file system, as `files_for` gives it; looked up where it is not given.
    """
    with (files or files_for(path)).open(path) as handle:
        for number, raw in enumerate(handle, 1):
            if number == 1 and raw.startswith(BYTE_ORDER_MARK):
                raw = raw[len(BYTE_ORDER_MARK) :]
            yield number, raw.rstrip(b"\r\n")


def count_lines(path, files):
    """Returns how many lines a file has; a last one without a line end counts."""
    count, last = 0, b"\n"
    with files.open(path) as handle:
        while block := handle.read(_BLOCK):
            count += block.count(b"\n")
            last = block[-1:]
    return count + (last != b"\n")


def is_utf16(path, files):
    """Whether a file is UTF-16 text:
    by its byte order mark, or because a quarter of its first bytes, or more, are NUL.
    """
    with files.open(path) as handle:
        head = handle.read(4096)
    return head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or 0 < len(
        head
    ) <= 4 * head.count(b"\0")


def decode(raw):
    """Returns the text, or None where the bytes are not UTF-8."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return None
