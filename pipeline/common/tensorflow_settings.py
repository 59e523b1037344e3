"""TensorFlow's settings, made before it is imported; what a user has set stands."""

import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import re
import sys
import tempfile
import types
from collections.abc import Iterator, Sequence

_LOG_LEVEL = "TF_CPP_MIN_LOG_LEVEL"
# Notes of C++ libraries that say nothing to a user, a pattern for each kind of line. The log level
# does not stop them: they are written before TensorFlow reads it, or with a logger of their own.
_NOISE = re.compile(
    rb"WARNING: All log messages before absl::InitializeLog\(\)"
    # Notes of TensorFlow and XLA, in the older and in the newer format.
    rb"|I\d{4} \d\d:\d\d:"
    rb"|\d{4}-\d\d-\d\d \d\d:\d\d:[\d.]+: I "
    rb"|To enable the following instructions: "
    rb"|.*Unable to register cu\w+ factory: "
    rb"|.*computation placer already registered"
    rb"|.*TF-TRT Warning: Could not find TensorRT"
    # Notes of sentencepiece.
    rb"|\w+\.cc\(\d+\) (?:\[.*\] )?LOG\(INFO\)"
)


def quiet() -> None:
    """Keeps the notes of TensorFlow and gRPC out of a command's output.

    Whoever sets `TF_CPP_MIN_LOG_LEVEL` sees TensorFlow's.
    """
    if _LOG_LEVEL not in os.environ:
        os.environ[_LOG_LEVEL] = "3"
        if "tensorflow" not in sys.modules:
            sys.meta_path.insert(0, _QuietImport())
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")


def for_training() -> None:
    """Has TensorFlow multiply matrices with oneDNN, as it does by itself on newer processors only.

    With AVX2 too, an update then takes a fifth less time. Serving without XLA must not use it: its
    products of single rows became slower by a third (`benchmarks/speed.md`).
    """
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")


def start_xla_quietly() -> None:
    """Has XLA write its notes on its first compilation where nobody sees them.

    It compiles something trivial as soon as TensorFlow is imported; settings that TensorFlow reads
    at its first operation must have been made by then. It does nothing unless `quiet` is in effect.
    """
    for finder in sys.meta_path:
        if isinstance(finder, _QuietImport):
            finder.starts_xla = True


@contextlib.contextmanager
def without_noise() -> Iterator[None]:
    """Holds back what is written to standard error, and passes on all but known notes at the end.

    C++ libraries write to the file descriptor, so this catches it and not `sys.stderr`.
    """
    try:
        saved = os.dup(2)
    except OSError:  # the process has no standard error
        yield
        return
    _flush()
    with tempfile.TemporaryFile() as held_back:
        os.dup2(held_back.fileno(), 2)
        try:
            yield
        finally:
            _flush()
            os.dup2(saved, 2)
            os.close(saved)
            held_back.seek(0)
            lines = [line for line in held_back if not _NOISE.match(line)]
            if lines:
                os.write(2, b"".join(lines))


def _flush() -> None:
    if sys.stderr is not None:
        sys.stderr.flush()


class _QuietImport(importlib.abc.MetaPathFinder):
    """Finds TensorFlow as usual, but has it imported without its notes, whoever imports it."""

    starts_xla = False

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: types.ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        """Returns TensorFlow's spec, its loader wrapped; None for every other module."""
        if fullname != "tensorflow":
            return None
        # Who only looks for the spec, as some libraries do, does not end the watch for the import.
        sys.meta_path.remove(self)
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            sys.meta_path.insert(0, self)
        if spec is not None and spec.loader is not None:
            spec.loader = _QuietLoader(spec.loader, self)
        return spec


class _QuietLoader(importlib.abc.Loader):
    """Executes a module without its notes."""

    def __init__(self, loader: importlib.abc.Loader, finder: _QuietImport) -> None:
        self._loader = loader
        self._finder = finder

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        """Creates the module as its own loader does."""
        return self._loader.create_module(spec)

    def exec_module(self, module: types.ModuleType) -> None:
        """Executes the module, which keeps its own loader."""
        sys.meta_path.remove(self._finder)
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        with without_noise():
            self._loader.exec_module(module)
            if self._finder.starts_xla:
                tf = sys.modules["tensorflow"]
                tf.function(lambda number: number + 1, jit_compile=True)(tf.constant(1.0))
