"""The base of every exception that a user can cause."""

from typing import ClassVar


class VerbatimError(Exception):
    """An error that a user can fix; the message is one sentence that says what to do.

    The command line prints the message and exits with `exit_status`; any other exception is a bug
    and shows its traceback. The class is here because `serving` imports nothing of ours and can be
    installed alone for a client; `pipeline.common.errors` re-exports it.
    """

    exit_status: ClassVar[int] = 1
