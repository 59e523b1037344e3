"""Measures how time and memory of the Beam components grow with the corpus.

    python -m benchmarks.growth.corpus translation_en_ja --data PATH --output DIR --pairs
    50000,500000 --components ingest,statistics,vocabulary,lexicon,transform,evaluation

The corpus is two line-aligned files of real text, repeated up to each size: every repetition after
the first has numbers of its own appended to both sides, so that no pair is a duplicate, the hash
divides all of them, and the vocabulary grows as slowly as that of real text. What is evaluated is
the test split, a fiftieth of the pairs, by a tiny model that has learned nothing: how the Evaluator
grows does not ask what its model says. Each component runs at each size in a process of its own.
The table says how long it worked, and the most memory that process and its descendants had resident
together, sampled every 0.2 seconds; DIR/growth.json keeps the same facts, DIR/growth.svg draws
them. `--beam OPTION` is an option for Beam, as in `verbatim run`.
"""

import argparse
import contextlib
import dataclasses
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

from benchmarks.growth import exponents
from pipeline.common import tensorflow_settings
from pipeline.recipes import loading

COMPONENTS = ("ingest", "statistics", "vocabulary", "lexicon", "transform", "evaluation")
# What evaluation needs and no component of Beam makes; it is not measured.
_MODEL = "model"
_TINY_MODEL = {
    "model.hidden_size": 32,
    "model.embedding_size": 32,
    "decoding.beam_size": 1,
    "decoding.n_best": 1,
    "decoding.max_length_factor": 0.0,
    "decoding.max_length_offset": 12,
}
_SAMPLE_SECONDS = 0.2


def grow(source_path, target_path, folder, pairs):
    """Writes line-aligned files `train.LANGUAGE` of a given number of pairs.

    Args:
        source_path, target_path: files of real text; their extensions are the languages.
        folder: where the corpus goes; its other files stay.
        pairs: how many pairs.
    """
    folder.mkdir(parents=True, exist_ok=True)
    texts = [path.read_text(encoding="utf-8").splitlines() for path in (source_path, target_path)]
    with (
        (folder / f"train{source_path.suffix}").open("w", encoding="utf-8") as sources,
        (folder / f"train{target_path.suffix}").open("w", encoding="utf-8") as targets,
    ):
        for number, (source, target) in enumerate(
            itertools.islice(itertools.cycle(zip(*texts)), pairs)
        ):
            repetition = number // len(texts[0])
            added = f" {repetition} {number % 1000}" if repetition else ""
            sources.write(f"{source}{added}\n")
            targets.write(f"{target}{added}\n")


