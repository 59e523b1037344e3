"""Checkpoints of a training:
written whole or not at all, checked when they are read, and used by the same training alone.

A checkpoint is a state: dicts, lists, scalars and arrays. What belongs to it, the trainers know.
"""

import contextlib
import hashlib
import io
import json
import os
import time

import keras
import numpy as np
import tensorflow as tf

SECONDS = 120.0  # of training between two checkpoints
# Times as long as the last one took to write: of a training's time, no more than a fiftieth goes
# into checkpoints.
TIMES_WRITING = 50.0
KEPT = 2  # the last one, and the one before for where that is damaged
_MAGIC = b"verbatim checkpoint 1 "
_SUFFIX = ".checkpoint"
_ARRAY = "array number"  # stands in the JSON for an array that is stored beside it


def digest_of(*parts):
    """Returns a text of 32 hexadecimal digits for what a training is made from:
    bytes, arrays, and what JSON can hold.

    The versions of Keras and TensorFlow take part: another one may compute other weights.
    """
    digest = hashlib.sha256()
    for part in (*parts, [keras.__version__, tf.__version__]):
        if isinstance(part, np.ndarray):
            part = f"{part.dtype} {part.shape} ".encode() + np.ascontiguousarray(part).tobytes()
        elif not isinstance(part, bytes):
            part = json.dumps(part, sort_keys=True).encode()
        digest.update(b"%d " % len(part))
        digest.update(part)
    return digest.hexdigest()[:32]


def shapes_of(model):
    """Returns the shape and type of each of a model's variables:
    what a checkpoint's values must fit.
    """
    return [[list(variable.shape), variable.dtype] for variable in model.variables]


class Checkpoints:
    """The checkpoints of one training.

    Args:
        directory: folder, or address, of the checkpoints of all trainings; made when it is needed.
            None keeps none.
        say: function of one sentence for people.
        writes: whether this process writes and removes them; where several train together, one
            does, and the others read.

    Attributes:
        directory: this training's own, known after `load`; None keeps none.
    """

    def __init__(
        self, directory=None, say=lambda sentence: print(f"  {sentence}", flush=True), writes=True
    ):
        self.directory = None
        self._writes = writes
        self._of_all = directory
        self._say = say
        self._written = time.monotonic()
        self._took = 0.0
        self._failed = False

    def load(self, digest):
        """Returns the state in the newest checkpoint that is whole, or None;
        says which ones are not.

        Args:
            digest: what `digest_of` returned for this training: the name of its folder. Checkpoints
                of another one are never read.
        """
        self.directory = os.path.join(self._of_all, digest) if self._of_all else None
        for name in reversed(self._names()):
            path = os.path.join(self.directory, name)
            try:
                with tf.io.gfile.GFile(path, "rb") as file:
                    return _unpack(file.read())
            except (ValueError, OSError, tf.errors.OpError) as error:
                if not self._writes:
                    continue
                self._say(
                    f"The checkpoint {path} cannot be used ({_reason(error)}): the training goes "
                    "on from the one before, or begins anew."
                )
                if isinstance(error, ValueError):
                    # It must not take the place of a good one among those that are kept.
                    tf.io.gfile.remove(path)
        return None

    def due(self, at_epoch_end=False):
        """Whether it is time for a checkpoint: `SECONDS` after the last, at an epoch's end sooner;
        never so often that writing costs much.
        """
        if not self.directory or not self._writes:
            return False
        least = 0.0 if at_epoch_end else SECONDS
        return time.monotonic() - self._written >= max(least, TIMES_WRITING * self._took)

    def save(self, state):
        """Writes a checkpoint and removes those before the last.

        One that cannot be written costs the training nothing: it is said once.

        Args:
            state: dicts with text keys, lists, scalars and arrays.
        """
        started = time.monotonic()
        names = self._names()
        number = int(names[-1].removesuffix(_SUFFIX)) + 1 if names else 1
        try:
            tf.io.gfile.makedirs(self.directory)
            _write(os.path.join(self.directory, f"{number:08d}{_SUFFIX}"), _pack(state))
            for name in names[: 1 - KEPT]:
                tf.io.gfile.remove(os.path.join(self.directory, name))
            self._failed = False
        except (OSError, tf.errors.OpError) as error:
            if not self._failed:
                self._say(
                    f"No checkpoint can be written to {self.directory} ({_reason(error)}); the "
                    "training goes on, but if it is stopped, "
                    f"{'what it does from now on' if names else 'all of it'} is to be done again: "
                    "make room there."
                )
            self._failed = True
        self._written = time.monotonic()
        self._took = self._written - started

    def clear(self):
        """Removes them all: the training has ended and its model is kept."""
        if self._writes and self.directory and tf.io.gfile.isdir(self.directory):
            tf.io.gfile.rmtree(self.directory)
            if "://" not in self._of_all:
                # An empty folder says nothing; one with another training's stays.
                with contextlib.suppress(OSError):
                    os.rmdir(self._of_all)

    def _names(self):
        if not self.directory or not tf.io.gfile.isdir(self.directory):
            return []
        names = tf.io.gfile.listdir(self.directory)
        return sorted(
            name
            for name in names
            if name.endswith(_SUFFIX) and name.removesuffix(_SUFFIX).isdigit()
        )


def _reason(error):
    return getattr(error, "strerror", None) or getattr(error, "message", None) or str(error)


def _pack(state):
    """A state as bytes:
    the digest of what follows, then NumPy's `.npz` of the arrays, the rest among them as JSON.
    """
    arrays = []

    def plain(value):
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
    np.savez(buffer, facts=facts, **{str(number): array for number, array in enumerate(arrays)})
    content = buffer.getbuffer()
    return [_MAGIC + hashlib.sha256(content).hexdigest().encode() + b"\n", content]


def _unpack(content):
    """Returns the state that `_pack` was given; a tuple is a list.

    Raises:
        ValueError: it is not whole.
    """
    header, _, content = content.partition(b"\n")
    if header != _MAGIC + hashlib.sha256(content).hexdigest().encode():
        raise ValueError("it is not whole")
    arrays = np.load(io.BytesIO(content), allow_pickle=False)

    def full(value):
        if isinstance(value, dict):
            return (
                arrays[str(value[_ARRAY])]
                if _ARRAY in value
                else {key: full(item) for key, item in value.items()}
            )
        return [full(item) for item in value] if isinstance(value, list) else value

    return full(json.loads(arrays["facts"].tobytes()))


def _write(path, parts):
    """Writes a file, whole or not at all."""
    temporary = f"{path}.tmp"
    try:
        if "://" in path:
            with tf.io.gfile.GFile(temporary, "wb") as file:
                for part in parts:
                    file.write(bytes(part))
            tf.io.gfile.rename(temporary, path, overwrite=True)
            return
        with open(temporary, "wb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        if tf.io.gfile.exists(temporary):
            tf.io.gfile.remove(temporary)
        raise
    # Else a power cut could take back the renaming.
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
