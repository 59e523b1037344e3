"""The packages of Verbatim have common names: a package of the same name may hide one."""

import importlib.util
import pathlib

_NAMES = ("pipeline", "components", "serving", "keras_models")


def hidden_package() -> str | None:
    """Returns a sentence about a package of ours that another project's hides, or None.

    It imports nothing of ours, which could be hidden.
    """
    root = pathlib.Path(__file__).resolve().parents[1]
    for name in _NAMES:
        location = _location(name)
        if location is not None and location.resolve() != root / name:
            return (
                f"{location} hides Verbatim's package '{name}' in {root}; rename it, or take "
                f"{location.parent} off Python's path (PYTHONPATH, or the folder of your script)."
            )
    return None


def _location(name: str) -> pathlib.Path | None:
    """Returns the folder of a package, or the file of a module, without importing it."""
    spec = importlib.util.find_spec(name)
    if spec is None:
        return None
    if spec.submodule_search_locations is not None:
        return pathlib.Path(next(iter(spec.submodule_search_locations)))
    return pathlib.Path(spec.origin) if spec.origin else None
