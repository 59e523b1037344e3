"""Real catalogues, where the data for development are."""

import json
import pathlib
import xml.etree.ElementTree as ElementTree

import pytest

from pipeline.documents.formats import FORMATS, format_of
from pipeline.documents.options import Options

FOLDER = pathlib.Path(__file__).resolve().parents[4] / "shared" / "data" / "catalogues"
NAMES = (
    "focus_android.en.xml",
    "focus_android.fr.xml",
    "laravel.en.json",
    "laravel.fr.json",
    "zulip_mobile.en.json",
    "zulip_mobile.fr.json",
)
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the data are not here")


def read(name, **options):
    content = (FOLDER / name).read_bytes()
    return content, FORMATS[format_of(name)].read(name, content, Options(**options))


def texts_of(name, content):
    """Returns key to text, as another reader finds them."""
    if name.endswith(".json"):
        return json.loads(content)
    root = ElementTree.fromstring(content)
    return {one.get("name"): "".join(one.itertext()) for one in root.iter("string")}


@pytest.mark.parametrize("name", NAMES)
def test_every_text_of_a_file_can_be_written(name):
    content, document = read(name, language="en")
    assert not document.problems
    assert document.filled({}, "") == content
    texts = {place: segment.text for place, segment in enumerate(document.segments)}
    assert not any(document.refuse(place, text) for place, text in texts.items())
    before, after = (texts_of(name, one) for one in (content, document.filled(texts, "")))
    assert list(after) == list(before)
    changed = [key for key in before if before[key].split() != after[key].split()]
    # What Android's compiler would change, too.
    assert len(changed) <= 3


def test_plurals_within_messages_are_texts_of_their_own():
    _, document = read("zulip_mobile.en.json", language="fr")
    texts = [segment.text for segment in document.segments]
    assert "{unreadCount} unread message" in texts
    assert not any(", plural," in text for text in texts)


@pytest.mark.parametrize("name", ["focus_android", "zulip_mobile"])
def test_translated_files_are_updated(name):
    source, target = (next(one for one in NAMES if f"{name}.{end}" in one) for end in ("en", "fr"))
    existing = (FOLDER / target).read_bytes()
    _, document = read(source, language="fr", existing=(target, existing))
    texts = {place: segment.text for place, segment in enumerate(document.segments)}
    content = document.filled(texts, "")
    after = texts_of(target, content)
    before = texts_of(target, existing)
    assert document.translated_before > 300
    assert {key: after[key] for key in before} == before
    expected = {key for key, text in texts_of(source, read(source)[0]).items() if text.strip()}
    assert expected <= set(after)
    # A second update finds nothing to add.
    _, document = read(source, language="fr", existing=(target, content))
    assert not document.segments
