"""The version of this package."""

from serving.own_version import own_version as own_version
