"""What TensorFlow is told before it is imported, by its environment variables;
what a user has set stands.
"""

import os


def quiet():
    """TensorFlow's and gRPC's own notes stay out of a command's output."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")


def for_training():
    """Matrix products of oneDNN, which TensorFlow takes by itself on newer processors alone:
    an update takes a fifth less time with AVX2 too.

    Not for serving without XLA: its products of single rows became slower by a third
    (`benchmarks/speed.md`).
    """
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
