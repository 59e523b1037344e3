"""The command: quick help, one sentence for whatever is wrong, and exit statuses."""

import ast
import pathlib
import subprocess
import sys

import pytest

from pipeline.commands import main, report
from pipeline.commands.command_error import CommandError
from pipeline.common.errors import VerbatimError
from pipeline.readers import DataError
from pipeline.reporting import page as report_page

ROOT = pathlib.Path(__file__).parents[3]
COMMANDS = (
    *("run", "evaluate", "score", "serve", "request", "compile", "report", "compare", "clean"),
)
RECIPE = "localization_en_fr"


def test_help_imports_neither_tensorflow_nor_tfx():
    code = f"""
import contextlib, io, sys
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
heavy = {{"tensorflow", "tfx", "keras", "numpy", "apache_beam", "grpc", "kfp"}} & set(sys.modules)
sys.exit(f"imported: {{heavy}}" if heavy else 0)
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
    "command, meant", [("tran", "train"), ("evalute", "evaluate"), ("predict", "request")]
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


def test_each_error_type_of_the_project_becomes_a_sentence():
    """Reads the sources: a new error type cannot be forgotten here."""
    bases = {}
    for package in ("pipeline", "serving", "components", "keras_models"):
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef) and node.name.endswith("Error"):
                    names = {ast.unparse(base).rpartition(".")[2] for base in node.bases}
                    assert bases.setdefault(node.name, names) == names, f"two are {node.name}"
    assert {
        "DataError",
        "RecipeError",
        "RunError",
        "ScoringError",
        "ReportError",
        "ModelError",
    } <= set(bases)
    assert {"ServeError", "RequestError", "CatalogueError", "CommandError"} <= set(bases)
    assert bases.pop(VerbatimError.__name__) == {"Exception"}
    ours = {VerbatimError.__name__}
    while new := {name for name, names in bases.items() if names & ours} - ours:
        ours |= new
    assert set(bases) <= ours, set(bases) - ours
    for error in (DataError, report_page.ReportError, CommandError):
        assert issubclass(error, VerbatimError)


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


def test_a_fault_of_our_own_keeps_its_traceback(monkeypatch):
    def fail(options):
        raise KeyError("oops")

    monkeypatch.setattr(report, "run", fail)
    with pytest.raises(KeyError):
        main.main(["report", "x"])
