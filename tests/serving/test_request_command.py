"""`verbatim request`, against a running server."""

import json
import os
import subprocess
import sys

import pytest

from pipeline.commands import main


@pytest.fixture
def said(capsys):
    """Function that runs `verbatim request`; returns status, standard output and error."""

    def call(*arguments):
        status = main.main(["request", *(str(argument) for argument in arguments)])
        return status, *capsys.readouterr()

    return call


@pytest.fixture
def file(tmp_path):
    """20 texts, one per line."""
    path = tmp_path / "texts"
    path.write_text("".join(f"text {number} %s\n" for number in range(20)), encoding="utf-8")
    return path


def copied(position):
    return f"  %s  <- source token {position} '%s' (copy probability 0.98)\n"


def test_texts_from_a_file(said, shared_server, file):
    # In batches: the server takes 16 texts in a request.
    arguments = ("--address", shared_server.address, "--batch-size", 8, "--file", file)
    expected = "".join(f"TEXT {number} %s\n{copied(2)}" for number in range(20))
    assert said(*arguments) == (0, expected, "")
    status, out, err = said(*arguments, "--n-best", "--json", "-")
    assert status == 0 and err.startswith(f"TEXT 0 %s\n{copied(2)}text 0 %s\n")
    beams = json.loads(out)
    assert [[answer["text"] for answer in beam] for beam in beams] == [
        [f"TEXT {number} %s", f"text {number} %s"] for number in range(20)
    ]


def test_texts_from_standard_input(shared_server, file):
    command = [
        sys.executable,
        "-m",
        "pipeline.commands.main",
        "request",
        "--address",
        shared_server.address,
        "--file",
        "-",
    ]
    done = subprocess.run(
        command, input="one\r\ntwo %s\n", capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, f"ONE\nTWO %s\n{copied(1)}", "")


def test_targets_are_scored(said, shared_server, tmp_path):
    (tmp_path / "targets").write_text("x\ny z\n")
    arguments = ("--address", shared_server.address, "--targets", tmp_path / "targets")
    lines = "-1.0000  (log-probability, 2 tokens)\n-1.5000  (log-probability, 3 tokens)\n"
    assert said(*arguments, "a", "b") == (0, lines, "")
    status, out, err = said(*arguments, "a", "b", "--json", "-")
    assert json.loads(out) == [
        {"log_probability": -1.0, "token_count": 2},
        {"log_probability": -1.5, "token_count": 3},
    ]
    status, out, err = said(*arguments, "a")
    assert status == 1 and "as many targets as sources; got 1 sources and 2 targets" in err


def test_a_client_that_shows_its_certificate(said, mutual_tls_server, certificate):
    key, own = certificate / "key.pem", certificate / "cert.pem"
    address = f"localhost:{mutual_tls_server.port}"
    arguments = ("--address", address, "a")
    shown = ("--tls-key", key, "--tls-certificate", own)
    assert said(*arguments, "--tls-ca", own, *shown) == (0, "A\n", "")
    for refused in (("--tls-ca", own), shown, ("--tls",)):
        status, out, err = said(*arguments, *refused, "--attempts", 1)
        assert status == 1 and out == ""
        assert err.startswith(f"verbatim: No server answers at {address} over TLS; check ")
    status, out, err = said(*arguments, "--tls-key", key)
    assert (status, out, err) == (1, "", "verbatim: TLS needs both a key and a certificate.\n")


def test_retries_and_waiting(said, scripted_server):
    arguments = ("--address", scripted_server.address, "a")
    scripted_server.script.append("RESOURCE_EXHAUSTED")
    status, out, err = said(*arguments, "--attempts", 1)
    assert status == 1 and "answered RESOURCE_EXHAUSTED" in err
    scripted_server.script.append("RESOURCE_EXHAUSTED")
    status, out, err = said(*arguments, "--attempts", 2)
    assert status == 0 and out.startswith("a\n")
    assert len(scripted_server.seen) == 3
    status, out, err = said("--address", "127.0.0.1:1", "--wait", "--timeout", 0.1, "a")
    assert err == "verbatim: The server at 127.0.0.1:1 did not answer within 0.1 seconds.\n"


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        ((), "Give the texts either as arguments or with --file FILE."),
        (("--file", "FILE", "a"), "Give the texts either as arguments or with --file FILE."),
        (("--file", "FILE"), "Line 2 of FILE is empty: remove it, or give a text."),
        (("--file", "nowhere"), "The text file nowhere does not exist."),
        (
            ("--attempts", 9, "a"),
            "attempts must be 1 to 5, which is the most that gRPC makes; got 9.",
        ),
        (("--batch-size", 0, "a"), "batch_size must be 1 or more; got 0."),
        (
            ("--continue", "--tags", "pos=A", "a"),
            "--tags are for models of pairs: a language model takes none.",
        ),
    ],
)
def test_calls_that_cannot_be_carried_out(said, tmp_path, monkeypatch, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "FILE").write_text("a\n \nb\n")
    assert said("--address", "127.0.0.1:1", *arguments) == (1, "", f"verbatim: {sentence}\n")


def test_a_text_that_is_refused_costs_the_others_nothing(said, shared_server, tmp_path):
    path = tmp_path / "texts"
    texts = ["x" * 101, "b", "c", "d", "y" * 102, "z" * 103, "g"]  # the server takes 100 bytes
    path.write_text("".join(f"{text}\n" for text in texts))
    arguments = ("--address", shared_server.address, "--batch-size", 2, "--file", path)
    status, out, err = said(*arguments, "--json", tmp_path / "answers")
    assert status == 1 and out == "B\nC\nD\nG\n"
    lines = err.splitlines()
    assert [line.split(": ")[1] for line in lines[:3]] == [
        f"Line {number} of {path}" for number in (1, 5, 6)
    ]
    assert "101 bytes" in lines[0] and "102 bytes" in lines[1]
    # The place in the request is not the caller's.
    assert lines[0].endswith(": source is 101 bytes long; a text may have at most 100.")
    assert lines[3:] == ["verbatim: 3 of 7 texts were refused."]
    answers = json.loads((tmp_path / "answers").read_text())
    assert [beam and beam[0]["text"] for beam in answers] == [None, "B", "C", "D", None, None, "G"]
    # What is no matter of a text ends at once, in a sentence.
    status, out, err = said(
        "--address", shared_server.address, "--tags", "pos=A", "--tags", "pos=B", "a", "b"
    )
    assert (status, out) == (1, "") and err.count("\n") == 1 and "refused" not in err


def test_what_was_answered_before_the_server_left_is_kept(said, scripted_server, tmp_path):
    scripted_server.script.extend(["a", "b", "INTERNAL"])
    arguments = (
        "--address",
        scripted_server.address,
        "--batch-size",
        1,
        "--json",
        tmp_path / "answers",
    )
    status, out, err = said(*arguments, "a", "b", "c", "d")
    assert (
        status == 1
        and out.startswith("a\n")
        and err.endswith("The 2 texts before it were answered.\n")
    )
    assert len(json.loads((tmp_path / "answers").read_text())) == 2


def test_an_encoding_that_lacks_characters_ends_nothing(shared_server):
    command = [sys.executable, "-W", "ignore", "-m", "pipeline.commands.main", "request"]
    command += ["--address", shared_server.address, "é %s", "ü"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"\\xe9 %s\n{copied(1)}\\xfc\n"
    command += ["--json", "-"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert done.stdout.isascii()
    assert [beam[0]["text"] for beam in json.loads(done.stdout)] == ["é %s", "ü"]
