"""The error of an engine that cannot be used."""

from typing import ClassVar

from pipeline.common.errors import VerbatimError


class EngineError(VerbatimError, RuntimeError):
    """An engine does not answer, or cannot do its work; one sentence for the user."""

    exit_status: ClassVar[int] = 4
