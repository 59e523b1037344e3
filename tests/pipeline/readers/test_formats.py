"""All formats: every record comes out once, as a pair or as a reject with its reason."""

import subprocess
import sys

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.readers import DataError, formats
from pipeline.readers.formats import read_unit
from pipeline.readers.input_plan import InputUnit
from pipeline.readers.records import Pair, format_reject
from pipeline.recipes import choices
from tests.pipeline.readers.data_files import config, write


def test_importing_needs_no_tensorflow():
    code = (
        "import sys, pipeline.readers.formats, pipeline.readers.planning; "
        "assert not {'tensorflow', 'apache_beam', 'tfx'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


_LINES = st.lists(
    st.one_of(
        st.binary(max_size=12),
        st.text(max_size=8).map(lambda text: f"{text}\tx".encode("utf-8", "replace")),
    )
)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150
)
@given(lines=_LINES, format_=st.sampled_from(["tsv", "jsonl", "lines"]))
def test_nothing_vanishes(tmp_path, lines, format_):
    lines = [line.replace(b"\n", b" ") for line in lines]
    content = b"".join(line + b"\n" for line in lines)
    paths = [str(write(tmp_path / name, content)) for name in ("x", "y")]
    count = 2 if format_ == "lines" else 1
    unit = InputUnit(format_, ("x", "y")[:count], tuple(paths[:count]))
    try:
        records = list(read_unit(unit, config()))
    except (
        DataError
    ):  # a first line that reads "source" or "target" is a header with a column missing
        assert format_ == "tsv"
        return
    # Each line is one record, in order: kept and rejected together are what was read.
    header = (
        format_ == "tsv"
        and lines
        and {b"source", b"target"} <= {cell.strip() for cell in lines[0].split(b"\t")}
    )
    assert [record.line for record in records] == list(range(1, len(lines) + 1))[bool(header) :]
    for record in records:
        if isinstance(record, Pair):
            assert record.source.strip() == record.source and record.source and record.target
            record.source.encode()
        else:
            assert record.reason
            assert format_reject(record).count("\t") == 3 and "\n" not in format_reject(record)
            format_reject(record).encode()


def test_recipes_know_the_formats_by_the_same_names():
    assert tuple(formats.FORMATS) == choices.FORMATS
    suffixes = [suffix for format_ in formats.FORMATS.values() for suffix in format_.suffixes]
    assert len(set(suffixes)) == len(suffixes)
