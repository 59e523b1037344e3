"""gettext catalogues: entries, charsets, and nothing lost."""

import polib
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.readers.formats import read_unit
from pipeline.readers.input_plan import InputUnit
from pipeline.readers.planning import plan_inputs
from pipeline.readers.records import Pair
from tests.pipeline.readers.data_files import config, read, write

PO = r"""
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\n"
"Plural-Forms: nplurals=2; plural=n > 1;\n"
"Language-Code: fr\n"

msgid "Hello %(name)s"
msgstr "Bonjour %(name)s"

#, fuzzy
msgid "Fuzzy"
msgstr "Flou"

msgid "Untranslated"
msgstr ""

msgid "%d file"
msgid_plural "%d files"
msgstr[0] "%d fichier"
msgstr[1] "%d fichiers"

#. Default: "The \"site\" is ready,"
#. " ${name}"
msgid "label_ready"
msgstr "Le site est prêt, ${name}"

msgid "one"
msgid_plural "many"
msgstr[0] "un"

#~ msgid "Old"
#~ msgstr "Vieux"
"""


def test_po(tmp_path):
    pairs, rejects = read(write(tmp_path / "a.po", PO))
    assert [(pair.source, pair.target) for pair in pairs] == [
        ("Hello %(name)s", "Bonjour %(name)s"),
        ("%d file", "%d fichier"),
        ("%d files", "%d fichiers"),
        ('The "site" is ready, ${name}', "Le site est prêt, ${name}"),
        ("one", "un"),
    ]
    assert [(reject.reason, reject.text) for reject in rejects] == [
        ("fuzzy", "Fuzzy\tFlou"),
        ("untranslated", "Untranslated\t"),
        ("no such plural form", "many\t"),
        ("obsolete", "Old\tVieux"),
    ]
    assert pairs[0].line == 8 and rejects[0].line == 12


def test_po_default_over_several_lines_that_begins_empty(tmp_path):
    content = (
        'msgid ""\nmsgstr "Preferred-Encodings: utf-8\\n"\n'
        '#. Default: ""\n#. "<p>Hello</p>\\n"\n#. "<p>you</p>"\n#: x.pt:3\nmsgid '
        '"body"\nmsgstr "<p>Bonjour</p>"\n'
    )
    (pair,), _ = read(write(tmp_path / "a.po", content))
    assert pair.source == "<p>Hello</p>\n<p>you</p>"
    named = content.replace("Preferred-Encodings: utf-8", "Project-Id-Version: Plone 6")
    assert read(write(tmp_path / "a.po", named))[0][0].source == pair.source
    # Elsewhere such a comment speaks of a default value.
    (pair,), _ = read(write(tmp_path / "a.po", content.replace("Preferred-Encodings", "Language")))
    assert pair.source == "body"


def test_a_flagged_entry_whose_translation_breaks_its_format_is_rejected(tmp_path):
    content = (
        '#, c-format\nmsgid "%s has %d"\nmsgstr "%2$d : %1$s"\n\n'
        '#, c-format\nmsgid "%d left"\nmsgstr "%s restent"\n\n'
        '#, no-c-format\nmsgid "20%discount"\nmsgstr "20 %"\n\n'
        '#, c-format\nmsgid "one"\nmsgid_plural "%d files"\n'
        'msgstr[0] "un"\nmsgstr[1] "%d fichiers"\n'
    )
    pairs, rejects = read(write(tmp_path / "a.po", content))
    assert [pair.target for pair in pairs] == ["%2$d : %1$s", "20 %", "un", "%d fichiers"]
    assert [(reject.line, reject.reason) for reject in rejects] == [
        (6, "other format directives than its source")
    ]


def test_po_in_another_charset(tmp_path):
    content = (
        'msgid ""\nmsgstr "Content-Type: text/plain; charset=ISO-8859-1\\n"\n\nmsgid '
        '"summer"\nmsgstr "été"\n'
    )
    (pair,), rejects = read(write(tmp_path / "a.po", content.encode("latin-1")))
    assert pair.target == "été" and not rejects


def test_po_with_one_bad_byte_loses_one_entry(tmp_path):
    content = b'msgid "a"\nmsgstr "\xe9t\xe9"\n\nmsgid "b"\nmsgstr "line\xe2\x80\xa8separator"\n'
    pairs, rejects = read(write(tmp_path / "a.po", content))
    assert [pair.target for pair in pairs] == ["line\u2028separator"]
    assert [reject.reason for reject in rejects] == ["not valid UTF-8"]


def test_po_that_ends_in_a_comment_keeps_its_last_entry(tmp_path):
    pairs, _ = read(write(tmp_path / "a.po", '\ufeffmsgid "a"\r\nmsgstr "b"\r\n#~| msgid "c"\r\n'))
    assert [(pair.source, pair.target) for pair in pairs] == [("a", "b")]


def test_mo_and_po_agree_and_the_po_is_preferred(tmp_path):
    write(tmp_path / "a.po", PO)
    catalogue = polib.pofile(str(tmp_path / "a.po"))
    catalogue.save_as_mofile(str(tmp_path / "b.mo"))
    pairs, _ = read(tmp_path / "b.mo")
    assert ("%d files", "%d fichiers") in [(pair.source, pair.target) for pair in pairs]
    assert ("label_ready", "Le site est prêt, ${name}") in [
        (pair.source, pair.target) for pair in pairs
    ]
    (tmp_path / "b.mo").rename(tmp_path / "a.mo")
    plan = plan_inputs(tmp_path, config())
    assert [unit.names for unit in plan.units] == [("a.po",)] and not plan.ignored_files


def test_mo_with_one_bad_byte_loses_one_entry(tmp_path):
    catalogue = polib.POFile(encoding="latin-1")
    catalogue.append(polib.POEntry(msgid="a", msgstr="été"))
    catalogue.append(polib.POEntry(msgid="b", msgstr="bon"))
    catalogue.save_as_mofile(str(tmp_path / "a.mo"))
    pairs, rejects = read(tmp_path / "a.mo")
    assert [pair.target for pair in pairs] == ["bon"]
    assert [reject.reason for reject in rejects] == ["not valid UTF-8"]


_MESSAGES = st.text(st.characters(blacklist_categories=("Cs",)), max_size=12)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=100
)
@given(entries=st.lists(st.tuples(_MESSAGES.filter(bool), _MESSAGES, st.booleans())))
def test_nothing_vanishes_from_a_catalogue(tmp_path, entries):
    catalogue = polib.POFile()
    for msgid, msgstr, fuzzy in entries:
        catalogue.append(
            polib.POEntry(msgid=msgid, msgstr=msgstr, flags=["fuzzy"] if fuzzy else [])
        )
    catalogue.metadata = {"Content-Type": "text/plain; charset=UTF-8"}
    path = write(tmp_path / "a.po", str(catalogue))
    unit = InputUnit("gettext", ("a.po",), (str(path),))
    records = list(read_unit(unit, config()))
    assert len(records) == len(entries)
    for record, (msgid, msgstr, _) in zip(records, entries, strict=True):
        if isinstance(record, Pair):
            assert (record.source, record.target) == (msgid.strip(), msgstr.strip())
