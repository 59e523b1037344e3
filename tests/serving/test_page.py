"""The web page: what the server sends, what a hostile model or address cannot do, its looks."""

import functools
import http.client
import http.server
import json
import threading

import pytest

from tests.browser import needs_chromium, until
from tests.serving.page_reading import WORDS, texts, wait_for_answer

ATTACK = (
    "%<img/src=x/onerror=broken=1> %</textarea></script><script>broken=1</script> "
    "%<svg/onload=broken=1>"
)


def get(server, path):
    connection = http.client.HTTPConnection(server.rest_address, timeout=30)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.headers, response.read().decode()
    finally:
        connection.close()


# What the server sends


def test_the_list_of_what_can_be_asked(page_server):
    status, _, content = get(page_server, "/web/models")
    listed = json.loads(content)
    assert listed["grpc_port"] == page_server.port and listed["needs_key"] is False
    assert listed["files"]["max_bytes"] == 1000 and ".po" in listed["files"]["suffixes"]
    models = {model["name"]: model for model in listed["models"]}
    assert status == 200 and list(models) == sorted(models) and len(models) == 5
    shouter = models["shouter"]
    assert shouter["labels"] == {"stable": "1"}
    assert [version["version"] for version in shouter["versions"]] == ["2", "1"]
    assert [version["has_card"] for version in shouter["versions"]] == [True, False]
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
        ("/web/answer.js", "text/javascript"),
        ("/web/calls.js", "text/javascript"),
        ("/web/card.js", "text/javascript"),
        ("/web/elements.js", "text/javascript"),
        ("/web/files.js", "text/javascript"),
        ("/web/server.js", "text/javascript"),
        ("/web/ways.js", "text/javascript"),
        ("/web/base.css", "text/css"),
        ("/web/style.css", "text/css"),
        ("/web/icon.svg", "image/svg+xml"),
        ("/web/models", "application/json"),
        ("/web/card?model=shouter", "application/json"),
        ("/v1/models/shouter", "application/json"),
        ("/nothing", "application/json"),
    ],
)
def test_every_response_is_protected(page_server, path, content_type):
    _, headers, _ = get(page_server, path)
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
def test_a_page_of_another_site_reads_no_answer(open_page, chromium, page_server, tmp_path):
    (tmp_path / "index.html").write_text("<!doctype html><title>Another site</title>")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=tmp_path)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as other:
        threading.Thread(target=other.serve_forever).start()
        try:
            chromium.open(f"http://127.0.0.1:{other.server_port}/")
        finally:
            other.shutdown()
    url = f"http://{page_server.rest_address}/v1/models/shouter:predict"
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
        page.run("document.querySelectorAll('details').forEach((box) => { box.open = true })")
        page.wait_for("document.querySelector('#card table')")
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
                .filter((element) => element.checkVisibility() && [...element.childNodes]
                  .some((node) => node.nodeType === 3 && node.data.trim()))
                .map((element) => {
                  const color = light(getComputedStyle(element).color);
                  const [dark, bright] = [color, light(ground(element))].sort((a, b) => a - b);
                  return [(bright + 0.05) / (dark + 0.05), element.textContent];
                });
            })()"""
        )
        assert len(ratios) > 15 and min(ratios)[0] >= 4.5, min(ratios)
    finally:
        chromium.resize(1200, 900)
