"""The version of this package."""

import importlib.metadata


def own_version() -> str:
    """Returns the version that is installed; `pyproject.toml` states it."""
    try:
        return importlib.metadata.version("verbatim-text")
    except importlib.metadata.PackageNotFoundError:
        # Run from a checkout that is not installed.
        return "not installed"
