"""The paths of the web page beside predictions: terms, files and model cards."""

import base64
import http.client
import json

import pytest

from pipeline.documents.file_translator import DocumentTranslator
from serving import term_markup
from serving.access import Access
from serving.server import ModelServer, ServerSettings
from tests.serving.page_models import CARD

PO = """msgid ""
msgstr "Content-Type: text/plain; charset=UTF-8\\n"

#, python-format
msgid "Delete %s"
msgstr ""

msgid "Save"
msgstr "Sauver"

msgid "one two three four five six seven eight nine"
msgstr ""
"""


def ask(server, path, fields=None):
    """Returns the status and the JSON of a path; fields are sent as JSON."""
    connection = http.client.HTTPConnection(server.rest_address, timeout=30)
    try:
        if fields is None:
            connection.request("GET", path)
        else:
            connection.request("POST", path, json.dumps(fields))
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def translate(server, name, text, **fields):
    encoded = base64.b64encode(text.encode()).decode()
    asked = {"model": "shouter", "name": name, "content": encoded, **fields}
    return ask(server, "/web/translate", asked)


def content_of(answer):
    return base64.b64decode(answer["content"]).decode()


def refusal(answer):
    status, fields = answer
    assert status == 400 and list(fields) == ["error"]
    return fields["error"]


# Terms


def test_terms_are_marked_as_clients_mark_them(page_server):
    asked = {"text": "Open the homepage", "glossary": "\nhomepage = page d'accueil\na=b\tc = d\n"}
    status, answer = ask(page_server, "/web/terms", asked)
    marked = "Open the " + term_markup.term("homepage", "page d'accueil")
    assert status == 200 and answer["text"] == marked
    assert answer["terms"] == {"homepage": "page d'accueil", "a=b": "c = d"}
    asked = {"text": "Open", "glossary": " \n"}
    assert ask(page_server, "/web/terms", asked) == (200, {"text": "Open", "terms": {}})


@pytest.mark.parametrize(
    "fields, sentence",
    [
        ({"glossary": "a = b\nc"}, "Line 2 of the glossary has no translation; write phrase ="),
        ({"glossary": "a = b\na = c"}, 'The glossary translates "a" as "b" and as "c"'),
        ({"glossary": "a ="}, "The translation of the glossary's term 'a ' is blank."),
        ({"glossary": "a" * 70_000}, "The glossary has more than 65536 characters"),
        ({"glossary": 1}, "glossary must be a text."),
        ({}, "glossary is missing."),
        ({"glossary": "a = b", "text": "a" * 201}, "The text has more than 200 bytes"),
    ],
)
def test_a_glossary_that_cannot_be_used_is_one_sentence(page_server, fields, sentence):
    assert sentence in refusal(ask(page_server, "/web/terms", {"text": "a", **fields}))


# Files


def test_a_catalogue_is_filled(page_server):
    status, answer = translate(page_server, "django.po", PO, glossary="delete = supprimer")
    assert status == 200 and answer["name"] == "django.fr.po"
    assert (answer["translated"], answer["blank"], answer["translated_before"]) == (1, 0, 1)
    reason = 'A text has more than 8 tokens; the model\'s limit is "8" – shorten it [now].'
    assert answer["refused"] == [{"line": 11, "reason": reason}]
    note = "# Machine translation: shouter, version 2 (verbatim)\n#, fuzzy, python-format\n"
    filled = PO.replace("#, python-format\n", note)
    assert content_of(answer) == filled.replace('%s"\nmsgstr ""', '%s"\nmsgstr "supprimer %s*"')


def test_texts_are_translated_by_the_version_that_is_named(page_server):
    for version, expected in (("", "A*\n\nB*\n"), ("/labels/stable", "A\n\nB\n")):
        status, answer = translate(page_server, "x.txt", "a\n\nb\n", version=version)
        assert status == 200 and content_of(answer) == expected
        assert answer["name"] == ("x.translated.txt" if version else "x.fr.txt")
    assert answer["blank"] == 1 and answer["translated"] == 2 and answer["refused"] == []


@pytest.mark.parametrize(
    "name, text, fields, sentence",
    [
        ("a.docx", "a", {}, "a.docx has no known suffix; rename it so that it ends in one of .txt"),
        ("../../a.po", "a", {}, "a.po"),
        ("a.json", "{", {}, "a.json is not valid JSON"),
        ("a.txt", "a", {"content": "%"}, "content must be the file in base64."),
        ("a.txt", "a", {"glossary": "a"}, "Line 1 of the glossary has no translation"),
        ("a.txt", "a", {"model": "continuer"}, "The model continuer translates no files"),
        ("a.txt", "a", {"model": "tagged"}, "it takes entity, source"),
        ("a.txt", "a", {"version": "/x"}, "Malformed request"),
        (
            "a.txt",
            "a",
            {"glossary": "a = b", "version": "/versions/1"},
            "The model at shouter takes no glossary",
        ),
    ],
)
def test_a_file_that_is_not_translated_is_one_sentence(page_server, name, text, fields, sentence):
    error = refusal(translate(page_server, name, text, **fields))
    assert sentence in error and ".." not in error


def test_files_have_the_limits_of_the_server(page_server):
    status, answer = translate(page_server, "a.txt", "a\n" * 501)
    assert status == 429 and answer["error"].startswith("a.txt has more than 1,000 bytes; split it")
    # A text that is too long stays untranslated; the others do not.
    status, answer = translate(page_server, "a.txt", "a\n" + "b" * 201)
    assert status == 200 and content_of(answer) == "A*\n"
    assert answer["refused"][0]["line"] == 2 and "200" in answer["refused"][0]["reason"]


def test_a_server_alone_translates_no_files(shared_server):
    status, answer = translate(shared_server, "a.txt", "a")
    assert status == 501 and answer["error"].startswith("This server translates no files")
    assert ask(shared_server, "/web/models")[1]["files"] is None


def test_files_need_a_key_and_count_with_other_requests(shared_folder):
    settings = ServerSettings(
        port=0,
        rest_port=0,
        access=Access(frozenset(["secret"]), requests_per_minute=2),
        files=DocumentTranslator(),
    )
    with ModelServer(shared_folder, settings) as server:
        assert ask(server, "/web/models")[1]["needs_key"] is True
        for key in ("", "other"):
            status, answer = translate(server, "a.txt", "a", api_key=key)
            assert status == 403 and answer["error"].startswith("The API key is")
        status, answer = translate(server, "a.txt", "a", api_key="secret")
        assert status == 200 and content_of(answer) == "A"
        # LibreTranslate's API takes from the same allowance.
        ask(server, "/translate", {"q": "a", "api_key": "secret", "source": "x", "target": "y"})
        status, answer = translate(server, "a.txt", "a", api_key="secret")
        assert status == 429 and "2 requests a minute" in answer["error"]


# Cards


def test_the_card_beside_a_version(page_server):
    assert ask(page_server, "/web/card?model=shouter") == (200, {"card": CARD})
    status, answer = ask(page_server, "/web/card?model=shouter&version=/versions/1")
    sentence = "There is no model card beside version 1 of shouter."
    assert status == 404 and answer["error"] == sentence
    for query in ("model=shouter&version=/versions/9", "model=../shouter"):
        status, answer = ask(page_server, f"/web/card?{query}")
        assert status == 404 and answer["error"].startswith("Servable not found")
