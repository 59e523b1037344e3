"""gettext catalogues: untranslated entries are filled, the rest stays byte for byte."""

import re
import shutil
import subprocess

import pytest

from pipeline.documents.document import DocumentError
from pipeline.documents.po_document import PoDocument
from pipeline.readers.po_files import read_po

HEADER = """# A title.
msgid ""
msgstr ""
"Language: {language}\\n"
"MIME-Version: 1.0\\n"
"Content-Type: text/plain; charset=UTF-8\\n"
"Content-Transfer-Encoding: 8bit\\n"
"Plural-Forms: {forms}\\n"

"""
FRENCH = HEADER.format(language="fr", forms="nplurals=2; plural=(n > 1);")
RUSSIAN = HEADER.format(
    language="ru",
    forms="nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 && "
    "(n%100<10 || n%100>=20) ? 1 : 2);",
)
BODY = """# Of a section.

#  A   translator's note.
#. extracted
#: a.c:1
#, c-format
msgctxt "menu"
msgid "Delete %s"
msgstr ""

msgid "Done"
msgstr "Fini"

#, fuzzy
msgid "Doubt"
msgstr "Doute"

#: b.c:2
msgid ""
"First \\"line\\"\\n"
"\\tsecond\\n"
msgstr ""
#~ msgid "Old"
#~ msgstr ""

msgid   "Odd"   msgstr   ""   ""
"""


def shout(text):
    """Upper case, but for directives."""
    return re.sub(r"%\w|[^%]", lambda m: m[0] if m[0][0] == "%" else m[0].upper(), text)


def filled(text, answer=shout):
    document = PoDocument("x.po", text.encode() if isinstance(text, str) else text)
    texts = {}
    for place, segment in enumerate(document.segments):
        translation = answer(segment.text)
        if not document.refuse(place, translation):
            texts[place] = translation
    return document, document.filled(texts, "From a test").decode("utf-8", "surrogateescape")


