"""A model folder at an address, such as `gs://bucket/models/NAME`, of which a copy is served."""

import logging
import os
import pathlib
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator

from serving.errors import ServeError
from serving.human_sentence import human_sentence
from serving.version_folders import MODEL_FILE, numbered_folders, version_of

logger = logging.getLogger(__name__)

# In seconds: each look asks the bucket for a list.
_LOOKS_EVERY = 30.0
#: Names and sizes of files.
_Listing = tuple[tuple[str, int], ...]


def is_address(base: str | os.PathLike[str]) -> bool:
    """Whether a model folder is at an address that TensorFlow reads by itself."""
    return re.match(r"(gs|ram)://", os.fspath(base)) is not None


class BucketFolder:
    """Copies versions from a bucket into a folder of this machine, where they are served.

    A version is copied when it holds `saved_model.pb`, and while serving when its files were the
    same at two looks, so that one which is still being written waits. It is never copied again:
    the pipeline writes each version once. Versions that the bucket no longer has, and those that
    newer ones replace, are deleted here. If the bucket cannot be read, or has no version any more,
    everything stays.

    Args:
        address: of the folder that holds the version folders.
        looks_every: seconds between two looks.

    Attributes:
        address: the same, without a slash at its end.
        folder: the folder on this machine; it is gone when this object is.
    """

    def __init__(self, address: str, looks_every: float = _LOOKS_EVERY) -> None:
        self.address = address.rstrip("/")
        self._temporary = tempfile.TemporaryDirectory(prefix="verbatim-models-")
        self.folder = pathlib.Path(self._temporary.name)
        self._looks_every = looks_every
        self._next_look = 0.0
        self._seen: dict[int, _Listing] = {}
        self._said = ""

    def bring_first(self, allows: Callable[[int], bool], most: int | None) -> bool:
        """Copies versions that are not here yet.

        Args:
            allows: whether a version may be served at all.
            most: how many of the latest are needed; None for all.

        Returns:
            Whether there was any to copy.

        Raises:
            ServeError: the bucket cannot be read; one sentence.
        """
        try:
            versions = self._versions(allows, most)
            missing = [version for version in versions if not self._is_here(version)]
            for version in missing:
                self._copy(version)
        except _storage_errors() as error:
            raise ServeError(self._sentence(error)) from None
        return bool(missing)

    def look(self, allows: Callable[[int], bool], most: int | None) -> None:
        """Looks into the bucket, if it is time: copies new versions, deletes what it has no more.

        A bucket that cannot be read is logged, once for each reason.

        Args:
            allows, most: see `bring_first`.
        """
        if time.monotonic() < self._next_look:
            return
        seen, self._seen = self._seen, {}
        try:
            versions = self._versions(allows, most)
            for version in versions:
                if self._is_here(version):
                    continue
                self._seen[version] = listing = self._listing(version)
                if seen.get(version) == listing:
                    self._copy(version)
            self._said = ""
        except _storage_errors() as error:
            sentence = self._sentence(error)
            if sentence != self._said:
                logger.warning("%s", sentence)
            self._said = sentence
            return
        finally:
            self._next_look = time.monotonic() + self._looks_every
        # An older version answers until the one that is missing has come.
        if versions and all(map(self._is_here, versions)):
            for version, copy in numbered_folders(self.folder).items():
                if version not in versions:
                    shutil.rmtree(copy, ignore_errors=True)

    def close(self) -> None:
        """Deletes the copies."""
        self._temporary.cleanup()

    def _is_here(self, version: int) -> bool:
        return (self.folder / str(version)).is_dir()

    def _versions(self, allows: Callable[[int], bool], most: int | None) -> list[int]:
        """Returns the latest complete versions in the bucket, the latest first."""
        import tensorflow as tf

        named = (version_of(name.rstrip("/")) for name in tf.io.gfile.listdir(self.address))
        found: list[int] = []
        for number in sorted((one for one in named if one is not None), reverse=True):
            if most is not None and len(found) >= most:
                break
            if not allows(number):
                continue
            if self._is_here(number) or tf.io.gfile.exists(f"{self._of(number)}/{MODEL_FILE}"):
                found.append(number)
        return found

    def _of(self, version: int) -> str:
        return f"{self.address}/{version}"

    def _files(self, version: int) -> Iterator[str]:
        """Yields the addresses of a version's files."""
        import tensorflow as tf

        for place, _, names in tf.io.gfile.walk(self._of(version)):
            for name in names:
                # Some stores have an object that stands for the folder itself.
                if name and not name.endswith("/"):
                    yield f"{place.rstrip('/')}/{name}"

    def _listing(self, version: int) -> _Listing:
        import tensorflow as tf

        files = self._files(version)
        return tuple(sorted((path, tf.io.gfile.stat(path).length) for path in files))

    def _copy(self, version: int) -> None:
        """Copies a version, and its model card if there is one; it appears when it is whole."""
        import tensorflow as tf

        logger.info("Copying %s.", self._of(version))
        beginning = f"{self._of(version)}/"
        made = pathlib.Path(tempfile.mkdtemp(dir=self.folder, prefix="copying-"))
        try:
            for path in self._files(version):
                target = made / path.removeprefix(beginning)
                target.parent.mkdir(parents=True, exist_ok=True)
                tf.io.gfile.copy(path, str(target))
            card = f"model_card_{version}.md"
            if tf.io.gfile.exists(f"{self.address}/{card}"):
                tf.io.gfile.copy(f"{self.address}/{card}", str(self.folder / card), overwrite=True)
            made.chmod(0o755)
            made.rename(self.folder / str(version))
        finally:
            shutil.rmtree(made, ignore_errors=True)

    def _sentence(self, error: Exception) -> str:
        message = str(getattr(error, "message", "") or error).split(" with body ")[0]
        reason = human_sentence(message.splitlines()[0] if message else type(error).__name__)
        return (
            f"{self.address} cannot be read ({reason.rstrip('.')}): check the address, and that "
            "this machine has a key that allows it."
        )


def _storage_errors() -> tuple[type[Exception], ...]:
    """Returns what TensorFlow's file systems raise; a disk that is full is an OSError."""
    import tensorflow as tf

    return (tf.errors.OpError, OSError)
