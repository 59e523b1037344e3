"""The scripts of `examples/`: each runs as it is, and checks itself that it copied.

They run on the backend of the tests; `make test` runs them on both.
"""

import importlib.util
import json
import pathlib
import re
import runpy
import sys

import keras
import pytest

ROOT = pathlib.Path(__file__).parents[1]
SCRIPTS = sorted((ROOT / "examples").glob("*.py"))
NOTEBOOK = ROOT / "docs" / "keras_hub.ipynb"


@pytest.fixture(autouse=True)
def settings_as_before(tmp_path, monkeypatch):
    """A script may choose the policy of its process."""
    monkeypatch.chdir(tmp_path)
    policy = keras.config.dtype_policy()
    yield
    keras.config.set_dtype_policy(policy)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_an_example_runs_and_copies(path, monkeypatch, capsys):
    text = path.read_text(encoding="utf-8")
    if "import keras_hub" in text:
        pytest.importorskip("keras_hub", exc_type=ImportError)
    monkeypatch.setattr(sys, "argv", [str(path)])
    runpy.run_path(str(path), run_name="__main__")
    printed = capsys.readouterr().out
    assert "->  " in printed
    # What it prints is not only looked at.
    assert re.search(r"\n    assert .*\boutput\b.* == ", text)
    if path.stem == "keras_hub_t5":
        assert without_numbers(printed) == without_numbers(printed_by_the_notebook())


def without_numbers(text):
    return re.sub(r"[-+\d.e]+", "#", text)


def printed_by_the_notebook():
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    return "".join(
        line
        for cell in cells
        if cell["cell_type"] == "code"
        for output in cell["outputs"]
        for line in output["text"]
    )


def test_the_notebook_is_the_script():
    """`python docs/_build/notebook_of_example.py` makes and runs it."""
    path = ROOT / "docs" / "_build" / "notebook_of_example.py"
    spec = importlib.util.spec_from_file_location("notebook_of_example", path)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    shown = [(cell["cell_type"], "".join(cell["source"])) for cell in cells]
    assert shown == made.cells_of(made.SCRIPT.read_text(encoding="utf-8"))
    assert len(shown) >= 10


def test_every_example_is_on_its_page():
    page = (ROOT / "docs" / "guides" / "layers.md").read_text(encoding="utf-8")
    linked = re.findall(r"\(\.\./\.\./examples/(\w+)\.py\)", page)
    assert sorted(set(linked)) == [path.stem for path in SCRIPTS] and len(SCRIPTS) >= 6
