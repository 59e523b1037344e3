"""One SavedModel that several components of a run read, loaded once if they share a process.

The Evaluator leaves its candidate here, loaded and compiled, and the Reporter takes it. Loading
makes each operation of the graph anew, and what was compiled belongs to the loaded functions.
"""

import os
import threading
from typing import Any, NamedTuple

_FINGERPRINT = "fingerprint.pb"


class _Identity(NamedTuple):
    """What identifies a SavedModel.

    Attributes:
        directory: its folder.
        fingerprint: TensorFlow's, which changes with graph and weights.
    """

    directory: str
    fingerprint: bytes


_left: dict[_Identity, Any] = {}
_lock = threading.Lock()


def load(directory: str | os.PathLike[str]) -> Any:
    """Returns a SavedModel: the one that `load_and_leave` has left, or loaded anew.

    What was left is handed out once, so that it is gone when its user has gone.
    """
    path = os.fspath(directory)
    with _lock:
        left = _left.pop(_identity(path), None) if _left else None
    return _load(path) if left is None else left


def load_and_leave(directory: str) -> Any:
    """Returns a SavedModel, and leaves it for the next one who loads the same, instead of what was
    left before.
    """
    with _lock:
        model = _left.get(_identity(directory))
        if model is None:
            _left.clear()
            model = _left[_identity(directory)] = _load(directory)
    return model


def _load(directory: str) -> Any:
    import tensorflow as tf

    # Registers the operations that the graph uses.
    import tensorflow_text  # noqa: F401

    return tf.saved_model.load(directory)


def _identity(directory: str) -> _Identity:
    import tensorflow as tf

    path = os.path.join(directory, _FINGERPRINT)
    fingerprint = b""
    if tf.io.gfile.exists(path):
        with tf.io.gfile.GFile(path, "rb") as file:
            fingerprint = file.read()
    if "://" not in directory:
        directory = os.path.realpath(directory)
    return _Identity(directory, fingerprint)
