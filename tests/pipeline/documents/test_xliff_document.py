"""XLIFF 1.2 and 2.0, read by lxml."""

import hypothesis
import hypothesis.strategies as st
import lxml.etree
import pytest

from pipeline.documents.document import DocumentError
from pipeline.documents.options import Options
from pipeline.documents.xliff_document import XliffDocument
from tests.pipeline.documents.filling import filled, shout

FIRST = """<?xml version="1.0" encoding="UTF-8"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
  <file original="a" datatype="plaintext" source-language="en">
    <body>
      <group>
        <trans-unit id="a" xml:space='preserve'>
          <source>Hello <g id="1">my <x id="2"/></g> &amp; <ph id="3">&lt;br></ph>%s!</source>
          <note>Go</note>
        </trans-unit>
        <trans-unit id="b"><source>Done</source><target state="final">Fini</target></trans-unit>
        <trans-unit id="c" translate="no"><source>Name</source></trans-unit>
        <trans-unit id="d"><source>New</source><target   state="new" >New</target></trans-unit>
        <trans-unit id="e"><source>One</source><target/></trans-unit>
        <trans-unit id="f"><source> </source></trans-unit>
        <trans-unit id="g"><source><bpt id="1">[</bpt>Bold<ept id="1">]</ept></source>
          <alt-trans><source>Bold</source><target>Gras</target></alt-trans></trans-unit>
        <trans-unit id="h"><source><mrk mtype="protected">App</mrk> now</source></trans-unit>
      </group>
    </body>
  </file>
</xliff>
"""
SECOND = """<?xml version="1.0" encoding="UTF-8"?>
<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en">
 <file id="f" translate="no">
  <unit id="a" translate="yes">
   <segment id="1">
    <source>Hello <pc id="1">my <ph id="2"/></pc> <cp hex="0007"/></source>
   </segment>
   <ignorable><source> </source></ignorable>
   <segment state="initial"><source>New</source><target>New</target></segment>
   <segment><source>Done</source><target>Fini</target></segment>
  </unit>
  <unit id="b"><segment><source>Name</source></segment></unit>
 </file>
</xliff>
"""


def read(text, language="fr"):
    return XliffDocument("a.xlf", text.encode(), Options(language=language))


def targets(text):
    """Returns unit or number to target."""
    found = {}
    for target in lxml.etree.fromstring(text.encode()).iter("{*}target"):
        holder = target.getparent()
        if lxml.etree.QName(holder).localname in ("trans-unit", "segment"):
            found[holder.get("id") or len(found)] = target
    return found


def test_version_1():
    document = read(FIRST)
    assert [segment.text for segment in document.segments] == [
        'Hello <g id="1">my <x id="2"/></g> & <ph id="3"/>%s!',
        "New",
        "One",
        '<bpt id="1"/>Bold<ept id="1"/>',
        "<mrk/> now",
    ]
    assert (document.translated_before, document.blank) == (1, [14])
    after = filled(document, shout)
    texts = {key: "".join(target.itertext()) for key, target in targets(after).items()}
    assert (
        texts
        == {
            "a": "HELLO MY  & <br>%s!",
            "b": "Fini",
            "d": "NEW",
            "e": "ONE",
            "g": "[BOLD]",
            "h": "App NOW",
        }
        or texts
    )


def test_version_1_stays_but_for_its_targets():
    state = 'state="needs-review-translation" state-qualifier="mt-suggestion"'
    source = '<g id="1">{} <x id="2"/></g> &amp; <ph id="3">&lt;br></ph>%s!'
    expected = FIRST
    for old, new in (
        ('source-language="en">', 'source-language="en" target-language="fr">'),
        (
            f"Hello {source.format('my')}</source>",
            f"Hello {source.format('my')}</source>\n          "
            f"<target {state}>HELLO {source.format('MY')}</target>",
        ),
        (
            '<target   state="new" >New',
            '<target   state="needs-review-translation" state-qualifier="mt-suggestion" >NEW',
        ),
        ("<target/>", f"<target {state}>ONE</target>"),
        (
            'Bold<ept id="1">]</ept></source>',
            'Bold<ept id="1">]</ept></source>'
            f'<target {state}><bpt id="1">[</bpt>BOLD<ept id="1">]</ept></target>',
        ),
        (
            "</mrk> now</source>",
            f'</mrk> now</source><target {state}><mrk mtype="protected">App</mrk> NOW</target>',
        ),
    ):
        assert old in expected
        expected = expected.replace(old, new)
    assert filled(read(FIRST), shout) == expected
    assert read(FIRST).filled({}, "").decode() == FIRST


def test_version_2():
    expected = SECOND
    state = 'state="translated" subState="verbatim:machine"'
    for old, new in (
        ('srcLang="en">', 'srcLang="en" trgLang="fr">'),
        ('<segment id="1">', f'<segment id="1" {state}>'),
        (
            '<cp hex="0007"/></source>',
            '<cp hex="0007"/></source>\n    <target>HELLO <pc id="1">MY <ph id="2"/></pc> '
            '<cp hex="0007"/></target>',
        ),
        ('<segment state="initial">', f"<segment {state}>"),
        ("<target>New", "<target>NEW"),
    ):
        assert old in expected
        expected = expected.replace(old, new)
    document = read(SECOND)
    assert filled(document, shout) == expected
    assert document.translated_before == 1
    lxml.etree.fromstring(expected.encode())


@pytest.mark.parametrize(("old", "new"), [('<x id="2"/>', ""), ("</g>", ""), ("%s", "%d")])
def test_lost_markup_is_refused(old, new):
    after = filled(read(FIRST), lambda text: text.replace(old, new))
    assert "a" not in targets(after)


def test_version_2_needs_its_target_language():
    with pytest.raises(DocumentError, match="trgLang.*--target-language"):
        read(SECOND, "")


@pytest.mark.parametrize("content", ["<a/>", '<xliff version="3"/>', FIRST[:-9], "", "<xliff/>"])
def test_what_is_no_xliff_is_refused(content):
    with pytest.raises(DocumentError, match="^a.xlf .*\\.$"):
        read(content)


LETTERS = st.characters(blacklist_categories=["Cs", "Cc"], blacklist_characters="\ufffe\uffff")
TEXTS = st.text(LETTERS | st.sampled_from("\t\n\r<>&]\"'"), min_size=1)


@hypothesis.settings(deadline=None, derandomize=True)
@hypothesis.given(text=TEXTS)
@pytest.mark.parametrize("before", [FIRST, SECOND])
def test_any_text_comes_back(before, text):
    document = read(before)
    place = [segment.text for segment in document.segments].index("New")
    after = document.filled({place: text}, "").decode()
    assert text in [target.text for target in targets(after).values()]


def test_what_xml_cannot_hold_is_refused():
    document = read(FIRST)
    assert document.refuse(1, "\x07") == "XML cannot hold the character U+0007"
