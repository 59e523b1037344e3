"""Text-to-text models that copy: layers, bodies, decoding and losses, with `keras.ops` only."""

from keras_models.own_version import own_version as _own_version

__version__ = _own_version()
