"""Checkpoints of a training: written whole or not at all, and used only by the same training.

A checkpoint is a state: dicts, lists, scalars and arrays. What belongs to it, the trainers know.
"""

import contextlib
import hashlib
import io
import json
import os
import time
from collections.abc import Iterable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from pipeline.common import progress, whole_files

# Of training, between two checkpoints.
SECONDS = 120.0
# Times as long as the last one took to write: of a training's time, no more than a fiftieth goes
# into checkpoints.
TIMES_WRITING = 50.0
# The last one, and the one before for where that is damaged.
KEPT = 2
_MAGIC = b"verbatim checkpoint 1 "
_SUFFIX = ".checkpoint"
# Stands in the JSON for an array that is stored beside it.
_ARRAY = "array number"


def digest_of(*parts: Any) -> str:
    """Returns a text of 32 hexadecimal digits for what a training is made from.

    The versions of Keras, TensorFlow and NumPy take part: another one may compute other weights, or
    draw another order.

    Args:
        *parts: bytes, arrays, and what JSON can hold.
    """
    digest = hashlib.sha256()
    for part in (*parts, [keras.__version__, tf.__version__, np.__version__]):
        if isinstance(part, np.ndarray):
            # Not copied: it may be a text of any size.
            head, content = f"{part.dtype} {part.shape} ".encode(), np.ascontiguousarray(part)
            digest.update(b"%d " % (len(head) + content.nbytes))
            digest.update(head)
            digest.update(content.reshape(-1).view("uint8").data)
            continue
        if not isinstance(part, bytes):
            part = json.dumps(part, sort_keys=True).encode()
        digest.update(b"%d " % len(part))
        digest.update(part)
    return digest.hexdigest()[:32]


def shapes_of(model: keras.Model) -> list[list[Any]]:
    """Returns the shape and type of each of a model's variables, which a state's must fit."""
    return [[list(variable.shape), variable.dtype] for variable in model.variables]


class Checkpoints:
    """The checkpoints of one training.

    Args:
        directory: folder, or address, of the checkpoints of all trainings; made when it is needed.
            None keeps none.
        writes: whether this process writes and removes them; where several train together, one
            does, and the others read.

    Attributes:
        directory: this training's own, known after `load`; None keeps none.
    """

    def __init__(self, directory: str | None = None, writes: bool = True) -> None:
        self.directory: str | None = None
        self._writes = writes
        self._of_all = directory
        self._written = time.monotonic()
        self._took = 0.0
        self._failed = False
        self._members: list[Checkpoints] = []

    def of_a_member(self) -> "Checkpoints":
        """Returns those of one training of several, in the same place; `clear` removes them too."""
        self._members.append(Checkpoints(self._of_all, self._writes))
        return self._members[-1]

    def load(self, digest: str) -> dict[str, Any] | None:
        """Returns the state in the newest complete checkpoint, or None; reports damaged ones.

        Args:
            digest: what `digest_of` returned for this training: the name of its folder. Checkpoints
                of another one are never read.
        """
        self.directory = os.path.join(self._of_all, digest) if self._of_all else None
        for path in reversed(self._paths()):
            try:
                with tf.io.gfile.GFile(path, "rb") as file:
                    return _unpack(file.read())
            except (ValueError, OSError, tf.errors.OpError) as error:
                if not self._writes:
                    continue
                progress.warn(
                    f"The checkpoint {path} cannot be used ({_reason(error)}): the training "
                    "resumes from the one before, or starts again."
                )
                if isinstance(error, ValueError):
                    # It must not take the place of a good one among those that are kept.
                    tf.io.gfile.remove(path)
        return None

    def scratch(self) -> str | None:
        """Returns a folder on the disk of the checkpoints, for files without a name, or None."""
        if not self._of_all or whole_files.is_remote(self._of_all):
            return None
        folder = os.path.abspath(self._of_all)
        while not os.path.isdir(folder):
            folder = os.path.dirname(folder)
        return folder if os.access(folder, os.W_OK) else None

    def due(self, at_epoch_end: bool = False) -> bool:
        """Whether it is time for a checkpoint: never so often that writing costs much.

        That is `SECONDS` after the last one, at an epoch's end sooner.
        """
        if not self.directory or not self._writes:
            return False
        least = 0.0 if at_epoch_end else SECONDS
        return time.monotonic() - self._written >= max(least, TIMES_WRITING * self._took)

    def save(self, state: dict[str, Any]) -> None:
        """Writes a checkpoint and removes those before the last.

        If one cannot be written the training goes on, and a warning says so one time.

        Args:
            state: dicts with text keys, lists, scalars and arrays.
        """
        assert self.directory is not None, "load the checkpoints before one is saved"
        started = time.monotonic()
        paths = self._paths()
        number = _number(paths[-1]) + 1 if paths else 1
        try:
            tf.io.gfile.makedirs(self.directory)
            _write(os.path.join(self.directory, f"{number:08d}{_SUFFIX}"), _pack(state))
            for path in paths[: 1 - KEPT]:
                tf.io.gfile.remove(path)
            self._failed = False
        except (OSError, tf.errors.OpError) as error:
            if not self._failed:
                lost = "its work from now on" if paths else "all of it"
                progress.warn(
                    f"No checkpoint can be written to {self.directory} ({_reason(error)}); the "
                    f"training continues, but if it is stopped, {lost} must be done again: free "
                    "some space there."
                )
            self._failed = True
        self._written = time.monotonic()
        self._took = self._written - started

    def clear(self) -> None:
        """Removes them all: the training has ended and its model is saved."""
        for member in self._members:
            member.clear()
        if not self._writes or not self._of_all or not self.directory:
            return
        if tf.io.gfile.isdir(self.directory):
            tf.io.gfile.rmtree(self.directory)
            if not whole_files.is_remote(self._of_all):
                # An empty folder is removed; one with another training's checkpoints stays.
                with contextlib.suppress(OSError):
                    os.rmdir(self._of_all)

    def _paths(self) -> list[str]:
        """Returns the paths of this training's checkpoints, the oldest first."""
        if not self.directory or not tf.io.gfile.isdir(self.directory):
            return []
        names = [
            name
            for name in tf.io.gfile.listdir(self.directory)
            if name.endswith(_SUFFIX) and name.removesuffix(_SUFFIX).isdigit()
        ]
        return [os.path.join(self.directory, name) for name in sorted(names)]


