"""Progress on the terminal: lines as they are said, bars where they can be drawn."""

import io
import logging
import os
import pty
import re
import subprocess
import sys

import pytest

from pipeline.commands import progress_display
from pipeline.common import progress

PROGRAM = """
import sys, time
from pipeline.commands import progress_display
from pipeline.common import progress

with progress_display.shown_on(sys.stdout):
    progress.say("[1/2] Trainer")
    with progress.indented(), progress.counted("training", 30, "updates") as advance:
        for update in range(30):
            time.sleep(0.03)
            advance()
            if update == 20:
                progress.say("epoch [1]: done")
    progress.say("[2/2] Pusher")
"""


@pytest.fixture
def clock(monkeypatch):
    """The time that the display sees, in a list of one number."""
    now = [0.0]
    monkeypatch.setattr(progress_display.time, "monotonic", lambda: now[0])
    return now


def test_sentences_are_lines_and_details_are_indented(capsys):
    stream = io.StringIO()
    with progress_display.shown_on(stream):
        progress.say("[1/2] Trainer")
        with progress.indented():
            progress.say("epoch 1")
        progress.warn("Careful.")
    progress.say("nobody listens")
    assert stream.getvalue() == "[1/2] Trainer\n  epoch 1\n"
    captured = capsys.readouterr()
    assert captured.err == "verbatim: Careful.\n" and captured.out == ""
    assert progress.LOGGER.level == logging.NOTSET


def test_a_third_party_that_logs_does_not_repeat_our_lines(capsys, monkeypatch):
    """`logging.warning` adds a handler to a root logger that has none."""
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    with progress_display.shown_on(sys.stdout):
        logging.info("of no interest")
        logging.warning("their warning")
        progress.say("a sentence")
        progress.warn("a warning")
    assert capsys.readouterr() == ("a sentence\n", "their warning\nverbatim: a warning\n")
    assert not root.handlers


def test_long_work_has_a_line_now_and_then_where_no_bar_can_be_drawn(clock):
    stream = io.StringIO()
    with progress_display.shown_on(stream):
        for done in range(0, 101):
            clock[0] = float(done)
            step = progress.Step("decoding", 10 * done, 1000, "texts", finished=done == 100)
            progress.LOGGER.log(progress.STEP, "step", extra={"step": step, "depth": 0})
    lines = stream.getvalue().splitlines()
    assert lines[0] == "decoding: 100 of 1000 texts, 1 min 30 s left"
    assert lines[1] == "decoding: 200 of 1000 texts, 1 min 20 s left"
    assert lines[-1] == "decoding: 1000 of 1000 texts" and len(lines) == 10


def test_short_work_has_no_line(clock):
    stream = io.StringIO()
    with progress_display.shown_on(stream), progress.counted("decoding", 2, "texts") as advance:
        advance(2)
    assert stream.getvalue() == ""


@pytest.mark.parametrize("terminal, bars", [("xterm", True), ("dumb", False)])
def test_a_terminal_shows_a_bar_that_goes_away(terminal, bars):
    reading, writing = pty.openpty()
    environment = {**os.environ, "TERM": terminal, "COLUMNS": "80", "PYTHONPATH": os.getcwd()}
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdout=writing, stdin=writing, env=environment
    ) as program:
        os.close(writing)
        said = b""
        while True:
            try:
                part = os.read(reading, 4096)
            except OSError:  # the program has ended
                break
            if not part:
                break
            said += part
        os.close(reading)
    assert program.returncode == 0
    text = said.decode()
    assert ("of 30 updates" in text) == bars and ("━" in text) == bars
    # The sentences stay, as they were said.
    shown = re.sub(r"\x1b\[\?25[hl]", "", text)  # the cursor goes and comes back
    lines = [line.rpartition("\x1b[2K")[2].strip("\r") for line in shown.split("\n")]
    for sentence in ("[1/2] Trainer", "  epoch [1]: done", "[2/2] Pusher"):
        assert sentence in lines
