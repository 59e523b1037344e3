"""LibreTranslate's API: as its own Python client and Weblate ask it, in text and in HTML."""

import json
import re
import shutil
import urllib.error
import urllib.parse

import libretranslatepy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serving import access, html_text, libre_translate
from serving.errors import RequestRefused, ServeError
from serving.limits import Limits
from serving.server import ModelServer, ServerSettings
from tests.serving.test_rest import call

LIMITS = Limits(max_batch_size=4, max_text_bytes=100)


def save_language(folder, source, target):
    facts = {"recipe": {"data": {"source_language": source, "target_language": target}}}
    path = folder / "assets.extra" / "verbatim.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(facts))


@pytest.fixture(scope="module")
def folders(tmp_path_factory, saved_models):
    """Two models that say their languages, and one that says none."""
    root = tmp_path_factory.mktemp("languages")
    models = {
        "english_french": ("plain", "en", "fr"),
        "english_brazilian": ("starred", "en", "pt_BR"),
        "english_portuguese": ("plain", "en", "pt_PT"),
        "nobody": ("plain", None, None),
    }
    for name, (saved, source, target) in models.items():
        shutil.copytree(saved_models / saved, root / name / "1")
        if source:
            save_language(root / name / "1", source, target)
    return {name: root / name for name in models}


@pytest.fixture(scope="module")
def server(folders):
    models = {name: path for name, path in folders.items() if name != "english_portuguese"}
    with ModelServer(models, ServerSettings(port=0, rest_port=0, limits=LIMITS)) as running:
        yield running


@pytest.fixture
def translate(server):
    def send(q, expected=200, source="en", target="fr", **fields):
        body = {"q": q, "source": source, "target": target, **fields}
        status, _, content = call(server, "POST", "/translate", body)
        assert status == expected, content
        return content

    return send


# As programs ask it


def test_libretranslates_own_client(server):
    client = libretranslatepy.LibreTranslateAPI(f"http://{server.rest_address}")
    assert client.translate("Delete the page %s & go", "en", "fr") == "DELETE THE PAGE %s & GO"
    assert [language["code"] for language in client.languages()] == ["en", "fr", "pt-BR"]
    with pytest.raises(urllib.error.HTTPError) as refused:
        client.detect("hello")
    assert refused.value.code == 501
    assert "detects no languages" in json.load(refused.value)["error"]


# What Weblate 2026.10.1 sent, with its own class for LibreTranslate: its checks find placeholders,
# and a mask names the place where one begins. Each with the placeholders.
WEBLATE_TEXTS = {
    "Delete [X7X]?": {"[X7X]": "%(name)s"},
    "[X0X] of [X13X] pages were moved to [X43X]": {
        "[X0X]": "%(count)d",
        "[X13X]": "%(total)d",
        "[X43X]": "%s",
    },
    "Open [X5X] in [X15X]": {"[X5X]": "{name}", "[X15X]": "{0}"},
    'Click <a href="[X15X]">here</a> & save': {"[X15X]": "%(url)s"},
    "[X0X] has [X9X] new messages\n\nRead them": {"[X0X]": "%1$s", "[X9X]": "%2$d"},
    'The page "[X10X]" could not be found.': {"[X10X]": "%s"},
    "Go to https://example.com/a?b=c": {},
}
WEBLATE_HEADERS = {
    "Accept": "application/json; charset=utf-8",
    "Content-Type": "application/json",
    "Referer": "https://weblate.example.com",
}


def unmask(text, placeholders):
    """As Weblate does: it also finds a mask with blanks before its bracket."""
    for mask, placeholder in placeholders.items():
        pattern = f"{re.escape(mask[:-1])} *{re.escape(mask[-1:])}"
        text = re.sub(pattern, lambda _, placeholder=placeholder: placeholder, text)
    return text


def test_as_weblate_asks(server):
    """The texts come back in their order, with every placeholder, under the code that it knows."""
    _, _, languages = call(server, "GET", "/languages")
    assert "pt-BR" in [language["code"] for language in languages]
    body = {"api_key": "", "q": list(WEBLATE_TEXTS), "source": "en", "target": "pt-BR"}
    status, _, answer = call(server, "POST", "/translate", body, WEBLATE_HEADERS)
    assert status == 200 and len(answer["translatedText"]) == len(WEBLATE_TEXTS)
    for (text, placeholders), found in zip(WEBLATE_TEXTS.items(), answer["translatedText"]):
        expected = "\n".join(f"{line.upper()}*" if line else "" for line in text.split("\n"))
        assert found == expected
        unmasked = unmask(found, placeholders)
        assert all(unmasked.count(one) == 1 for one in placeholders.values())
        assert "[X" not in unmasked


