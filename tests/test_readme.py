"""What the README shows, works."""

import pathlib
import re

from pipeline import cli

README = pathlib.Path(__file__).parents[1] / "README.md"


def code_blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_the_functional_model_trains_saves_and_loads(tmp_path, monkeypatch):
    [block] = [block for block in code_blocks("python") if "keras.models.load_model" in block]
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(compile(block, "README.md", "exec"), names)
    assert (tmp_path / "copier.keras").is_file()
    loss = names["model"].evaluate(
        [names["ids"], names["positions"], names["ids"], names["positions"]], names["positions"]
    )
    assert 0 < loss < 10


def test_the_commands_parse():
    """Every `verbatim` line of the README is one that the command line understands."""
    lines = [line for block in code_blocks("sh") for line in block.splitlines() if "verbatim " in line]
    assert len(lines) >= 4
    for line in lines:
        words = line.split("verbatim ", 1)[1].rstrip(" &")
        arguments = [word.strip('"') for word in re.findall(r'"[^"]*"|\S+', words)]
        assert cli._parser().parse_args(arguments).command


def test_the_files_it_names_exist():
    for target in re.findall(r"\]\(([^)#]+)\)", README.read_text(encoding="utf-8")):
        assert (README.parent / target).exists(), target
