"""Readers of parallel text that account for every record.

A record is one pair that a file should hold: a line of a TSV or JSON Lines file, a row of a CSV
file, a line number of two line-aligned files, an entry of a gettext catalogue (a plural entry has
one per form). `formats.read_unit` returns each record either as a `records.Pair` or as a
`records.Reject` with its file, line and reason; nothing is skipped silently.

The splits are either divided by a hash of the source, or given by files (`data.train_files` and so
on). A given eval or test file is read as it is: no record of it is dropped as a duplicate, and a
training pair that also occurs in it is rejected from training instead.

This package is plain Python, so the command line can check a user's data with
`planning.plan_inputs` before TFX is imported. The Beam work is in
`components/parallel_text_example_gen`.
"""

from pipeline.common.errors import VerbatimError


class DataError(VerbatimError, ValueError):
    """Data that cannot be read; its message is one sentence that names the file and what to do."""


class UnreadableFile(DataError):
    """A file that cannot be read, but does not stop the others of its folder."""
