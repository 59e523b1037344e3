"""The base of every exception that a user can cause."""


class VerbatimError(Exception):
    """Something that a user can mend; the message is one sentence that says what to do.

    The command line prints the message and exits with 1; any other exception is a fault of the
    program, and shows its traceback. It stands here because nothing lies below `serving`, which
    is installed alone where only a client is needed; `pipeline.common.errors` re-exports it.
    """
