"""The command `verbatim`."""
