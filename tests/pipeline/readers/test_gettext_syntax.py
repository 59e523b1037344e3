"""The syntax of gettext catalogues: valid files are read, and nothing wrong is read of others."""

import pathlib
import shutil
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.readers.formats import read_unit
from pipeline.readers.input_plan import InputUnit
from pipeline.readers.mo_files import MoError, read_mo
from pipeline.readers.planning import plan_inputs
from pipeline.readers.po_files import read_po
from pipeline.readers.records import Pair, reason_kind
from tests.pipeline.readers.data_files import config, fails, read, write

HEADER = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n'
needs_gettext = pytest.mark.skipif(not shutil.which("msgfmt"), reason="gettext is not installed")

VALID = {
    "comment without a blank": '#My comment\nmsgid "a"\nmsgstr "b"\n',
    "strings on a line": 'msgid "" "a"\nmsgstr "" "b"\n',
    "no blank": 'msgid"a"\nmsgstr"b"\n',
    "one line": 'msgid "a" msgstr "b"\n',
    "octal": 'msgid "\\141"\nmsgstr "\\142"\n',
    "hexadecimal": 'msgid "\\x0061"\nmsgstr "\\x62"\n',
    "continued line": 'msgid "\\\na"\nmsgstr "b"\n',
    "blanks": '  msgid\t"a"\r\n\fmsgstr\n\n"b"\n',
    "domain": 'domain "other"\nmsgid "a"\nmsgstr "b"\n',
    "previous": '#| msgid "old"\n#| "er"\nmsgid "a"\nmsgstr "b"\n',
}
BROKEN = {
    "end missing": 'msgid "a\nmsgstr "b"\n',
    "second end missing": 'msgid "a"\nmsgstr "b\n',
    "no quotes": "msgid a\nmsgstr b\n",
    "quote in a string": 'msgid "a" x "\nmsgstr "b"\n',
    "no msgstr": 'msgid "a"\n',
    "no string": 'msgid "a"\nmsgstr\n',
    "two msgstr": 'msgid "a"\nmsgstr "b"\nmsgstr "c"\n',
    "unknown escape": 'msgid "a\\q"\nmsgstr "b"\n',
    "no msgid_plural": 'msgid "a"\nmsgstr[0] "b"\n',
    "no index": 'msgid "a"\nmsgid_plural "as"\nmsgstr "b"\n',
    "index twice": 'msgid "a"\nmsgid_plural "as"\nmsgstr[0] "b"\nmsgstr[0] "c"\n',
    "misspelt": 'mgsid "a"\nmsgstr "b"\n',
    "capitals": 'MSGID "a"\nMSGSTR "b"\n',
    "context": 'msgctxt "c\nmsgid "a"\nmsgstr "b"\n',
}


@pytest.mark.parametrize("entry", VALID.values(), ids=VALID)
def test_valid_syntax(tmp_path, entry):
    pairs, rejects = read(write(tmp_path / "a.po", HEADER + entry))
    assert [(pair.source, pair.target) for pair in pairs] == [("a", "b")] and not rejects


@pytest.mark.parametrize("entry", BROKEN.values(), ids=BROKEN)
def test_a_broken_entry_is_rejected_and_costs_no_other(tmp_path, entry):
    content = f'{HEADER}msgid "x"\nmsgstr "y"\n\n{entry}\nmsgid "z"\nmsgstr "w"\n'
    pairs, (reject,) = read(write(tmp_path / "a.po", content))
    assert [(pair.source, pair.target) for pair in pairs] == [("x", "y"), ("z", "w")]
    assert reject.line in (7, 8) and reject.text.startswith(entry[:5])
    assert reason_kind(reject.reason) == "not valid gettext syntax"


def test_flags_are_kept(tmp_path):
    entries = '#, c-format,no-wrap\nmsgid "%d"\nmsgstr "% d"\n\n#,fuzzy\nmsgid "a"\nmsgstr "b"\n'
    (pair,), (reject,) = read(write(tmp_path / "a.po", HEADER + entries))
    assert pair.flags == ("c-format", "no-wrap") and reject.reason == "fuzzy"


