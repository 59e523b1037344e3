"""What a test reads of the web page in a browser, and what it chooses there."""

import json

# The words of the source and of the answer, as JavaScript.
SOURCE = "document.querySelectorAll('#source-words .word')"
WORDS = "document.querySelectorAll('#answer-words .word')"


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
