"""The command: quick help, one sentence for whatever is wrong, and exit statuses."""

import ast
import importlib
import json
import pathlib
import subprocess
import sys

import pytest

from pipeline.commands import main, report, run
from pipeline.commands.command_error import CommandError
from pipeline.common.errors import VerbatimError
from pipeline.metrics.base import ScoringError
from pipeline.readers import DataError
from pipeline.runners.local_runner import RunError
from serving.errors import ServeError

ROOT = pathlib.Path(__file__).parents[3]
COMMANDS = (
    *("run", "evaluate", "score", "serve", "request", "compile", "report", "compare", "clean"),
)
RECIPE = "localization_en_fr"


def test_help_imports_only_two_small_packages():
    """`docs/guides/serving.md` names them for `verbatim request` beside the client alone."""
    code = f"""
import contextlib, io, sys
before = set(sys.modules)
from pipeline.commands import main
for arguments in [["--help"], *([command, "--help"] for command in {COMMANDS!r})]:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        try:
            main.main(arguments)
        except SystemExit as end:
            assert end.code == 0, arguments
    assert "usage: verbatim" in out.getvalue(), arguments
    assert all(command in out.getvalue() for command in {COMMANDS!r}) or len(arguments) == 2
imported = {{name.partition(".")[0] for name in set(sys.modules) - before}}
# tomli: Python 3.10 has no tomllib.
others = imported - set(sys.stdlib_module_names) - {{"pipeline", "serving", "regex", "tomli"}}
sys.exit(f"imported: {{others}}" if others else 0)
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


@pytest.mark.parametrize(
    "arguments", [[], ["frobnicate"], ["run"], ["run", RECIPE], ["serve", "--port", "x"], ["score"]]
)
def test_a_wrong_call_is_explained_by_argparse(arguments, capsys):
    with pytest.raises(SystemExit) as end:
        main.main(arguments)
    assert end.value.code == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.startswith("usage: verbatim")
    assert captured.err.splitlines()[-1].startswith("verbatim")


@pytest.mark.parametrize(
    "command, meant", [("tran", "train"), ("evalute", "evaluate"), ("ask", "request")]
)
def test_an_unknown_command_gets_a_suggestion(command, meant, capsys):
    with pytest.raises(SystemExit) as end:
        main.main([command, "x"])
    assert end.value.code == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert f"There is no command '{command}'; did you mean '{meant}'? The commands are" in last


def test_the_version(capsys):
    with pytest.raises(SystemExit) as end:
        main.main(["--version"])
    assert end.value.code == 0
    name, version = capsys.readouterr().out.strip().split(" ", 1)
    assert name == "verbatim" and version


def test_train_is_run(capsys):
    arguments = ["--data", "/absent.tsv", "--output", "/absent"]
    for command in ("run", "train"):
        assert main.main([command, RECIPE, *arguments]) == 1
        assert "/absent.tsv" in capsys.readouterr().err


def test_started_as_a_module_errors_are_sentences_too():
    arguments = ["compile", RECIPE, "--output", "p.yaml", "--component-image", "Trainer"]
    command = [sys.executable, "-m", "pipeline.commands.main", *arguments]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 1 and result.stdout == ""
    assert result.stderr == (
        "verbatim: --component-image needs ID=IMAGE, for example Trainer=repository/image; got "
        "'Trainer'.\n"
    )


def is_error(node):
    """Whether a class, by its name or by those of its bases, is that of an exception."""
    names = [node.name, *(ast.unparse(base) for base in node.bases)]
    return any(name.endswith(("Error", "Exception")) for name in names)


def test_each_error_type_of_the_project_becomes_a_sentence():
    """Reads the sources: a new error type cannot be forgotten here."""
    found = []
    for package in ("pipeline", "serving", "components", "keras_models"):
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef) and is_error(node):
                    module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
                    module = module.removesuffix(".__init__")
                    found.append(getattr(importlib.import_module(module), node.name))
    assert {DataError, RunError, ScoringError, CommandError, ServeError, VerbatimError} <= set(
        found
    )
    assert len({error.__name__ for error in found}) == len(found)
    # What never reaches a user: it becomes a rejected record, a part of a sentence, or an answer.
    within = {"IcuError", "MoError", "PoError", "PatternError", "RequestRefused", "_RepeatedKey"}
    others = {error.__name__ for error in found if not issubclass(error, VerbatimError)}
    assert others == within


@pytest.mark.parametrize(
    "error, status, sentence",
    [
        (DataError("The data are bad."), 1, "verbatim: The data are bad.\n"),
        (
            PermissionError(13, "Permission denied", "/x/y"),
            1,
            "verbatim: /x/y cannot be used: Permission denied.\n",
        ),
        (KeyboardInterrupt(), 130, "verbatim: interrupted.\n"),
        (BrokenPipeError(32, "Broken pipe"), 141, ""),
    ],
)
def test_how_errors_end(error, status, sentence, monkeypatch, capsys):
    def fail(options):
        raise error

    monkeypatch.setattr(report, "run", fail)
    assert main.main(["report", "x"]) == status
    assert capsys.readouterr().err == sentence


def test_an_interrupted_run_says_how_to_resume(monkeypatch, capsys):
    def interrupt(options):
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "run", interrupt)
    assert main.main(["run", "rarest_word", "--output", "runs/x"]) == 130
    expected = "verbatim: interrupted. Run the same command again to resume."
    assert capsys.readouterr().err == f"{expected}\n"
    on_engine = ["--engine", "spark", "--master", "localhost:1"]
    assert main.main(["run", "rarest_word", "--output", "runs/x", *on_engine]) == 130
    kept = " Spark may still work on its last job: cancel it in Spark's web page."
    assert capsys.readouterr().err == f"{expected}{kept}\n"


@pytest.mark.parametrize(
    "fault",
    [
        KeyError("oops"),
        ValueError("oops"),
        RuntimeError("oops"),
        json.JSONDecodeError("oops", "x", 0),
    ],
)
def test_a_fault_of_our_own_keeps_its_traceback(fault, monkeypatch):
    def fail(options):
        raise fault

    monkeypatch.setattr(report, "run", fail)
    with pytest.raises(type(fault), match="oops") as caught:
        main.main(["report", "x"])
    assert caught.value is fault
