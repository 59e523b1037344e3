"""Models for callers: a served one (`Client`), or one in this process (`Model`).

`Client` needs the packages grpcio and protobuf only, so each name is imported where it is first
used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from serving.own_version import own_version

if TYPE_CHECKING:
    from serving.async_client import AsyncClient
    from serving.client import Client
    from serving.errors import RequestError
    from serving.glossary import Glossary
    from serving.model import AsyncModel, Model

__all__ = ["AsyncClient", "AsyncModel", "Client", "Glossary", "Model", "RequestError"]

__version__ = own_version()

_MODULES = {
    "AsyncClient": "serving.async_client",
    "AsyncModel": "serving.model",
    "Client": "serving.client",
    "Glossary": "serving.glossary",
    "Model": "serving.model",
    "RequestError": "serving.errors",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'serving' has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)
