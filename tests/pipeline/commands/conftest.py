"""Commands that must fail, and files for them."""

import pytest

from pipeline.commands import main


@pytest.fixture
def refused(capsys):
    """Function of arguments: runs a command that must fail, and returns its sentence."""

    def call(*arguments):
        assert main.main([str(argument) for argument in arguments]) == 1
        captured = capsys.readouterr()
        assert captured.out == ""
        lines = [line for line in captured.err.splitlines() if line.startswith("verbatim: ")]
        assert len(lines) == 1 and captured.err.strip().splitlines()[-1] == lines[0], captured.err
        assert "Traceback" not in captured.err
        sentence = lines[0].removeprefix("verbatim: ")
        assert sentence[-1] in ".?" and not sentence.endswith("..")
        return sentence

    return call


@pytest.fixture
def texts(tmp_path):
    """Files of references, outputs and sources, and a TSV of pairs."""
    for name, lines in {
        "references": ["le chat %s", "un chien"],
        "outputs": ["le chat %s", "le chien"],
        "sources": ["the cat %s", "a dog"],
        "short": ["le chat"],
        "pairs.tsv": ["the cat\tle chat", "a dog\tun chien"],
    }.items():
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A folder with a model that shouts, of at most 8 words."""
    from tests.serving.shouter import Shouter

    folder = tmp_path_factory.mktemp("models") / "shouter"
    Shouter("").save(folder / "3")
    return str(folder)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path
