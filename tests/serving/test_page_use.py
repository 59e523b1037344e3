"""The web page in a real browser: what a person types, points at and reads."""

import shutil

import pytest

from serving.server import ModelServer, ServerSettings
from tests.browser import needs_chromium, until
from tests.serving.page_reading import SOURCE, WORDS, choose, texts, wait_for_answer

ENTER, TAB, END, HOME, LEFT, UP, RIGHT = 13, 9, 35, 36, 37, 38, 39


# What a person does


@needs_chromium
def test_a_text_is_typed_and_answered(open_page, page_server):
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
        all(url.startswith(f"http://{page_server.rest_address}/") for url in page.requests)
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
    with ModelServer(
        model_folder, ServerSettings(port=0, rest_port=0, poll_seconds=0.05)
    ) as server:
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
        ({"model": "other"}, "This server has no model “other”; choose one from the list."),
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
def test_a_server_that_is_gone_is_one_sentence(chromium, shared_folder):
    with ModelServer(shared_folder, ServerSettings(port=0, rest_port=0)) as server:
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
        "This page cannot use this version; its signatures are __saved_model_init_op, count,"
    )
    assert page.run("document.querySelector('#send').disabled")
