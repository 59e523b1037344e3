"""Vectors of words from a file in word2vec's or GloVe's formats."""

import dataclasses
import gzip
from collections.abc import Iterator, Sequence
from typing import IO, cast

import numpy as np
from numpy.typing import NDArray

from pipeline.common import progress
from pipeline.recipes.fields import RecipeError
from pipeline.recipes.recipe_keys import RecipeKeys

#: The keys that name a file, and the side of the vocabulary that it is for.
KEYS = {"source_vectors": "source", "target_vectors": "target"}


@dataclasses.dataclass(frozen=True)
class PretrainedVectors:
    """The vectors of a vocabulary's words that a file has.

    Attributes:
        ids: int32 `[words]`, rising.
        values: float32 `[words, size]`.
    """

    ids: NDArray[np.int32]
    values: NDArray[np.float32]

    @classmethod
    def read(cls, recipe: RecipeKeys, key: str, words: Sequence[str]) -> "PretrainedVectors":
        """Reads the file that a recipe names, and reports how many words it has.

        Args:
            recipe: the recipe.
            key: one of `KEYS`, which is set.
            words: the vocabulary, by id.

        Raises:
            RecipeError: the file cannot be read, ends early, has vectors of another size than
                `model.embedding_size`, or none of a word of the vocabulary.
        """
        file = _File(getattr(recipe.model, key), key, recipe.model.embedding_size)
        places = {word: number for number, word in enumerate(words)}
        found: dict[int, NDArray[np.float32]] = {}
        for word, values in file.entries():
            # Of a word that is listed twice the first counts.
            if word in places and places[word] not in found:
                found[places[word]] = file.numbers(values, word)
        if not found:
            raise RecipeError(
                f"{file.name} has no vector for any of the {len(words)} entries of the "
                f"{KEYS[key]} vocabulary: cut and write its words as in the vocabulary "
                "(data.tokenization, data.lowercase)."
            )
        ids = sorted(found)
        progress.say(
            f"{len(ids):,} of {len(words):,} entries of the {KEYS[key]} vocabulary start with a "
            f"vector of {file.path}."
        )
        return cls(np.array(ids, np.int32), np.stack([found[number] for number in ids]))


def check(recipe: RecipeKeys) -> None:
    """Reads the first vector of each file, so that errors are known before anything runs.

    Raises:
        RecipeError: see `PretrainedVectors.read`.
    """
    for key in KEYS:
        if path := getattr(recipe.model, key):
            file = _File(path, key, recipe.model.embedding_size)
            for word, values in file.entries():
                file.numbers(values, word)
                break


class _File:
    """A file of vectors.

    One of word2vec's text format has a line for each word, the word and its numbers separated by
    spaces, below a line with the number of words and the size; GloVe's lacks that line. A file
    whose name ends with `.bin` has word2vec's binary format. Either may be compressed (`.gz`).
    """

    def __init__(self, path: str, key: str, size: int) -> None:
        self.path = path
        self.name = f"The file {path} (model.{key})"
        self._size = size

    def entries(self) -> Iterator[tuple[str, bytes | list[bytes]]]:
        """Yields each word, and its numbers as they are in the file."""
        try:
            with self._open() as file:
                stem = self.path.removesuffix(".gz")
                yield from self._binary(file) if stem.endswith(".bin") else self._text(file)
        except (OSError, EOFError) as error:
            raise RecipeError(f"{self.name} cannot be read: {error}.") from error

    def numbers(self, values: bytes | list[bytes], word: str) -> NDArray[np.float32]:
        """Returns what stands beside a word, as numbers.

        Raises:
            RecipeError: it is something else.
        """
        try:
            numbers = (
                np.frombuffer(values, "<f4")
                if isinstance(values, bytes)
                else np.array([float(value) for value in values], np.float32)
            )
        except ValueError:
            numbers = np.array([np.nan], np.float32)
        if not np.isfinite(numbers).all():
            raise RecipeError(f"{self.name} has values beside {word!r} that are not finite.")
        return cast(NDArray[np.float32], numbers)

    def _open(self) -> IO[bytes]:
        if self.path.endswith(".gz"):
            return cast(IO[bytes], gzip.open(self.path, "rb"))
        return open(self.path, "rb")

    def _check_size(self, size: int) -> None:
        if size != self._size:
            raise RecipeError(
                f"{self.name} has vectors of {size} numbers: set 'model.embedding_size' to {size} "
                f"(it is {self._size}), or name another file."
            )

    def _text(self, file: IO[bytes]) -> Iterator[tuple[str, list[bytes]]]:
        total = None
        number = 0
        for line_number, line in enumerate(file, 1):
            parts = line.rstrip(b"\r\n ").split(b" ")
            if line_number == 1 and len(parts) == 2 and all(part.isdigit() for part in parts):
                total = int(parts[0])
                self._check_size(int(parts[1]))
                continue
            if number == 0 and total is None and len(parts) != self._size + 1:
                self._check_size(len(parts) - 1)
            # A word may hold spaces.
            if len(parts) <= self._size:
                raise RecipeError(
                    f"{self.name} has {len(parts) - 1} numbers instead of {self._size} on line "
                    f"{line_number}: it is damaged or ends early."
                )
            number += 1
            word = b" ".join(parts[: -self._size])
            yield word.decode("utf-8", errors="replace"), parts[-self._size :]
        self._check_end(number, total)

    def _binary(self, file: IO[bytes]) -> Iterator[tuple[str, bytes]]:
        parts = file.readline(100).split()
        if len(parts) != 2 or not all(part.isdigit() for part in parts):
            raise RecipeError(
                f"{self.name} does not begin with the number of its words and their size, as "
                "word2vec's binary files do."
            )
        total = int(parts[0])
        self._check_size(int(parts[1]))
        for number in range(total):
            word = bytearray()
            while (character := file.read(1)) not in (b" ", b""):
                word += character
            values = file.read(4 * self._size)
            if len(values) < 4 * self._size:
                self._check_end(number, total)
            # Some writers end each vector with a line feed.
            yield word.lstrip(b"\n").decode("utf-8", errors="replace"), values

    def _check_end(self, number: int, total: int | None) -> None:
        if total is not None and number < total:
            raise RecipeError(
                f"{self.name} ends early: it has {number:,} of the {total:,} vectors that its "
                "first line promises."
            )
        if number == 0:
            raise RecipeError(f"{self.name} is empty.")
