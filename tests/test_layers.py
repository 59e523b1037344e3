"""Imports point down: the order of the packages, and no circle between files."""

import pathlib

import grimp
import pytest

#: The order of the packages, lowest first: a package imports only from those before it. The
#: components stand in the middle of `pipeline`: its lower part is what they are made of, its upper
#: part puts them together.
LAYERS = (
    "serving",
    "keras_models",
    "pipeline.common",
    "pipeline.public_corpora",
    "pipeline.recipes",
    "pipeline.text",
    "pipeline.readers",
    "pipeline.documents",
    "pipeline.metrics",
    "pipeline.lexicons",
    "pipeline.features",
    "pipeline.training",
    "pipeline.export",
    "pipeline.evaluation",
    "pipeline.reporting",
    "pipeline.tasks",
    "pipeline.entry_points",
    "components",
    "pipeline.graph",
    "pipeline.runners",
    "pipeline.commands",
)
#: The order within `keras_models`.
MODEL_LAYERS = ("layers", "heads", "decoding", "models")


@pytest.fixture(scope="module")
def graph():
    """Every import of every file, those inside functions too."""
    return grimp.build_graph("serving", "keras_models", "pipeline", "components", cache_dir=None)


def layer_of(module):
    """Returns the place of a module's package in `LAYERS`."""
    if module == "pipeline":
        module = "pipeline.common"
    return next(
        (
            place
            for place, layer in enumerate(LAYERS)
            if module == layer or module.startswith(f"{layer}.")
        ),
        None,
    )


def imports(graph):
    """Yields (importer, imported) for each import between our files."""
    for importer in sorted(graph.modules):
        for imported in sorted(graph.find_modules_directly_imported_by(importer)):
            yield importer, imported


def test_every_file_is_in_a_layer(graph):
    without = {module for module in graph.modules if layer_of(module) is None}
    assert not without, f"add to LAYERS, or move: {sorted(without)}"


def test_imports_inside_functions_are_seen(graph):
    """All that follows would hold of a graph without them."""
    assert graph.direct_import_exists(
        importer="pipeline.runners.local_runner", imported="pipeline.graph"
    )
    source = (pathlib.Path(__file__).parents[1] / "pipeline/runners/local_runner.py").read_text()
    assert "\n    from pipeline import graph\n" in source


def test_imports_point_down(graph):
    upward = [pair for pair in imports(graph) if layer_of(pair[0]) < layer_of(pair[1])]
    assert not upward, "\n".join(f"{importer} imports {imported}" for importer, imported in upward)


def test_the_server_and_the_layers_stand_alone(graph):
    for importer, imported in imports(graph):
        for alone in ("serving", "keras_models"):
            if importer.split(".")[0] == alone:
                assert imported.split(".")[0] == alone, f"{importer} imports {imported}"


def test_imports_within_keras_models_point_down(graph):
    def place(module):
        folder = module.split(".")[1] if "." in module else ""
        return MODEL_LAYERS.index(folder) if folder in MODEL_LAYERS else None

    for importer, imported in imports(graph):
        if importer.startswith("keras_models.") and imported.startswith("keras_models."):
            upper, lower = place(importer), place(imported)
            if upper is not None and lower is not None:
                assert lower <= upper, f"{importer} imports {imported}"


def test_no_files_import_each_other(graph):
    circles = []
    for module in sorted(graph.modules):
        # A chain from a file back to itself; the shortest says what to cut.
        for imported in graph.find_modules_directly_imported_by(module):
            chain = graph.find_shortest_chain(imported, module)
            if chain:
                circles.append(" -> ".join((module, *chain)))
    assert not circles, "\n".join(circles)
