"""The examples in docstrings outside `keras_models` do what they say.

`help()` shows them to people who paste them into a fresh interpreter, so they import what they use.
"""

import ast
import doctest
import pathlib

import pytest

from tests.docstring_examples import assert_holds, names_with_examples

ROOT = pathlib.Path(__file__).parents[1]
PACKAGES = ("pipeline", "components", "serving", "benchmarks")


def examples():
    """Returns the docstrings with examples of every file; no file is imported for it."""
    parser = doctest.DocTestParser()
    found = []
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            if ">>>" not in text:
                continue
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            for node in ast.walk(ast.parse(text)):
                if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                    continue
                name = module if isinstance(node, ast.Module) else f"{module}.{node.name}"
                docstring = ast.get_docstring(node) or ""
                found.append(parser.get_doctest(docstring, {}, name, str(path), 0))
    return [example for example in found if example.examples]


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.name)
def test_an_example_holds(example):
    assert_holds(example)


def test_what_others_import_has_an_example():
    with_examples = names_with_examples(examples())
    assert {"format_answer", "load_recipe", "protected_tokens", "score"} <= with_examples
