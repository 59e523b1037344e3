"""Modules that are imported with TFX but used by few runs: their code runs at their first use.

`import tfx.v1` loads the clients of Vertex AI, of Kubernetes and of ROUGE, which take half of its
time. No run on this machine uses them. Who does use them gets them as always, a little later.
"""

import functools
import importlib.abc
import importlib.machinery
import sys
import threading
import types
from collections.abc import Sequence
from typing import Any

#: Modules whose importers read none of their names before they use them.
MODULES = frozenset(
    {
        "tfx.v1.extensions.google_cloud_ai_platform",
        "kubernetes.dynamic",
        "rouge_score.rouge_scorer",
    }
)
# Python looks for many such names in every module, for instance to find the file of an object.
# Those that it needs are there from the beginning.
_OWN_NAMES = ("__all__", "__version__")


def install() -> None:
    """Imports `MODULES` late from now on, those that are not imported already."""
    if not any(isinstance(finder, _LateFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _LateFinder(MODULES))


class _LateFinder(importlib.abc.MetaPathFinder):
    """Finds modules where Python finds them, and puts off what they do.

    Args:
        names: of the modules.
    """

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: types.ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        """Returns the spec of one of the modules; None for others, as finders do."""
        if fullname not in self._names:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _LateLoader(spec.loader)
        return spec


class _LateLoader(importlib.abc.Loader):
    """Runs the code of a module when one of its names is read.

    `importlib.util.LazyLoader` runs it for names such as `__file__` too, which Python reads of all
    modules, and is not safe between threads.

    Args:
        loader: the module's own.
    """

    def __init__(self, loader: importlib.abc.Loader) -> None:
        self._loader = loader
        self._lock = threading.RLock()

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        """Returns what the module's own loader creates."""
        return self._loader.create_module(spec)

    def exec_module(self, module: types.ModuleType) -> None:
        """Puts the code off."""
        vars(module)["__getattr__"] = functools.partial(self._read, module)

    def _read(self, module: types.ModuleType, name: str) -> Any:
        """Returns a name that a module lacks as yet."""
        if name.startswith("__") and name not in _OWN_NAMES:
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
        with self._lock:
            own = vars(module)
            # Another thread may have been first.
            late = own.get("__getattr__")
            if isinstance(late, functools.partial):
                del own["__getattr__"]
                try:
                    self._loader.exec_module(module)
                except BaseException:
                    own["__getattr__"] = late
                    raise
        return getattr(module, name)