def work(component, recipe, data, output, beam_args):
    """Runs one component's executor;
    what it reads of others, which ran before, lies in the same output folder.

    Args:
        component: one of `COMPONENTS`.
        recipe: a `Recipe`.
        data: folder of the corpus.
        output: folder of the artifacts, one for each corpus.
        beam_args: options for Beam.
    """
    from tfx.components import StatisticsGen
    from tfx.components.statistics_gen import executor as statistics
    from tfx.components.util import examples_utils
    from tfx.proto import example_gen_pb2
    from tfx.types import standard_artifacts
    from tfx.types.experimental import simple_artifacts

    from components.evaluator import component as evaluator
    from components.lexicon import component as lexicon
    from components.parallel_text_example_gen import executor as ingest
    from components.text_transform import component as transform
    from components.vocabulary import component as vocabulary
    from pipeline.tasks import task_of

    if component == _MODEL:
        export_model(recipe, output)
        return
    examples = standard_artifacts.Examples()
    artifacts = {name: simple_artifacts.File() for name in ("rejects", "vocabulary", "lexicon")}
    artifacts |= {
        "examples": examples,
        "statistics": standard_artifacts.ExampleStatistics(),
        "schema": standard_artifacts.Schema(),
        "transform_graph": standard_artifacts.TransformGraph(),
        "transformed_examples": standard_artifacts.Examples(),
        "model": standard_artifacts.Model(),
        "evaluation": standard_artifacts.ModelEvaluation(),
        "blessing": standard_artifacts.ModelBlessing(),
    }
    for name, artifact in artifacts.items():
        artifact.uri = str(output / name)
    # What the component before wrote into metadata.
    examples.split_names = '["train", "eval", "test"]'
    examples_utils.set_payload_format(examples, example_gen_pb2.FORMAT_TF_EXAMPLE)
    given = {name: [artifact] for name, artifact in artifacts.items()}

    def execute(module, inputs, outputs, properties):
        context = module.Executor.Context(
            beam_pipeline_args=list(beam_args), tmp_dir=str(output), unique_id="1"
        )
        module.Executor(context).Do(
            {name: given[name] for name in inputs},
            {name: given[name] for name in outputs},
            properties,
        )

    if component == "ingest":
        properties = {
            ingest.DATA_PATH_KEY: str(data),
            ingest.DATA_CONFIG_KEY: json.dumps(dataclasses.asdict(recipe.data)),
        }
        execute(ingest, (), ("examples", "rejects"), properties)
        return
    recipe_json = recipe.to_json()
    channels = {name: channel(artifact) for name, artifact in artifacts.items()}
    if component == "statistics":
        made = StatisticsGen(channels["examples"])
        execute(statistics, ("examples",), ("statistics",), made.exec_properties)
    elif component == "vocabulary":
        made = vocabulary.Vocabulary(channels["examples"], recipe_json)
        execute(vocabulary.executor, ("examples",), ("vocabulary",), made.exec_properties)
    elif component == "lexicon":
        made = lexicon.Lexicon(channels["examples"], channels["vocabulary"], recipe_json)
        execute(lexicon.executor, ("examples", "vocabulary"), ("lexicon",), made.exec_properties)
    elif component == "evaluation":
        made = evaluator.Evaluator(
            examples=channels["examples"],
            example_splits=[task_of(recipe).evaluated_split(recipe)],
            model=channels["model"],
            eval_config=task_of(recipe).build_eval_config(recipe),
            module_path=task_of(recipe).evaluator_module(),
        )
        execute(
            evaluator.executor,
            ("examples", "model"),
            ("evaluation", "blessing"),
            made.exec_properties,
        )
    else:
        write_schema(output / "schema")
        inputs = ("examples", "schema", "vocabulary")
        made = transform.TextTransform(*(channels[name] for name in inputs), recipe_json)
        execute(
            transform.executor,
            inputs,
            ("transform_graph", "transformed_examples"),
            made.exec_properties,
        )


def export_model(recipe, output):
    """Exports the recipe's model with its first weights, to where the Evaluator looks for it."""
    import tensorflow_transform as tft
    from tfx.utils import path_utils

    from pipeline.export import seq2seq_export
    from pipeline.features import training_counts, vocabulary_files
    from pipeline.training.model_building import build_model
    from pipeline.training.model_inputs import ModelInputs

    graph = tft.TFTransformOutput(str(output / "transform_graph"))
    model = build_model(recipe, ModelInputs.of(recipe, graph))
    directory = path_utils.serving_model_dir(str(output / "model"))
    seq2seq_export.export_model(model, graph, recipe, directory)
    training_counts.write(
        directory, vocabulary_files.read_training_counts(str(output / "vocabulary"))
    )


def write_schema(folder):
    """Writes the schema that SchemaGen infers of the examples."""
    import tensorflow as tf
    from google.protobuf import text_format
    from tensorflow_transform.tf_metadata import schema_utils

    spec = {name: tf.io.FixedLenFeature([1], tf.string) for name in ("source", "target", "file")}
    schema = schema_utils.schema_from_feature_spec(
        {**spec, "line": tf.io.FixedLenFeature([1], tf.int64)}
    )
    folder.mkdir(exist_ok=True)
    (folder / "schema.pbtxt").write_text(text_format.MessageToString(schema), encoding="utf-8")


def channel(artifact):
    """Returns a channel of an artifact's type, so that a component can be made that says its
    executor's properties.
    """
    from tfx.types import Channel

    return Channel(type=type(artifact))


def resident_bytes(pid):
    """Returns the memory that a process and its descendants have resident together; 0 for what has
    ended.
    """
    try:
        with open(f"/proc/{pid}/statm") as file:
            total = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        children = []
        for task in os.listdir(f"/proc/{pid}/task"):
            with (
                contextlib.suppress(OSError),
                open(f"/proc/{pid}/task/{task}/children") as file,
            ):  # a thread may end meanwhile
                children += file.read().split()
    except (OSError, IndexError):
        return 0
    return total + sum(map(resident_bytes, children))


