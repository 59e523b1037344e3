"""Text-to-text models that copy: layers, bodies, decoding and losses, with `keras.ops` only."""


def __getattr__(name):
    if name == "__version__":
        # As `serving.own_version`, which is not ours to import: the layers stand alone.
        import importlib.metadata

        try:
            return importlib.metadata.version("verbatim-text")
        except importlib.metadata.PackageNotFoundError:
            return "not installed"
    raise AttributeError(f"module 'keras_models' has no attribute {name!r}")
