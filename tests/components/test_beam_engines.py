"""Our own Beam work on several engines: the same records, and the same bytes of the files."""

import pytest

from components.lexicon import executor as lexicon_executor
from components.lexicon.component import Lexicon
from components.vocabulary import executor as vocabulary_executor
from components.vocabulary.component import Vocabulary
from pipeline.recipes import loading, views
from tests.components.test_parallel_text_example_gen import run as run_ingest

RECIPE = loading.load_recipe(
    "localization_en_fr",
    [
        "data.format=tsv",
        "data.eval_share=0.2",
        "data.test_share=0.2",
        "data.max_rejected_share=0.5",
        "lexicon.kind=learned",
        "lexicon.model1_iterations=2",
        "lexicon.diagonal_iterations=1",
        "vocabulary.min_count=1",
    ],
)
#: Runs a test with the options of each runner that needs no cluster, but for the one in memory.
ON_OTHER_RUNNERS = pytest.mark.parametrize(
    "beam_args",
    [
        ["--direct_running_mode=multi_processing", "--direct_num_workers=2"],
        ["--runner=BundleBasedDirectRunner"],
    ],
    ids=["two processes", "bundles"],
)
COLOURS = {"red": "rouge", "blue": "bleu", "green": "vert", "white": "blanc"}
THINGS = {"file": "fichier", "page": "page", "image": "image", "folder": "dossier"}


def write_data(folder):
    """Two files that share pairs, with a record that cannot be read."""
    folder.mkdir()
    rows = [
        f"open the {colour} {thing} {number}\touvrir {THINGS[thing]} {COLOURS[colour]} {number}"
        for number in range(12)
        for colour in COLOURS
        for thing in THINGS
    ]
    (folder / "a.tsv").write_text("\n".join(rows) + "\n", "utf-8")
    (folder / "b.tsv").write_text("\n".join([*rows[::5], "only one column"]) + "\n", "utf-8")
    return folder


def work(data, output, beam_args):
    """Runs ingestion, vocabulary and lexicon;
    returns (records of each split, rejects, counts, bytes of each other file).
    """
    from tfx.types import Channel, standard_artifacts
    from tfx.types.experimental import simple_artifacts

    output.mkdir()
    ingested = run_ingest(data, output, RECIPE.data, beam_args)
    examples = standard_artifacts.Examples()
    examples.uri, examples.split_names = str(output / "examples"), '["train", "eval", "test"]'
    given = {"examples": [examples]}
    components = {
        "vocabulary": (Vocabulary, RECIPE.vocabulary, vocabulary_executor),
        "lexicon": (Lexicon, RECIPE.lexicon, lexicon_executor),
    }
    files = {}
    for name, (component_class, config, module) in components.items():
        artifact = simple_artifacts.File()
        artifact.uri = str(output / name)
        channels = [Channel(type=type(artifacts[0])) for artifacts in given.values()]
        component = component_class(
            *channels, config=config, settings=views.vocabulary_settings(RECIPE)
        )
        context = module.Executor.Context(
            beam_pipeline_args=list(beam_args), tmp_dir=str(output), unique_id="1"
        )
        module.Executor(context).Do(given, {name: [artifact]}, component.exec_properties)
        given[name] = [artifact]
        files.update(
            {f"{name}/{path.name}": path.read_bytes() for path in sorted((output / name).iterdir())}
        )
    return *ingested, files


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_data(tmp_path_factory.mktemp("data") / "pairs")


@pytest.fixture(scope="module")
def in_memory(data, tmp_path_factory):
    return work(data, tmp_path_factory.mktemp("in_memory") / "output", ())


def assert_same(found, expected):
    assert expected[2]["by_reason"] == {"duplicate": 39, "missing column": 1}
    assert set(expected[3]) >= {"vocabulary/source_vocabulary.txt", "lexicon/lexicon.tsv"}
    assert found == expected


@pytest.mark.slow
@ON_OTHER_RUNNERS
def test_engines_give_the_same(data, in_memory, tmp_path, beam_args):
    assert_same(work(data, tmp_path / "output", beam_args), in_memory)