def test_weblate_tests_a_new_service(folders):
    """With languages that no model may have; nobody else is misled by what comes back."""
    echoes = (libre_translate.read_pair("en, de"),)
    settings_ = ServerSettings(port=0, rest_port=0, echoes=echoes)
    with ModelServer(folders["english_french"], settings_) as echoing:
        body = {"api_key": "", "q": ["test"], "source": "en", "target": "de"}
        status, _, answer = call(echoing, "POST", "/translate", body, WEBLATE_HEADERS)
        assert (status, answer) == (200, {"translatedText": ["test"]})
        _, _, answer = call(echoing, "POST", "/translate", {**body, "target": "fr"})
        assert answer == {"translatedText": ["TEST"]}
        assert call(echoing, "POST", "/translate", {**body, "source": "fr"})[0] == 400
        _, _, found = call(echoing, "GET", "/languages")
        assert [language["code"] for language in found] == ["en", "fr"]


@pytest.mark.parametrize("pair", ["en", "en,", "en,de,fr", ""])
def test_what_is_no_pair_of_languages(pair):
    with pytest.raises(ServeError, match="two codes such as en,de"):
        libre_translate.read_pair(pair)


def test_as_omegat_asks(server):
    """A form with one text, its own tags, and languages without their country; no key."""
    fields = {"q": "open <g0>the</g0> <x1/>file", "source": "en", "target": "pt"}
    body = urllib.parse.urlencode(fields).encode()
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    status, _, answer = call(server, "POST", "/translate", body, form)
    assert status == 200 and answer["translatedText"] == "OPEN <G0>THE</G0> <X1/>FILE*"


def test_languages_name_their_targets(server):
    _, _, found = call(server, "GET", "/languages")
    assert found == [
        {"code": "en", "name": "English", "targets": ["fr", "pt-BR"]},
        {"code": "fr", "name": "French", "targets": []},
        {"code": "pt-BR", "name": "Portuguese (Brazil)", "targets": []},
    ]
    assert call(server, "GET", "/health")[2] == {"status": "ok"}


@pytest.mark.parametrize(
    "source, target, expected",
    [
        ("en", "fr", "HELLO"),
        ("en", "pt-BR", "HELLO*"),
        ("EN", "pt_br", "HELLO*"),
        ("en-GB", "fr-CA", "HELLO"),
        ("en", "pt", "HELLO*"),
        ("en-GB", "pt", "HELLO*"),
    ],
)
def test_codes_find_their_model(translate, source, target, expected):
    assert translate("hello", source=source, target=target)["translatedText"] == expected


def test_a_code_that_could_be_several(folders):
    """Without its country; the whole code is asked for."""
    both = {name: folders[name] for name in ("english_brazilian", "english_portuguese")}
    with ModelServer(both, ServerSettings(port=0, rest_port=0)) as running:
        body = {"q": "hello", "source": "en", "target": "pt"}
        status, _, content = call(running, "POST", "/translate", body)
        assert status == 400
        assert "could be en to pt_BR, en to pt_PT; send the whole codes" in content["error"]
        _, _, content = call(running, "POST", "/translate", {**body, "target": "pt-PT"})
        assert content["translatedText"] == "HELLO"


def test_any_source_for_a_target(translate):
    answer = translate("hello", source="auto")
    assert answer == {
        "translatedText": "HELLO",
        "detectedLanguage": {"language": "en", "confidence": 100},
    }


def test_alternatives(translate):
    answer = translate("hello", alternatives=2)
    assert answer["translatedText"] == "HELLO" and len(answer["alternatives"]) <= 2
    assert "HELLO" not in answer["alternatives"]


def test_more_texts_than_a_batch_keep_their_order(translate):
    texts = [f"{'ab' * (place % 7 + 1)} {place}" for place in range(23)]
    assert translate(texts)["translatedText"] == [text.upper() for text in texts]


def test_lines_and_blanks_keep_their_place(translate):
    text = "\n  first line\r\n\r\n\tsecond \n"
    assert translate(text)["translatedText"] == "\n  FIRST LINE\r\n\r\n\tSECOND \n"
    assert translate(["", "  ", "a"])["translatedText"] == ["", "  ", "A"]
    assert translate([])["translatedText"] == []


