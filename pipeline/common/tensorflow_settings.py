"""TensorFlow's settings, made before it is imported; settings of the user are kept."""

import os

_LOG_LEVEL = "TF_CPP_MIN_LOG_LEVEL"


def quiet() -> bool:
    """Keeps the notes of TensorFlow and gRPC out of a command's output as far as possible.

    Returns:
        False if the user has set `TF_CPP_MIN_LOG_LEVEL`, who then wants to see the notes.
    """
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    if _LOG_LEVEL in os.environ:
        return False
    os.environ[_LOG_LEVEL] = "3"
    return True


def for_training() -> None:
    """Makes TensorFlow multiply matrices with oneDNN, its default on newer processors only.

    With AVX2 too, an update then takes a fifth less time. Serving without XLA must not use it: its
    products of single rows would be slower.
    """
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
