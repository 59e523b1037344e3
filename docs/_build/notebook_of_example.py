"""Makes `docs/keras_hub.ipynb` of `examples/keras_hub_t5.py`, and runs it.

    python docs/_build/notebook_of_example.py

The script is in the percent format: `# %% [markdown]` begins a text, `# %%` a program.
"""

import os
import pathlib
import re
import tempfile

ROOT = pathlib.Path(__file__).parents[2]
SCRIPT = ROOT / "examples" / "keras_hub_t5.py"
NOTEBOOK = ROOT / "docs" / "keras_hub.ipynb"


def cells_of(script: str) -> list[tuple[str, str]]:
    """Returns the cells of a script in the percent format: kind and source of each."""
    parts = re.split(r"^# %%( \[markdown\])?\n", script, flags=re.MULTILINE)
    cells = []
    for mark, text in zip(parts[1::2], parts[2::2]):
        text = text.strip("\n")
        if mark:
            cells.append(("markdown", re.sub(r"^# ?", "", text, flags=re.MULTILINE)))
        else:
            cells.append(("code", text))
    return cells


def main() -> None:
    """Writes the notebook with what it printed."""
    import nbclient
    import nbformat

    notebook = nbformat.v4.new_notebook()
    make = {"markdown": nbformat.v4.new_markdown_cell, "code": nbformat.v4.new_code_cell}
    for number, (kind, source) in enumerate(cells_of(SCRIPT.read_text("utf-8"))):
        notebook.cells.append(make[kind](source, id=f"cell-{number}"))
    os.environ["PYTHONPATH"] = str(ROOT)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with tempfile.TemporaryDirectory() as folder:
        client = nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3")
        client.execute(cwd=folder)
    for cell in notebook.cells:
        cell.metadata.clear()
        if cell.cell_type == "code":
            # Warnings of the machine that ran it are not the notebook's.
            cell.outputs = [one for one in cell.outputs if one.get("name") == "stdout"]
    # Nor is its Python.
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    nbformat.write(notebook, NOTEBOOK)


if __name__ == "__main__":
    main()
