"""The reference of the components is made from their specs, and has all of them."""

import importlib
import pathlib

from tfx.dsl.components.base import base_component

from components import component_reference

ROOT = pathlib.Path(__file__).parents[2]


def test_the_page_is_what_the_specs_say():
    page = (ROOT / "docs" / "reference" / "components.md").read_text("utf-8")
    command = "python -m components.component_reference > docs/reference/components.md"
    assert page == component_reference.markdown(), f"run `{command}`"


def test_every_component_is_there():
    ours = set()
    for path in (ROOT / "components").glob("*/component.py"):
        name = f"components.{path.parent.name}.component"
        for value in vars(importlib.import_module(name)).values():
            if isinstance(value, type) and value.__module__ == name:
                ours |= {value} if issubclass(value, base_component.BaseComponent) else set()
    assert len(ours) > 9 and ours == set(component_reference.COMPONENTS)


def test_every_output_is_described():
    """TFX's own Evaluator describes its outputs itself; of Transform's others ours writes none."""
    for component in component_reference.COMPONENTS:
        described = dict(
            component_reference._described(component.__doc__.partition("contains:")[2])
        )
        outputs = set(component.SPEC_CLASS.OUTPUTS)
        if component.__name__ == "TextTransform":
            outputs = {"transform_graph", "transformed_examples"}
        if component.__name__ != "Evaluator":
            assert set(described) == outputs, component


def test_types_and_needs():
    page = component_reference.markdown()
    section = page.partition("## Lexicon\n")[2].partition("\n## ")[0]
    for row in (
        "| `examples` | channel |  | channel of the examples; its split `train` is learned from |",
        "| `subwords` | `File` | no |",
        "| `examples` | `Examples` | yes |",
        "| `lexicon_config` | `str` | yes |",
    ):
        assert row in section, row
    assert "| `lexicon` | `File` | a folder with `lexicon.tsv`" in section
