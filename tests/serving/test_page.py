"""The web page, in a real browser: what a person types, points at and reads;
what a hostile model or address cannot do.
"""

import functools
import http.client
import http.server
import json
import shutil
import threading
import urllib.parse

import pytest
import tensorflow as tf

from serving.model_config import ALL_VERSIONS, ModelConfig
from serving.server import ModelServer
from tests.browser import Browser, needs_chromium, until

SOURCE = "document.querySelectorAll('#source-words .word')"
WORDS = "document.querySelectorAll('#answer-words .word')"
ENTER, TAB, END, HOME, LEFT, UP, RIGHT = 13, 9, 35, 36, 37, 38, 39
ATTACK = (
    "%<img/src=x/onerror=broken=1> %</textarea></script><script>broken=1</script> "
    "%<svg/onload=broken=1>"
)


class Continuer(tf.Module):
    """Continues a text with its first word, `and`, that word again as a copy of the continuation's
    own, and a line end.
    """

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def go_on(self, text):
        read = tf.strings.split(text).to_tensor("")
        batch = tf.shape(read)[0]
        first = read[:, :1]
        tokens = tf.concat(
            [first, tf.fill([batch, 1], "and"), first, tf.fill([batch, 1], "[END]")], axis=1
        )
        count = tf.shape(read)[1]
        return {
            "text": tf.strings.join([first[:, 0], " and ", first[:, 0], "\n"]),
            "tokens": tokens,
            "copied_from": tf.tile([[0, -1, count, -1]], [batch, 1]),
            "copy_probability": tf.tile([[0.75, 0.25, 1.0, 0.0]], [batch, 1]),
            "log_probability": tf.fill([batch, 4], -0.5),
            "text_tokens": read,
        }


class Tagged(tf.Module):
    """Answers with the tags that came with a text and two joiners; it has no n-best list."""

    @tf.function(
        input_signature=[
            tf.TensorSpec([None], tf.string, name=name) for name in ("source", "entity")
        ]
    )
    def answer(self, source, entity):
        tokens = tf.strings.split(entity).to_tensor("")
        return {
            "text": tf.strings.join(["<", entity, ">"]),
            "score": tf.fill(tf.shape(source), -0.25),
            "tokens": tf.concat([tokens, tf.fill([tf.shape(tokens)[0], 2], "\uffed")], axis=1),
            "copied_from": tf.fill([tf.shape(tokens)[0], tf.shape(tokens)[1] + 2], -1),
            "copy_probability": tf.fill([tf.shape(tokens)[0], tf.shape(tokens)[1] + 2], 0.5),
            "source_tokens": tf.strings.split(source).to_tensor(""),
        }