def measure(arguments):
    """Runs a command; returns its seconds and its peak of resident bytes.

    Raises:
        SystemExit: it failed; its own message has been printed.
    """
    started, peak = time.monotonic(), 0
    process = subprocess.Popen(arguments)
    while process.poll() is None:
        peak = max(peak, resident_bytes(process.pid))
        time.sleep(_SAMPLE_SECONDS)
    if process.returncode:
        raise SystemExit(
            f"The component ended with status {process.returncode}: {' '.join(arguments)}"
        )
    return time.monotonic() - started, peak


def table(rows):
    """Returns the Markdown table of the rows."""
    lines = ["| component | pairs | seconds | ms a pair | peak, MB |", "|---|---|---|---|---|"]
    for row in rows:
        each = 1000 * row["seconds"] / row["pairs"]
        cells = [row["component"], f"{row['pairs']:,}", f"{row['seconds']:.0f}", f"{each:.2f}"]
        lines.append("| " + " | ".join([*cells, f"{row['peak_bytes'] / 1e6:,.0f}"]) + " |")
    return "\n".join(lines) + "\n"


def curves(rows):
    """Returns what `exponents.write` draws of the table's rows:
    time, then memory, of each component that ran at several sizes.
    """
    made = []
    for component in dict.fromkeys(row["component"] for row in rows):
        own = [row for row in rows if row["component"] == component]
        for key, unit, title in (
            ("seconds", 1.0, "seconds"),
            ("peak_bytes", 1e6, "peak of memory, MB"),
        ):
            points = [(row["pairs"], row[key] / unit) for row in own]
            if len(points) > 1:
                made.append(
                    {"title": f"{component}: {title}", "x_label": "pairs", "points": points}
                )
    return made


def main():
    """Measures all components at all sizes and writes the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("recipe")
    parser.add_argument(
        "--data", required=True, type=pathlib.Path, help="folder with train.SOURCE and train.TARGET"
    )
    parser.add_argument("--output", required=True, type=pathlib.Path)
    parser.add_argument("--pairs", default="50000,500000,5000000")
    parser.add_argument("--components", default=",".join(COMPONENTS))
    parser.add_argument(
        "--beam",
        action="append",
        default=[],
        metavar="OPTION",
        help="--beam=--OPTION: an option for Beam; repeatable",
    )
    parser.add_argument("--only", nargs=2, metavar=("COMPONENT", "PAIRS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    tensorflow_settings.quiet()
    overrides = [
        "data.eval_files=[]",
        "data.test_files=[]",
        "data.eval_share=0.02",
        "data.test_share=0.02",
    ]
    overrides += [f"{key}={value}" for key, value in _TINY_MODEL.items()]
    recipe = loading.load_recipe(options.recipe, [*overrides, "lexicon.kind=learned"])
    if options.only:
        component, pairs = options.only
        folder = options.output / pairs
        work(component, recipe, folder / "data", folder / "artifacts", options.beam)
        return
    languages = recipe.data.source_language, recipe.data.target_language
    texts = [options.data / f"train.{language}" for language in languages]
    rows = []
    for pairs in map(int, options.pairs.split(",")):
        folder = options.output / str(pairs)
        shutil.rmtree(folder, ignore_errors=True)
        grow(*texts, folder / "data", pairs)
        arguments = [
            sys.executable,
            "-m",
            "benchmarks.growth.corpus",
            options.recipe,
            "--data",
            str(options.data),
        ]
        arguments += [
            "--output",
            str(options.output),
            *(f"--beam={option}" for option in options.beam),
        ]
        for component in options.components.split(","):
            if component == "evaluation":
                measure([*arguments, "--only", _MODEL, str(pairs)])
            seconds, peak = measure([*arguments, "--only", component, str(pairs)])
            rows.append(
                {"component": component, "pairs": pairs, "seconds": seconds, "peak_bytes": peak}
            )
            (options.output / "growth.json").write_text(
                json.dumps(rows, indent=1) + "\n", encoding="utf-8"
            )
            print(table(rows[-1:]).splitlines()[-1], flush=True)
    if made := curves(rows):
        exponents.write(options.output / "growth.svg", "Growth with the corpus", made)
    print(table(rows))


if __name__ == "__main__":
    main()
