"""What is known of a public corpus: a TOML file of this folder for each."""

import dataclasses
import pathlib
import sys
import urllib.parse
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from pipeline.common.errors import VerbatimError

FOLDER = pathlib.Path(__file__).parent


class CorpusError(VerbatimError, RuntimeError):
    """A corpus that is not known, or cannot be had; the message is one sentence for the user."""


@dataclasses.dataclass(frozen=True)
class CorpusFile:
    """A file of a corpus.

    Attributes:
        path: its path in the corpus' folder.
        sha256: the digest of its content, in hexadecimal digits.
        address: where it can be fetched, relative to the corpus' `root`: the file itself, its gzip
            form (`.gz`), or a zip archive that holds it under any folder. Empty if it cannot.
    """

    path: str
    sha256: str
    address: str = ""


@dataclasses.dataclass(frozen=True)
class Corpus:
    """A public corpus.

    Attributes:
        name: its own, and that of its folder.
        title: what it is.
        licence: as its publisher states it.
        page: the address of a page about it.
        files: what it consists of.
        recipes: the names of the recipes that it is for.
        root: the address that those of its files are relative to.
        how: how to get what cannot be fetched: a sentence.
    """

    name: str
    title: str
    licence: str
    page: str
    files: tuple[CorpusFile, ...]
    recipes: tuple[str, ...] = ()
    root: str = ""
    how: str = ""

    def address(self, file: CorpusFile) -> str:
        """Returns the whole address of one of its files."""
        return urllib.parse.urljoin(self.root, file.address)


def names() -> list[str]:
    """Returns the names of all corpora."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load(name: str) -> Corpus:
    """Returns the corpus of this name, or of the recipe of this name.

    Raises:
        CorpusError: there is none.
    """
    corpora = [_read(FOLDER / f"{known}.toml") for known in names()]
    for corpus in corpora:
        if name == corpus.name or name in corpus.recipes:
            return corpus
    raise CorpusError(f"There is no public corpus {name}; these are known: {', '.join(names())}.")


def _read(path: pathlib.Path) -> Corpus:
    tree: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    files = tuple(CorpusFile(**file) for file in tree.pop("files"))
    recipes = tuple(tree.pop("recipes", ()))
    return Corpus(name=path.stem, files=files, recipes=recipes, **tree)