def _number(path: str) -> int:
    return int(os.path.basename(path).removesuffix(_SUFFIX))


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or getattr(error, "message", None) or str(error)


def _pack(state: dict[str, Any]) -> Iterable[bytes | memoryview]:
    """Returns a state as the parts of a file.

    They are the digest of what follows, then NumPy's `.npz` of the arrays, the rest among them as
    JSON.
    """
    arrays = []

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [plain(item) for item in value]
        if isinstance(value, (np.ndarray, np.generic)):
            arrays.append(np.asarray(value))
            return {_ARRAY: len(arrays) - 1}
        return value

    facts = np.frombuffer(json.dumps(plain(state)).encode(), "uint8")
    buffer = io.BytesIO()
    numbered: dict[str, Any] = {str(number): array for number, array in enumerate(arrays)}
    np.savez(buffer, facts=facts, **numbered)
    content = buffer.getbuffer()
    return [_MAGIC + hashlib.sha256(content).hexdigest().encode() + b"\n", content]


def _unpack(content: bytes) -> dict[str, Any]:
    """Returns the state that `_pack` was given; a tuple is a list.

    Raises:
        ValueError: it is not complete.
    """
    header, _, content = content.partition(b"\n")
    if header != _MAGIC + hashlib.sha256(content).hexdigest().encode():
        raise ValueError("it is not complete")
    arrays = np.load(io.BytesIO(content), allow_pickle=False)

    def full(value: Any) -> Any:
        if isinstance(value, dict):
            if _ARRAY in value:
                return arrays[str(value[_ARRAY])]
            return {key: full(item) for key, item in value.items()}
        return [full(item) for item in value] if isinstance(value, list) else value

    state: dict[str, Any] = full(json.loads(arrays["facts"].tobytes()))
    return state


def _write(path: str, parts: Iterable[bytes | memoryview]) -> None:
    with whole_files.whole_file(path, "wb", durable=True) as file:
        for part in parts:
            # TensorFlow writes nothing but bytes.
            file.write(bytes(part) if whole_files.is_remote(path) else part)
