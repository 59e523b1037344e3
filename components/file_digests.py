"""The contents of files that a recipe names, as part of a cache key."""

import os

from tfx.dsl.io import fileio

from pipeline.common.file_digests import sha256_of
from pipeline.readers.fingerprints import fingerprint_of_folder
from pipeline.recipes.sections import DataConfig
from pipeline.recipes.settings import VocabularySettings

#: An execution property that nothing reads: a changed lexicon changes the cache key.
LEXICON_DIGEST_KEY = "copy_lexicon_digest"


def with_digests(settings: VocabularySettings) -> VocabularySettings:
    """Returns the settings with a digest of each lexicon file, and of a preset that is a folder.

    So a changed file is read again. A file that cannot be reached from here has no digest: a
    pipeline may be written where its files are not.
    """
    with_digest = settings.copy()
    if digest := digest_of(settings.get("dictionary")):
        with_digest["dictionary_digest"] = digest
    if digest := digest_of(settings.get("copy_lexicon")):
        with_digest["copy_lexicon_digest"] = digest
    preset = settings.get("preset", "")
    if os.path.isdir(preset):
        with_digest["preset_digest"] = fingerprint_of_folder(preset)
    return with_digest


def recombination_digest(data: DataConfig) -> dict[str, str]:
    """Returns the property with the digest of the lexicon that new pairs are made by, if any."""
    digest = digest_of(data.copy_lexicon) if data.recombinations else None
    return {LEXICON_DIGEST_KEY: digest} if digest else {}


def digest_of(path: str | None) -> str | None:
    """Returns the SHA-256 of a file; None if it cannot be reached from here."""
    if not path or not fileio.exists(path):
        return None
    with fileio.open(path, "rb") as file:
        return sha256_of(file)