def test_bytes_written_as_escapes_are_in_the_charset_of_the_header(tmp_path):
    entry = 'msgid "caf\\303\\251"\nmsgstr "\\xc3\\xa9t\\303é"\n'
    _, (reject,) = read(write(tmp_path / "a.po", HEADER + entry))
    assert reject.reason == "not valid UTF-8"
    (pair,), _ = read(write(tmp_path / "a.po", HEADER + entry.replace("\\303é", "é")))
    assert (pair.source, pair.target) == ("café", "été")
    latin = HEADER.replace("UTF-8", "ISO-8859-1") + 'msgid "summer"\nmsgstr "\\351té"\n'
    (pair,), _ = read(write(tmp_path / "a.po", latin.encode("latin-1")))
    assert pair.target == "été"


def test_the_charset_is_that_of_the_header_alone(tmp_path):
    entry = 'msgid "Content-Type: charset=latin-1"\nmsgstr "é"\n\n'
    (pair,), _ = read(write(tmp_path / "a.po", entry + HEADER))
    assert pair.target == "é"
    # The second byte of this letter is a backslash.
    letter = HEADER.replace("UTF-8", "SHIFT_JIS").replace('r "', 'r "Last-Translator: ソ\\n"\n"')
    content = letter + 'msgid "a"\nmsgstr "表"\n'
    (pair,), _ = read(write(tmp_path / "a.po", content.encode("shift_jis")))
    assert pair.target == "表"


def test_a_text_in_two_contexts_is_read_once(tmp_path):
    entries = 'msgctxt "{}"\nmsgid "Open"\nmsgstr "{}"\n\n'
    content = HEADER + entries.format("menu", "Ouvrir") + entries.format("state", "Ouvert")
    pairs, (reject,) = read(write(tmp_path / "a.po", content))
    assert [pair.target for pair in pairs] == ["Ouvrir"]
    assert reason_kind(reject.reason) == "another translation of the same text"
    content += 'msgid "Open"\nmsgstr "Ouvrez"\n\n' + entries.format("imperative", "Ouvrez")
    pairs, rejects = read(write(tmp_path / "a.po", content))
    assert [pair.target for pair in pairs] == ["Ouvrez", "Ouvrez"] and len(rejects) == 2


def test_a_bad_file_does_not_stop_its_folder(tmp_path):
    write(tmp_path / "a.po", HEADER + VALID["one line"])
    write(tmp_path / "b.mo", b"\xde\x12\x04\x95\0\0")
    write(tmp_path / "c.po", "")
    write(tmp_path / "d.po", HEADER.replace("UTF-8", "NO-SUCH"))
    write(tmp_path / "e.po", "Read me.")
    write(tmp_path / "f.po", HEADER.encode("utf-16"))
    plan = plan_inputs(tmp_path, config())
    assert len(plan.units) == 6 and len(plan.unreadable_files) == 5
    pairs, rejects = read(tmp_path)
    assert [pair.file for pair in pairs] == ["a.po"]
    assert [reject.file for reject in rejects] == ["b.mo", "c.po", "d.po", "e.po", "f.po"]
    (tmp_path / "a.po").unlink()
    fails(tmp_path, "b.mo", "msgfmt")


# `msgfmt` made it of: #, c-format / msgid "%<PRIu64> of %Id" / msgstr "%<PRIu64> de %Id".
SYSTEM_DEPENDENT = bytes.fromhex(
    "de12049501000100010000003000000038000000050000004000000002000000540000000100000064000000"
    "6800000000000000940000002800000095000000010000000000000000000000000000000000000007000000"
    "be00000002000000c50000006c00000078000000c700000011000000ffffffffd80000000100000000000000"
    "050000000100000002000000ffffffff00436f6e74656e742d547970653a20746578742f706c61696e3b2063"
    "6861727365743d5554462d380a00505249753634004900253c5052497536343e206f66202549640025206465"
    "20256400"
)


