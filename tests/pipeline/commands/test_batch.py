"""`verbatim batch`: many files through Beam, each by itself."""

import gzip
import json
import os

import apache_beam as beam
import grpc
import pytest

from pipeline.commands import batch_pipeline, main, translated
from pipeline.runners import engine_check
from tests.engines.clusters import free_port


def test_files_keep_names_order_and_format_and_a_failed_one_is_done_again(model, folder, capsys):
    (folder / "in").mkdir()
    lines = [f"line {number} %s" for number in range(70)]
    (folder / "in" / "part-0").write_text("\n".join([*lines, "", "end"]) + "\n")
    (folder / "in" / "part-1.jsonl.gz").write_bytes(gzip.compress(b'{"source": "x"}\n'))
    (folder / "in" / "part-2").write_bytes(b"caf\xe9\n")
    command = ["batch", "in/part-*", "--model", model, "--output", "out", "--json", "facts.json"]
    assert main.main(command) == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("verbatim: in/part-2 failed: in/part-2 is not UTF-8")
    assert not (folder / "out" / "part-2").exists()
    expected = [*(f"LINE {number} %s" for number in range(70)), "", "END"]
    assert (folder / "out" / "part-0").read_text() == "\n".join(expected) + "\n"
    made = gzip.decompress((folder / "out" / "part-1.jsonl.gz").read_bytes())
    assert json.loads(made) == {"source": "x", "target": "X"}

    # Again: only what is missing is made.
    (folder / "in" / "part-2").write_text("a\n1 2 3 4 5 6 7 8 9\n")
    kept = (folder / "out" / "part-0").stat().st_ino
    assert main.main(command) == 1
    printed = capsys.readouterr()
    assert "verbatim: Line 2 of in/part-2: A text has more than 8 tokens" in printed.err
    assert (folder / "out" / "part-2").read_text() == "A\n\n"
    assert (folder / "out" / "part-0").stat().st_ino == kept
    facts = json.loads((folder / "facts.json").read_text())["files"]
    assert [fact["translated"] for fact in facts] == [71, 1, 1]
    assert [len(fact["refused"]) for fact in facts] == [0, 0, 1]


def test_a_file_is_tried_again_and_made_again_if_its_input_is_another(
    model, folder, monkeypatch, capsys
):
    (folder / "a.txt").write_text("x\n")
    shard = batch_pipeline.Shard("a.txt", "b.txt", "text")
    answer, calls = batch_pipeline.answer_texts, []

    def sometimes(*arguments):
        calls.append(1)
        if len(calls) == 1:
            raise OSError("the disk is away")
        return answer(*arguments)

    monkeypatch.setattr(batch_pipeline, "answer_texts", sometimes)
    work = batch_pipeline.Work(model, translated.Shown(scores=True), attempts=2)
    for expected in (2, 2):
        assert list(batch_pipeline.TranslateFile(work).process(shard)) == ["b.txt"]
        assert len(calls) == expected
    record = {"line": 1, "source": "x", "target": "X", "score": -1.0}
    assert json.loads((folder / "b.txt").read_text()) == record
    (folder / "a.txt").write_text("y\n")
    list(batch_pipeline.TranslateFile(work).process(shard))
    assert len(calls) == 3 and json.loads((folder / "b.txt").read_text())["target"] == "Y"


def test_what_cannot_be_done_is_refused_before_the_work(model, folder, capsys):
    for name in ("a", "b"):
        (folder / name).mkdir()
        (folder / name / "x.txt").write_text("x\n")
    assert main.main(["batch", "nothing*", "--model", model, "--output", "out"]) == 1
    assert "No file matches nothing*." in capsys.readouterr().err
    assert main.main(["batch", "*/x.txt", "--model", model, "--output", "out"]) == 1
    assert "would be written under the same name" in capsys.readouterr().err
    assert main.main(["batch", "a/x.txt", "--model", model, "--output", "a"]) == 1
    assert "--output is the folder of a/x.txt" in capsys.readouterr().err
    assert (folder / "a" / "x.txt").read_text() == "x\n"


def test_an_engine_translates(model, folder, job_server, workers, capsys):
    """Its workers were started in another folder, so relative paths are made absolute."""
    (folder / "in").mkdir()
    for name in ("a", "b"):
        (folder / "in" / f"{name}.txt").write_text(f"{name} %s\n")
    command = ["batch", "in/*.txt", "--model", os.path.relpath(model), "--output", "out"]
    command += ["--engine", "flink", "--master", job_server, "--workers", workers]
    assert main.main(command) == 0
    assert (folder / "out" / "b.txt").read_text() == "B %s\n"
    assert sorted(path.name for path in (folder / "out").glob("*.txt")) == ["a.txt", "b.txt"]
    assert "INFO" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "error, expected",
    [
        (grpc.FutureTimeoutError(), "because the job server of the engine has ended"),
        (RuntimeError("Pipeline failed in state FAILED: x\ny"), "(Pipeline failed in state FAILED"),
    ],
)
def test_an_engine_that_fails_ends_in_a_sentence(
    model, folder, monkeypatch, capsys, error, expected
):
    (folder / "a.txt").write_text("a\n")
    monkeypatch.setattr(engine_check, "check", lambda *_: None)

    def fail(*_, **__):
        raise error

    monkeypatch.setattr(beam.Pipeline, "run", fail)
    command = ["batch", "a.txt", "--model", model, "--output", "out", "--engine", "flink"]
    assert main.main([*command, "--master", "localhost:1"]) == 1
    (line,) = capsys.readouterr().err.splitlines()[-1:]
    assert line.startswith("verbatim: The translation failed") and expected in line
    assert line.endswith("run the same command again; finished files are kept.")


def test_an_engine_that_does_not_answer_is_named(model, folder, monkeypatch, capsys):
    (folder / "a.txt").write_text("a\n")
    monkeypatch.setattr(engine_check, "_ANSWER", 1)
    command = ["batch", "a.txt", "--model", model, "--output", "out"]
    assert main.main([*command, "--engine", "spark"]) == 4
    assert "--engine spark needs --master" in capsys.readouterr().err
    master = f"localhost:{free_port()}"
    assert main.main([*command, "--engine", "spark", "--master", master]) == 4
    assert f"The job server of spark at {master} does not answer" in capsys.readouterr().err
