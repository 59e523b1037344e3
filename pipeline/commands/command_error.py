"""The error of a call that cannot be carried out."""

from pipeline.common.errors import VerbatimError


class CommandError(VerbatimError, ValueError):
    """A call that cannot be carried out; its message is one sentence for the user."""
