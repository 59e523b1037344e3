"""TFX components."""

from serving.own_packages import hidden_package

if _hidden := hidden_package():
    raise ImportError(_hidden)


def __getattr__(name: str) -> str:
    if name == "__version__":
        from serving.own_version import own_version

        return own_version()
    raise AttributeError(f"module 'components' has no attribute {name!r}")
