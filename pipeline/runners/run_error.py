"""The error of a run that failed."""

from pipeline.common.errors import VerbatimError


class RunError(VerbatimError, RuntimeError):
    """A run that failed; its message is one sentence for the user."""
