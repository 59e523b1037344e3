"""Digests of files, read block by block."""

import hashlib
from typing import IO

_BLOCK = 1 << 20


def sha256_of(file: IO[bytes]) -> str:
    """Returns the SHA-256 digest of what a file holds from here on, in hexadecimal digits."""
    digest = hashlib.sha256()
    while block := file.read(_BLOCK):
        digest.update(block)
    return digest.hexdigest()
