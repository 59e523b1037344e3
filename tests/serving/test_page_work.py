"""The web page in a real browser: a glossary, files, a model card, and how programs ask."""

import base64
import json
import shlex

import tensorflow as tf
from google.protobuf import json_format
from tensorflow_serving.apis import predict_pb2

from serving import term_markup
from tests.browser import needs_chromium, until
from tests.serving.page_reading import WORDS, texts, wait_for_answer


def drop(page, name, content, size=0):
    """Drops a file on the box for files; `size` more blanks follow its content."""
    file = f"new File([{json.dumps(content)} + ' '.repeat({size})], {json.dumps(name)})"
    page.run(
        f"(() => {{ const held = new DataTransfer(); held.items.add({file}); "
        "document.querySelector('#files').dispatchEvent(new DragEvent('drop', "
        "{dataTransfer: held, bubbles: true, cancelable: true})); })()"
    )


def shown(page, selector):
    page.wait_for(f"!document.querySelector('{selector}').hidden")
    return texts(page, selector)


@needs_chromium
def test_a_glossary_is_typed_and_kept_by_the_link(open_page):
    page = open_page(text="Open the homepage")
    wait_for_answer(page, "OPEN THE HOMEPAGE*")
    page.click("document.querySelector('#glossary-box summary')")
    page.click("document.querySelector('#glossary')")
    page.type("homepage = accueil")
    page.click("document.querySelector('#send')")
    wait_for_answer(page, "OPEN THE accueil*")
    assert texts(page, "#source-words .surface") == ["Open", "the", "homepage"]
    page.point(f"{WORDS}[2]")
    assert texts(page, "#origin")[0].startswith("“accueil”: copied from source word 3")
    page.open(page.run("document.querySelector('#link').href"))
    wait_for_answer(page, "OPEN THE accueil*")
    assert page.run("document.querySelector('#glossary').value") == "homepage = accueil"
    assert page.run("document.querySelector('#glossary-box').open") and page.complaints == []


@needs_chromium
def test_a_glossary_that_is_refused_is_one_sentence(open_page):
    page = open_page(text="a", glossary="a")
    assert shown(page, "#problem") == [
        "Line 1 of the glossary has no translation; write phrase = translation."
    ]
    page = open_page(text="a", glossary="a = b", version="versions/1")
    assert shown(page, "#problem") == [
        "Model “shouter” takes no glossary; it is of an older version."
    ]
    # Tags are of tokens, and a language model writes no translations.
    for model in ("tagged", "continuer"):
        page = open_page(model=model)
        assert page.run("document.querySelector('#glossary-box').hidden")
        assert page.run("document.querySelector('#files').hidden")


@needs_chromium
def test_a_file_is_dropped_and_comes_back(open_page, tmp_path):
    page = open_page(glossary="b = accueil")
    downloads = {"behavior": "allow", "downloadPath": str(tmp_path)}
    page.send("Page.setDownloadBehavior", **downloads)
    assert texts(page, "#formats")[0].startswith(".txt .tsv .csv")
    drop(page, "<b>.txt", "a é\n\n" + "b " * 9)
    assert shown(page, "#file-result") and texts(page, "#counts") == [
        "<b>.txt: 1 translated, 1 blank, 0 translated before, 1 refused"
    ]
    (line,) = texts(page, "#refused li")
    assert line.startswith("Line 3: A text has more than 8 tokens")
    assert texts(page, "#download") == ["Download <b>.fr.txt"]
    # Chromium writes a file whole, under a name that the system accepts.
    until(lambda: list(tmp_path.glob("*.fr.txt")), "nothing was downloaded")
    (file,) = tmp_path.glob("*.fr.txt")
    assert file.read_text(encoding="utf-8") == "A é*\n\n"
    drop(page, "x.po", "?")
    assert shown(page, "#file-problem") and "x.po" in texts(page, "#file-problem")[0]
    assert page.run("document.querySelector('#file-result').hidden")
    before = len(page.requests)
    drop(page, "y.txt", "a", size=1000)
    page.wait_for("document.querySelector('#file-problem').textContent.startsWith('y.txt')")
    assert len(page.requests) == before


@needs_chromium
def test_the_card_is_shown_as_text(open_page):
    page = open_page()
    page.click("document.querySelector('#card-box summary')")
    page.wait_for("document.querySelector('#card table')")
    assert texts(page, "#card h3, #card li, #card li code, #card th, #card td, #card pre") == [
        "Metrics <b>",
        "BLEU: 13a|<i>",
        "13a|<i>",
        "metric",
        "pointer_generator",
        "BLEU",
        "30.65 [27, 34]",
        '{"# a": "<script>"}',
    ]
    page = open_page(version="versions/1")
    assert page.run("document.querySelector('#card-box').hidden")


@needs_chromium
def test_programs_can_ask_what_is_on_the_screen(open_page, page_server):
    page = open_page(text="it's a b ü 😀", glossary="b = l'accueil")
    wait_for_answer(page, "IT'S A l'accueil ü 😀*")
    marked = "it's a " + term_markup.term("b", "l'accueil") + " ü 😀"
    curl, python, grpcurl = texts(page, "#curl, #python, #grpcurl")

    command, option, body, url = shlex.split(curl)
    path = f"http://{page_server.rest_address}/v1/models/shouter:predict"
    assert [command, option, url] == ["curl", "-d", path]
    assert json.loads(body) == {"signature_name": "n_best", "inputs": {"source": [marked]}}
    assert term_markup.ANCHOR not in curl

    *flags, sent, address, method = shlex.split(grpcurl)
    assert flags == ["grpcurl", "-plaintext", "-d"]
    assert address == page_server.address
    assert method == "tensorflow.serving.PredictionService/Predict"
    request = json_format.Parse(sent, predict_pb2.PredictRequest())
    assert request.model_spec.name == "shouter"
    assert request.model_spec.signature_name == "n_best"
    assert tf.make_ndarray(request.inputs["source"]).tolist() == [marked.encode()]

    written = []
    exec(python, {"print": lambda *said: written.append(said)})
    assert [said[0] for said in written] == ["IT'S A l'accueil ü 😀*", "it's a l'accueil ü 😀*"]
    assert """glossary={"b":"l'accueil"}""" in python


@needs_chromium
def test_the_calls_name_version_and_tags(open_page):
    page = open_page(text="a", version="labels/stable")
    wait_for_answer(page, "A")
    curl, python, grpcurl = texts(page, "#curl, #python, #grpcurl")
    assert "/v1/models/shouter/labels/stable:predict'" in curl and "version=1)" in python
    sent = shlex.split(grpcurl)[3]
    assert json.loads(sent)["model_spec"]["version"] == "1"
    page = open_page(model="tagged", text="a", **{"tags.entity": "O"})
    wait_for_answer(page, "<O>")
    curl, python, grpcurl = texts(page, "#curl, #python, #grpcurl")
    assert 'client.predict(["a"], features={"entity":["O"]})' in python
    sent = json.loads(shlex.split(grpcurl)[3])
    assert sent["inputs"]["entity"]["string_val"] == [base64.b64encode(b"O").decode()]
    page = open_page(model="continuer", text="one two")
    wait_for_answer(page, "one and one\n")
    assert "client.continue_text" in texts(page, "#python")[0]
