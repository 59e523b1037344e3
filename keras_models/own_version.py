"""The version of the distribution that these packages are of."""

import importlib.metadata


def own_version():
    """Returns the version that is installed, or "not installed" in a checkout that is not."""
    try:
        return importlib.metadata.version("verbatim-text")
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
