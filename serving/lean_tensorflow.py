"""Imports TensorFlow with what exported models need, and without the packages that they do not.

Keras, JAX and the others take two seconds and a hundred megabytes. They can be imported afterwards
as usual. Modules that are imported first import this one before everything else; then
`import tensorflow` is quick anywhere.
"""

import contextlib
import importlib
import importlib.util
import pathlib
import sys
from collections.abc import Iterator

# What TensorFlow imports if it is installed, and does without otherwise.
_OPTIONAL = (
    # At its own end, to register classes for SavedModels of Keras.
    "keras.src.optimizers",
    "tf_keras.src.optimizers",
    # For TensorFlow Lite's converter.
    "jax",
    # For its own copy of an old Keras.
    "h5py",
    "scipy.sparse",
    # To find clusters on Google's Compute Engine, and TPUs.
    "googleapiclient",
)
_TEXT_PACKAGE = "tensorflow_text"


@contextlib.contextmanager
def _without_optional_packages() -> Iterator[None]:
    """Lets the import of those modules fail, unless Keras is there already."""
    hidden = [name for name in _OPTIONAL if name.partition(".")[0] not in sys.modules]
    modules: dict[str, object] = sys.modules  # type: ignore[assignment]
    # None is Python's own mark of a module that must not be imported.
    modules.update(dict.fromkeys(hidden))
    try:
        yield
    finally:
        for name in hidden:
            if modules.get(name) is None:
                modules.pop(name, None)


def register_text_operations() -> None:
    """Registers the operations of tf.text, as importing the package does.

    The package imports Keras for its layers, so only its libraries of operations are loaded.
    TensorFlow loads a library once, whoever asks.
    """
    import tensorflow as tf

    spec = None if _TEXT_PACKAGE in sys.modules else importlib.util.find_spec(_TEXT_PACKAGE)
    folders = (spec.submodule_search_locations if spec else None) or []
    libraries = [
        path for folder in folders for path in pathlib.Path(folder, "python", "ops").glob("_*.so")
    ]
    if not libraries:
        # Imported already, of another layout, or not installed, which the import says best.
        importlib.import_module(_TEXT_PACKAGE)
    for library in sorted(libraries):
        tf.load_op_library(str(library))


if "tensorflow" not in sys.modules:
    with _without_optional_packages():
        importlib.import_module("tensorflow")