def test_system_dependent_strings_of_mo_files(tmp_path):
    (pair,), rejects = read(write(tmp_path / "a.mo", SYSTEM_DEPENDENT))
    assert (pair.source, pair.target) == ("%<PRIu64> of %Id", "%<PRIu64> de %Id")
    assert not rejects


@needs_gettext
def test_mo_files_agree_with_msgfmt(tmp_path):
    entries = '#, c-format\nmsgid "%<PRIu64> x %<PRIx32>y"\nmsgstr "y %<PRIx32> %<PRIu64>"\n\n'
    entries += 'msgctxt "c"\nmsgid "one"\nmsgid_plural "more"\nmsgstr[0] "un"\nmsgstr[1] "des"\n'
    path = write(tmp_path / "a.po", HEADER + entries)
    for order in ("little", "big"):
        command = ["msgfmt", f"--endianness={order}", "-o", str(tmp_path / "b.mo"), str(path)]
        subprocess.run(command, check=True)
        from_mo, _ = read(tmp_path / "b.mo")
        from_po, _ = read(path)
        assert {pair[:2] for pair in from_mo} == {pair[:2] for pair in from_po}
        assert len(from_po) == 3


@settings(deadline=None, max_examples=200)
@given(
    st.lists(st.tuples(st.integers(0, len(SYSTEM_DEPENDENT) - 1), st.integers(0, 255)), max_size=4),
    st.integers(0, len(SYSTEM_DEPENDENT)),
)
def test_damaged_mo_files_are_read_or_refused(changes, length):
    content = bytearray(SYSTEM_DEPENDENT)
    for place, byte in changes:
        content[place] = byte
    try:
        read_mo(bytes(content[:length]))
    except MoError as error:
        assert str(error)


_PARTS = [
    "msgid", "msgstr", "msgctxt", "msgid_plural", "msgstr[0]", "msgstr[1]", '"a"', '"b"', '"c',
    '"\\n"', '"\\q"', "\n", "\n", " ", "#, fuzzy\n", "#~", "# x\n", "#| y\n", "domain", "z", "[",
]  # fmt: skip
_SETTINGS = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150
)


@_SETTINGS
@given(st.lists(st.sampled_from(_PARTS), max_size=25).map("".join))
def test_no_msgid_of_any_file_vanishes(tmp_path, content):
    path = write(tmp_path / "a.po", content)
    records = list(read_unit(InputUnit("gettext", ("a.po",), (str(path),)), config()))
    read_or_shown = "".join(
        record.source if isinstance(record, Pair) else record.text + record.reason
        for record in records
    )
    if '"a"' in content and not {"#", "domain", '"\\n"'} & set(content):
        assert "a" in read_or_shown


@needs_gettext
@_SETTINGS
@given(
    st.lists(st.sampled_from([part for part in _PARTS if part != '"\\n"']), max_size=12).map(
        lambda parts: 'msgid "x"\nmsgstr "y"\n' + "".join(parts)
    )
)
def test_what_msgfmt_takes_is_read_alike(tmp_path, content):
    path = write(tmp_path / "a.po", content)
    taken = subprocess.run(
        ["msgfmt", "-o", str(tmp_path / "a.mo"), str(path)], capture_output=True, check=False
    )
    if taken.returncode:
        return
    _, compiled = read_mo(pathlib.Path(tmp_path / "a.mo").read_bytes())
    entries = [entry for entry in read_po(content.encode()) if entry.header is None]
    assert not [entry.problem for entry in entries if entry.problem]
    ours = {
        (entry.context, entry.msgid, entry.plural, entry.forms[0])
        for entry in entries
        if entry.forms[0] and "fuzzy" not in entry.flags and not entry.is_obsolete
    }
    assert ours == {(e.context, e.msgid, e.plural, e.forms[0]) for e in compiled}
