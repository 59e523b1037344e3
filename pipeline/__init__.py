"""The pipeline, its command line, and what they are made of."""

from serving.own_version import own_version

__version__ = own_version()