# What is refused


@pytest.mark.parametrize(
    "fields, sentence",
    [
        ({"q": None}, "q must be"),
        ({"q": ["a", 3]}, "q must be"),
        ({"source": 3}, "source must be a text"),
        ({"target": "pt-PT"}, "No model translates from en to pt-PT"),
        ({"target": "de"}, "No model translates from en to de; this server has en to pt_BR, en to"),
        ({"format": "xml"}, "format must be text or html"),
        ({"alternatives": -1}, "alternatives must be"),
        ({"alternatives": True}, "alternatives must be"),
        ({"q": "x" * 200}, "bytes"),
        (
            {"q": ["a", "x" * 200]},
            'A line is 200 bytes long; a text may have at most 100. The line is "xxx',
        ),
    ],
)
def test_a_wrong_request_is_refused_in_a_sentence(server, fields, sentence):
    body = {"q": "hello", "source": "en", "target": "fr", **fields}
    status, _, content = call(server, "POST", "/translate", body)
    assert status == 400 and sentence in content["error"], content


@pytest.mark.parametrize("body", [b"{", b"[]", b"\xff", b""])
def test_a_body_that_is_none(server, body):
    status, _, content = call(server, "POST", "/translate", body)
    assert status == 400 and content["error"].startswith("The body")


# Keys and limits


@pytest.fixture(scope="module")
def guarded(folders):
    allowed = access.Access(frozenset(["secret"]), requests_per_minute=2)
    settings_ = ServerSettings(port=0, rest_port=0, access=allowed)
    with ModelServer(folders["english_french"], settings_) as running:
        yield running


def test_a_key_is_asked_for_and_its_requests_are_counted(guarded):
    def status(key):
        fields = {"q": "a", "source": "en", "target": "fr", **({"api_key": key} if key else {})}
        body = urllib.parse.urlencode(fields).encode()
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        found, _, content = call(guarded, "POST", "/translate", body, form)
        return found, content

    assert status("")[0] == 403 and "is missing" in status("")[1]["error"]
    assert status("other")[0] == 403
    assert [status("secret")[0] for _ in range(3)] == [200, 200, 429]
    # Whoever monitors the server needs no key.
    assert call(guarded, "GET", "/health")[0] == 200


def test_an_allowance_fills_up_again():
    now = [0.0]
    gate = access.Gate(access.Access(requests_per_minute=2), lambda: now[0])
    gate.enter("", "a")
    gate.enter("", "a")
    with pytest.raises(RequestRefused, match="try again in 30 s"):
        gate.enter("", "a")
    gate.enter("", "b")
    now[0] = 31.0
    gate.enter("", "a")
    with pytest.raises(RequestRefused):
        gate.enter("", "a")


def test_keys_of_a_file(tmp_path):
    path = tmp_path / "keys"
    path.write_text("# translators\nabc\n\n def \n")
    assert access.of_file(str(path), 5) == access.Access(frozenset(["abc", "def"]), 5)
    path.write_text("# nobody\n")
    with pytest.raises(ServeError, match="hold no key"):
        access.of_file(str(path))
    with pytest.raises(ServeError, match="cannot be read"):
        access.of_file(str(tmp_path / "none"))
    with pytest.raises(ServeError, match="0 or more"):
        access.of_file(None, -1)


# HTML


def test_html_keeps_tags_and_what_html_needs(translate):
    # The model shouts; what is no tag and no reference is escaped.
    assert translate("<B>a &#98;</B> &#60;", format="html") == {
        "translatedText": "<B>A B</B> &#60;"
    }
    assert translate("a & b", format="html") == {"translatedText": "A &amp; B"}
    text = '<a href="x?a=1&amp;b=2">caf&eacute; &amp; bar</a> &#8217;s &lt;b&gt;'
    assert html_text.read(text) == (
        '<a href="x?a=1&amp;b=2">caf\u00e9 &amp; bar</a> \u2019s &lt;b&gt;'
    )
    assert html_text.write("a & b < c <b>d</b> &lt;") == "a &amp; b &lt; c <b>d</b> &lt;"


@settings(max_examples=200)
@given(st.text(alphabet=st.sampled_from("a<>&;#x1é \"'/b!-") | st.characters(codec="utf-8")))
def test_what_is_written_is_read_as_the_same(text):
    written = html_text.write(html_text.read(text))
    # Once it is HTML, nothing changes any more.
    assert html_text.write(html_text.read(written)) == written
