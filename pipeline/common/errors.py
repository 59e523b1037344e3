"""The base of every exception that a user can cause."""

from serving.verbatim_error import VerbatimError as VerbatimError
