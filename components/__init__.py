"""TFX components."""

from serving.own_packages import hidden_package
from serving.own_version import own_version

if _hidden := hidden_package():
    raise ImportError(_hidden)

__version__ = own_version()