class Bare(tf.Module):
    """Has nothing that the page could ask."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="source")])
    def count(self, source):
        return {"calls": tf.ones(tf.shape(source))}


@pytest.fixture(scope="module")
def server(tmp_path_factory, saved_models):
    """A running server with a model in two versions, and three models that are asked otherwise or
    not at all.
    """
    folder = tmp_path_factory.mktemp("models")
    for version, name in ((1, "plain"), (2, "starred")):
        shutil.copytree(saved_models / name, folder / "shouter" / str(version))
    for name, module, signatures in (
        ("continuer", Continuer(), {"serving_default": "go_on", "continue": "go_on"}),
        ("tagged", Tagged(), {"serving_default": "answer"}),
        ("bare", Bare(), {"count": "count"}),
    ):
        found = {signature: getattr(module, method) for signature, method in signatures.items()}
        tf.saved_model.save(module, str(folder / name / "1"), signatures=found)
    configs = [ModelConfig("shouter", str(folder / "shouter"), ALL_VERSIONS, {"stable": 1})]
    names = {
        "continuer": "continuer",
        "tagged": "tagged",
        "bare": "bare",
        "<img src=x onerror=broken=1>": "bare",
    }
    configs += [
        ModelConfig(name, str(folder / where), ALL_VERSIONS, {}) for name, where in names.items()
    ]
    with ModelServer(configs, port=0, rest_port=0, max_text_bytes=200) as running:
        yield running


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("browser")) as running:
        running.resize(1200, 900)
        yield running


@pytest.fixture
def open_page(chromium, server):
    """Opens the page by a link that says what is asked; returns the browser."""

    def open_with(**asked):
        chromium.open(
            f"http://{server.rest_address}/#{urllib.parse.urlencode({'model': 'shouter', **asked})}"
        )
        chromium.wait_for("document.querySelectorAll('#model option').length")
        return chromium

    return open_with


def texts(page, selector):
    return page.run(
        f"[...document.querySelectorAll({json.dumps(selector)})].map(element => "
        "element.textContent)"
    )


def wait_for_answer(page, text):
    page.wait_for(f"document.querySelector('#answer-text').textContent === {json.dumps(text)}")
    page.wait_for("!document.querySelector('#answer').hidden")


def choose(page, select, value):
    page.run(f"document.querySelector('{select}').value = '{value}'")
    page.run(f"document.querySelector('{select}').dispatchEvent(new Event('change'))")


def get(server, path):
    connection = http.client.HTTPConnection(server.rest_address, timeout=30)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.headers, response.read().decode()
    finally:
        connection.close()


# What the server sends


def test_the_list_of_what_can_be_asked(server):
    status, _, content = get(server, "/web/models")
    models = {model["name"]: model for model in json.loads(content)["models"]}
    assert status == 200 and list(models) == sorted(models) and len(models) == 5
    shouter = models["shouter"]
    assert shouter["labels"] == {"stable": "1"}
    assert [version["version"] for version in shouter["versions"]] == ["2", "1"]
    best = shouter["versions"][0]["signatures"]["n_best"]
    assert best["inputs"] == ["source"] and {"text", "copied_from"} <= set(best["outputs"])
    assert models["tagged"]["versions"][0]["signatures"]["serving_default"]["inputs"] == [
        "entity",
        "source",
    ]


@pytest.mark.parametrize(
    "path, content_type",
    [
        ("/", "text/html"),
        ("/web/page.js", "text/javascript"),
        ("/web/base.css", "text/css"),
        ("/web/style.css", "text/css"),
        ("/web/icon.svg", "image/svg+xml"),
        ("/web/models", "application/json"),
        ("/v1/models/shouter", "application/json"),
        ("/nothing", "application/json"),
    ],
)
def test_every_response_is_protected(server, path, content_type):
    _, headers, _ = get(server, path)
    assert headers.get_content_type() == content_type
    rules = dict(
        rule.strip().split(" ", 1) for rule in headers["Content-Security-Policy"].split(";")
    )
    assert (
        rules["default-src"]
        == rules["base-uri"]
        == rules["form-action"]
        == rules["frame-ancestors"]
        == "'none'"
    )
    assert rules["script-src"] == rules["style-src"] == rules["connect-src"] == "'self'"
    assert (
        headers["X-Content-Type-Options"] == "nosniff"
        and headers["Referrer-Policy"] == "no-referrer"
    )
    # Without such a header, no page of another site can read what the server says.
    assert not [name for name in headers if name.lower().startswith("access-control-")]


# What a person does


@needs_chromium
def test_a_text_is_typed_and_answered(open_page, server):
    page = open_page()
    page.type("Delete the page %(name)s ?")  # the text has the focus from the beginning
    page.press("Enter", ENTER, control=True)
    wait_for_answer(page, "DELETE THE PAGE %(name)s ?*")
    assert texts(page, "#source-words .surface") == ["Delete", "the", "page", "%(name)s", "?"]
    assert texts(page, "#answer-words .surface") == ["DELETE", "THE", "PAGE", "%(name)s", "?"]
    assert texts(page, "#answer-words .small-number") == ["0.00", "0.00", "0.00", "0.98", "0.00"]
    bars = (
        "[...document.querySelectorAll('.gate')].map(gate => gate.firstChild.offsetWidth / "
        "gate.offsetWidth)"
    )
    assert page.run(bars) == pytest.approx([0, 0, 0, 0.984, 0], abs=0.02)
    assert texts(page, ".copied .surface") == ["%(name)s", "%(name)s"]
    (latency,) = texts(page, "#latency")
    assert latency.endswith(" ms from request to answer") and float(latency.split()[0]) > 0
    assert texts(page, "#asked, #score") == ["shouter, latest version", "score −5.000"]
    assert page.complaints == []
    assert (
        all(url.startswith(f"http://{server.rest_address}/") for url in page.requests)
        and len(page.requests) > 4
    )


@needs_chromium
def test_pointing_at_a_word_shows_what_it_is_linked_with(open_page):
    page = open_page(text="a %s b %d")
    wait_for_answer(page, "A %s B %d*")
    page.point(f"{WORDS}[3]")
    assert texts(page, "#origin") == ["“%d”: copied from source word 4, copy probability 0.98"]
    assert (
        texts(page, ".linked .surface") == ["%d"]
        and page.run(f"{SOURCE}[3].className") == "word copied linked"
    )
    page.point(f"{SOURCE}[1]")
    assert texts(page, "#origin") == ["“%s”: copied to word 2 of the answer, copy probability 0.98"]
    assert page.run(f"{WORDS}[1].className") == "word copied linked"
    page.point(f"{WORDS}[0]")
    assert (
        texts(page, "#origin") == ["“A”: generated, copy probability 0.00"]
        and texts(page, ".linked") == []
    )
    page.point(f"{SOURCE}[0]")
    assert texts(page, "#origin") == ["“a”: not copied"]
    page.point("document.querySelector('h1')")
    assert texts(page, "#origin") == [""] and texts(page, ".shown, .linked") == []


@needs_chromium
def test_the_keyboard_is_enough(open_page):
    page = open_page()
    page.type("a %s b")
    for _ in range(20):  # from the text to the button, whatever lies between them
        if page.run("document.activeElement.id") == "send":
            break
        page.press("Tab", TAB)
    page.press("Enter", ENTER)
    wait_for_answer(page, "A %s B*")

    def focused():
        return page.run(
            "[document.activeElement.parentElement.id, "
            "document.activeElement.firstChild.textContent]"
        )

    def go(key, code):
        page.press(key, code)
        return focused()

    page.press("Tab", TAB)  # the link
    assert go("Tab", TAB) == ["source-words", "a"]
    assert go("Tab", TAB) == ["answer-words", "A"]
    assert go("ArrowRight", RIGHT) == ["answer-words", "%s"]
    label = page.run("document.activeElement.getAttribute('aria-label')")
    assert label == "%s: copied from source word 2, copy probability 0.98"
    assert texts(page, "#origin") == ["“%s”: copied from source word 2, copy probability 0.98"]
    assert go("ArrowUp", UP) == ["source-words", "%s"]
    assert texts(page, "#origin") == ["“%s”: copied to word 2 of the answer, copy probability 0.98"]
    assert go("ArrowLeft", LEFT) == go("ArrowLeft", LEFT) == ["source-words", "a"]
    assert go("End", END) == ["source-words", "b"] and go("Home", HOME) == ["source-words", "a"]
    assert page.run("document.querySelectorAll('.word[tabindex=\"0\"]').length") == 2
    assert page.run("document.activeElement.getAttribute('aria-selected')") == "true"


@needs_chromium
def test_the_best_outputs_are_listed_and_one_is_looked_at(open_page):
    page = open_page(text="Hello %s")
    wait_for_answer(page, "HELLO %s*")
    assert texts(page, ".best .text") == ["HELLO %s*", "hello %s*"]
    assert texts(page, ".best .small-number") == ["−2.000", "−2.000"]
    page.click("document.querySelectorAll('.best')[1]")
    wait_for_answer(page, "hello %s*")
    assert texts(page, "#answer-words .surface") == ["hello", "%s"]
    page.point(f"{WORDS}[1]")
    assert page.run(f"{SOURCE}[1].className") == "word copied linked"


@needs_chromium
def test_the_chosen_version_answers(open_page):
    page = open_page(model="tagged")
    choose(page, "#model", "shouter")
    assert texts(page, "#version option") == ["latest (2)", "stable (1)", "2", "1"]
    page.click("document.querySelector('#text')")
    page.type("a")
    for value, text, asked in (
        ("/versions/1", "A", "version 1"),
        ("", "A*", "latest version"),
        ("/labels/stable", "A", "version stable (1)"),
    ):
        choose(page, "#version", value)
        page.click("document.querySelector('#send')")
        wait_for_answer(page, text)
        assert texts(page, "#asked") == [f"shouter, {asked}"]


@needs_chromium
def test_the_list_follows_the_server(chromium, model_folder, saved_models):
    with ModelServer(model_folder, port=0, rest_port=0, poll_seconds=0.05) as server:
        chromium.open(f"http://{server.rest_address}/#version=versions/1&text=a")
        wait_for_answer(chromium, "A")
        shutil.copytree(saved_models / "starred", model_folder / "2")
        until(lambda: server.models["shouter"].version == 2, "version 2 is not taken up")
        until(lambda: len(server.models["shouter"].states()) == 2, "version 1 does not end")
        chromium.run("document.dispatchEvent(new Event('visibilitychange'))")
        chromium.wait_for("!document.querySelector('#problem').hidden")
        assert texts(chromium, "#problem") == [
            "Model “shouter” has no “versions/1” here; choose one of its versions."
        ]
        assert texts(chromium, "#version option") == ["latest (2)", "2"]
        chromium.click("document.querySelector('#send')")
        wait_for_answer(chromium, "A*")


@needs_chromium
def test_a_link_asks_the_same_again(open_page, chromium):
    page = open_page(version="labels/stable", text="a+b & %s\nü")
    wait_for_answer(page, "A+B & %s ü")
    link = page.run("document.querySelector('#link').href")
    chromium.open(link)
    wait_for_answer(page, "A+B & %s ü")
    assert page.run("document.querySelector('#text').value") == "a+b & %s\nü"
    assert page.run("document.querySelector('#version').value") == "/labels/stable"
    assert not any("ü" in url or "%C3" in url.partition("#")[0] for url in page.requests)
    # An address of what is not there says so, and asks nothing else instead.
    for asked, sentence in (
        ({"model": "other"}, "This server has no model “other”; choose one of the list."),
        (
            {"version": "versions/9"},
            "Model “shouter” has no “versions/9” here; choose one of its versions.",
        ),
    ):
        page = open_page(text="a", **asked)
        page.wait_for("!document.querySelector('#problem').hidden")
        assert texts(page, "#problem") == [sentence]
        assert not any("predict" in url for url in page.requests)


@needs_chromium
def test_an_error_is_one_sentence(open_page):
    page = open_page(text="a " * 9)
    page.wait_for("!document.querySelector('#problem').hidden")
    assert texts(page, "#problem") == [
        'A text has more than 8 tokens; the model\'s limit is "8" – shorten it [now].'
    ]
    assert page.run("document.querySelector('#answer').hidden")
    # The next answer takes its place.
    page.run("document.querySelector('#text').value = 'a'")
    page.click("document.querySelector('#send')")
    wait_for_answer(page, "A*")
    assert page.run("document.querySelector('#problem').hidden")


@needs_chromium
def test_a_server_that_is_gone_is_one_sentence(chromium, model_folder):
    with ModelServer(model_folder, port=0, rest_port=0) as server:
        chromium.open(f"http://{server.rest_address}/#text=a")
        wait_for_answer(chromium, "A")
    chromium.click("document.querySelector('#send')")
    chromium.wait_for("!document.querySelector('#problem').hidden")
    (sentence,) = texts(chromium, "#problem")
    assert (
        sentence
        == f"No server answers at {server.rest_address}; start it again or check the address."
    )


# Models that are asked otherwise


@needs_chromium
def test_a_language_model_continues(open_page):
    page = open_page(model="continuer", text="one two")
    wait_for_answer(page, "one and one\n")
    assert texts(page, "#send, #text-label, #answer-title") == [
        "Text to continue",
        "Continue",
        "Continuation",
    ]
    assert texts(page, "#source-words .surface") == ["one", "two"]
    assert texts(page, "#answer-words .surface") == ["one", "and", "one", "¶"]
    assert texts(page, "#score") == ["log-probability −2.000"] and page.run(
        "document.querySelector('#best').hidden"
    )
    page.point(f"{WORDS}[0]")
    assert texts(page, "#origin") == [
        "“one”: copied from word 1, copy probability 0.75; copied to word 3 of the continuation, "
        "copy probability 1.00"
    ]
    page.point(f"{WORDS}[2]")
    assert texts(page, "#origin") == [
        "“one”: copied from word 1 of the continuation, copy probability 1.00"
    ]
    assert page.run(f"{WORDS}[0].className") == "word copied linked"
    assert page.complaints == []


@needs_chromium
def test_a_model_with_tags_has_a_line_for_them(open_page):
    page = open_page(model="tagged", text="a b")
    page.wait_for("!document.querySelector('#problem').hidden")
    assert "is empty" in texts(page, "#problem")[0]
    page.click("document.querySelector('#tags input')")
    page.type("O City")
    page.press("Enter", ENTER, control=True)
    wait_for_answer(page, "<O City>")
    assert texts(page, "#tags label") == ["entity: one tag for each source token"]
    # The joiner is in few fonts; where it stands alone an undertie stands for it.
    assert texts(page, "#answer-words .surface") == ["O", "City", "‿", "‿"]
    assert page.run("document.querySelectorAll('.touching').length") == 2
    link = page.run("document.querySelector('#link').href")
    page.open(link)
    wait_for_answer(page, "<O City>")
    assert (
        page.run("document.querySelector('#tags input').value") == "O City"
        and page.complaints == []
    )


@needs_chromium
def test_a_model_that_the_page_cannot_ask_is_one_sentence(open_page):
    page = open_page(model="bare", text="a")
    page.wait_for("!document.querySelector('#problem').hidden")
    (sentence,) = texts(page, "#problem")
    assert sentence.startswith(
        "This page cannot ask this version; its signatures are __saved_model_init_op, count,"
    )
    assert page.run("document.querySelector('#send').disabled")


# What a hostile model or address cannot do


@needs_chromium
def test_markup_in_an_answer_is_text_and_nothing_runs(open_page):
    page = open_page(text=ATTACK, version="versions/1")
    wait_for_answer(page, ATTACK)
    assert texts(page, ".best .text") == [ATTACK, ATTACK]
    assert texts(page, "#answer-words .surface") == ATTACK.split()
    page.point(f"{WORDS}[0]")
    assert "<img/src=x" in texts(page, "#origin")[0]
    assert "<img src=x onerror=broken=1>" in texts(page, "#model option")
    # A name in an address, too, and the model of that name.
    assert page.run("document.querySelectorAll('img, svg, script:not([src])').length") == 0
    assert page.run("typeof broken") == "undefined" and page.complaints == []
    page = open_page(model="<img src=x onerror=broken=2>")
    page.wait_for("!document.querySelector('#problem').hidden")
    assert "“<img src=x onerror=broken=2>”" in texts(page, "#problem")[0]
    assert (
        page.run("document.querySelectorAll('img').length") == 0
        and page.run("typeof broken") == "undefined"
    )


@needs_chromium
def test_the_policy_stops_what_the_page_itself_would_not(open_page):
    page = open_page()
    assert page.run(
        "(() => { try { document.body.innerHTML = '<b>x</b>'; return false } catch { return true "
        "} })()"
    )
    for tag, name, value in (
        ("style", "textContent", "body {color: red}"),
        ("img", "src", "http://localhost:1/x.png"),
        ("script", "src", "http://localhost:1/x.js"),
    ):
        page.run(f"document.body.append(document.createElement('{tag}'))")
        page.run(f"(() => {{ try {{ document.body.lastChild.{name} = '{value}' }} catch {{}} }})()")
    page.run("document.body.appendChild(document.createElement('script')).append('broken = 1')")
    expected = (
        "TrustedHTML",
        "style-src 'self'",
        "img-src 'self'",
        "'TrustedScriptURL'",
        "TrustedScript assignment",
    )
    until(
        lambda: page.run("1") and all(part in "\n".join(page.complaints) for part in expected),
        page.complaints,
    )
    assert page.run("typeof broken") == "undefined"
    assert page.run("getComputedStyle(document.body).color") != "rgb(255, 0, 0)"


@needs_chromium
def test_a_page_of_another_site_reads_no_answer(open_page, chromium, server, tmp_path):
    (tmp_path / "index.html").write_text("<!doctype html><title>Another site</title>")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=tmp_path)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as other:
        threading.Thread(target=other.serve_forever).start()
        try:
            chromium.open(f"http://127.0.0.1:{other.server_port}/")
        finally:
            other.shutdown()
    url = f"http://{server.rest_address}/v1/models/shouter:predict"
    asked = f"fetch({json.dumps(url)}, {{method: 'POST', body: '{{\"inputs\": [\"a\"]}}'}})"
    assert chromium.run(f"{asked}.then(() => 'read', () => 'refused')") == "refused"
    assert "No 'Access-Control-Allow-Origin' header" in str(chromium.complaints)
    # The same from the server's own page is answered.
    assert open_page().run(f"{asked}.then((answer) => answer.status)") == 200


# Looks


@needs_chromium
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [360, 1200])
def test_all_fits_and_can_be_read(open_page, chromium, width, dark):
    chromium.resize(width, 900, dark)
    try:
        page = open_page(
            text="Supercalifragilistic_%s_and_a_word_that_is_far_longer_than_the_page %d b"
        )
        page.wait_for("!document.querySelector('#answer').hidden")
        page.click(f"{WORDS}[1]")
        assert page.run("document.documentElement.scrollWidth") <= width
        # WCAG's contrast of each text with what it stands on.
        ratios = page.run(
            """(() => {
              const channels = (color) => color.match(/[\\d.]+/g).map(Number);
              const light = (color) => channels(color).slice(0, 3).map((c) => c / 255)
                .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
                .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
              const ground = (element) => {
                const color = getComputedStyle(element).backgroundColor;
                return (channels(color)[3] ?? 1) === 1 ? color : ground(element.parentElement);
              };
              return [...document.body.querySelectorAll("*")]
                .filter((element) => element.checkVisibility() && [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim()))
                .map((element) => {
                  const both = [light(getComputedStyle(element).color), light(ground(element))].sort((a, b) => b - a);
                  return [(both[0] + 0.05) / (both[1] + 0.05), element.textContent];
                });
            })()"""
        )
        assert len(ratios) > 15 and min(ratios)[0] >= 4.5, min(ratios)
    finally:
        chromium.resize(1200, 900)