def msgfmt(folder, text):
    """Checks a catalogue as translators do, its fuzzy entries included."""
    if not shutil.which("msgfmt"):
        pytest.skip("gettext is not installed")
    (folder / "x.po").write_bytes(text.encode("utf-8", "surrogateescape"))
    command = ["msgfmt", "-c", "--use-fuzzy", "-o", str(folder / "x.mo"), str(folder / "x.po")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_untranslated_entries_are_filled(tmp_path):
    document, after = filled(FRENCH + BODY)
    assert document.translated_before == 2
    forms = {entry.msgid: entry.forms[0] for entry in read_po(after.encode()) if entry.msgid}
    assert forms == {
        "Delete %s": "DELETE %s",
        "Done": "Fini",
        "Doubt": "Doute",
        'First "line"\n\tsecond\n': 'FIRST "LINE"\n\tSECOND\n',
        "Old": "",
        "Odd": "ODD",
    }
    msgfmt(tmp_path, after)


def test_a_filled_entry_is_fuzzy_and_says_where_it_comes_from():
    _, after = filled(FRENCH + BODY)
    assert (
        "# From a test\n#  A   translator's note.\n#. extracted\n#: a.c:1\n#, fuzzy, c-format\n"
        'msgctxt "menu"\nmsgid "Delete %s"\nmsgstr "DELETE %s"\n'
    ) in after
    assert '# From a test\n#: b.c:2\n#, fuzzy\nmsgid ""\n' in after


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_rest_stays_byte_for_byte(end):
    before = (FRENCH + BODY).replace("\n", end)
    _, after = filled(before)
    for added in (f"# From a test{end}", f"#, fuzzy{end}msg", " fuzzy,"):
        after = after.replace(added, "msg" if added.endswith("msg") else "")
    before = before.replace(f"#, fuzzy{end}msg", "msg")
    after = after.replace('"DELETE %s"', '""').replace('"ODD"', '""   ""')
    second = f'""{end}"FIRST \\"LINE\\"\\n"{end}"\\tSECOND\\n"'
    assert after.replace(second, '""') == before


def test_plural_forms_of_the_header(tmp_path):
    entry = '#, c-format\nmsgid "One file"\nmsgid_plural "%d files"\nmsgstr[0] ""\nmsgstr[1] ""\n'
    _, french = filled(FRENCH + entry)
    # 0 too takes the first form: without its number "One file" would be wrong.
    assert 'msgstr[0] "%d FILES"\nmsgstr[1] "%d FILES"\n' in french
    _, russian = filled(RUSSIAN + entry)
    assert 'msgstr[0] "%d FILES"\nmsgstr[1] "%d FILES"\nmsgstr[2] "%d FILES"\n' in russian
    entry = entry.replace("One", "%d")
    _, russian = filled(RUSSIAN + entry)
    assert 'msgstr[0] "%d FILE"\nmsgstr[1] "%d FILES"\nmsgstr[2] "%d FILES"\n' in russian
    for text in (french, russian):
        msgfmt(tmp_path, text)


def test_a_directive_that_the_plural_lacks_is_no_number(tmp_path):
    entry = (
        '#, python-format\nmsgid "Delete %(title)s?"\nmsgid_plural "Delete %(count)d pages?"\n'
        'msgstr[0] ""\nmsgstr[1] ""\n'
    )
    _, french = filled(FRENCH + entry, str)
    assert 'msgstr[0] "Delete %(count)d pages?"' in french
    msgfmt(tmp_path, french)
    entry = entry.replace("%(count)d pages", "all of %(title)s")
    _, french = filled(FRENCH + entry, str)
    assert 'msgstr[0] "Delete %(title)s?"' in french


def test_a_translation_with_other_directives_is_refused():
    document, after = filled(FRENCH + BODY, lambda text: text.replace("%s", "%d"))
    assert 'msgid "Delete %s"\nmsgstr ""\n' in after
    assert document.refuse(0, "DELETE %d").startswith("the model's output has other format")


def test_no_form_is_filled_if_one_is_refused():
    entry = '#, c-format\nmsgid "%d file"\nmsgid_plural "%d files"\nmsgstr[0] ""\nmsgstr[1] ""\n'
    _, after = filled(FRENCH + entry, lambda text: text.replace("%d files", "files"))
    assert after == FRENCH + entry


def test_entries_that_cannot_be_filled_are_named():
    body = (
        'msgid "a"\nmsgid_plural "b"\nmsgstr[0] "A"\nmsgstr[1] ""\n\n'
        'msgid "c" junk\nmsgstr ""\n\n'
        'msgid "d"\nmsgid_plural "e"\nmsgstr[0] ""\nmsgstr[1] ""\nmsgstr[2] ""\n'
    )
    document, after = filled(FRENCH + body)
    assert after == FRENCH + body
    assert [line for line, _ in document.problems] == [10, 15, 18]


def test_another_charset(tmp_path):
    before = (FRENCH + 'msgid "cafe"\nmsgstr ""\n').replace("UTF-8", "ISO-8859-1")
    document = PoDocument("x.po", before.encode("latin-1"))
    assert document.refuse(0, "ж") == "the file's charset ISO-8859-1 lacks 'ж'"
    after = document.filled({0: "café"}, "From a test")
    assert b'msgstr "caf\xe9"' in after
    msgfmt(tmp_path, after.decode("utf-8", "surrogateescape"))


def test_a_template_gets_a_charset():
    before = FRENCH.replace("UTF-8", "CHARSET") + 'msgid "cafe"\nmsgstr ""\n'
    assert "charset=UTF-8" in filled(before, lambda text: "café")[1]
    assert "charset=CHARSET" in filled(before)[1]


@pytest.mark.parametrize(
    "content", [b"\xde\x12\x04\x95\0\0", b"", b"no catalogue", b'msgid "a"\rmsgstr ""\r']
)
def test_what_cannot_be_filled_is_refused(content):
    with pytest.raises(DocumentError, match="^x.po "):
        PoDocument("x.po", content)
