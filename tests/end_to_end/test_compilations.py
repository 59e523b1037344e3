"""Serving mixed lengths compiles at most once for each pair of buckets."""

import os
import pathlib
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

SERVE_MIXED_LENGTHS = """
import sys
from pipeline.served_model import ServedModel

model = ServedModel(sys.argv[1])
for batch in (1, 2, 3, 4, 5, 9):
    for length in (1, 3, 7, 8, 9, 12, 16):
        model.predict(["page"] * 0 + [" ".join(["page"] * length)] * batch)
"""


def test_compilations_are_bounded_by_the_bucket_list(finished_run, tmp_path):
    facts, _ = finished_run
    dump = tmp_path / "xla"
    subprocess.run(
        [sys.executable, "-c", SERVE_MIXED_LENGTHS, facts["paths"]["models"]],
        env={**os.environ, "XLA_FLAGS": f"--xla_dump_to={dump} --xla_dump_hlo_as_text", "KERAS_BACKEND": "tensorflow"},
        cwd=pathlib.Path(__file__).parents[2],
        check=True,
    )
    # XLA writes one such file for each module that it compiles; the search is the one with loops in it.
    modules = [path for path in dump.glob("*before_optimizations.txt") if " while(" in path.read_text(encoding="utf-8")]
    assert len(modules) == 2 * 2
