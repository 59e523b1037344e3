"""The pipeline, its command line, and what they are made of."""


def __getattr__(name: str) -> str:
    if name == "__version__":
        from serving.own_version import own_version

        return own_version()
    raise AttributeError(f"module 'pipeline' has no attribute {name!r}")
