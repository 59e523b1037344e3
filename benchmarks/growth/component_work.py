"""The work of one component on a corpus, in this process."""

import dataclasses
import json
import pathlib
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pipeline.recipes import views
from pipeline.recipes.recipe import Recipe

if TYPE_CHECKING:
    from tfx.types import Artifact, Channel

COMPONENTS = (
    "ingest",
    "statistics",
    "vocabulary",
    "lexicon",
    "transform",
    "training",
    "evaluation",
)
#: What evaluation needs; it is not measured.
MODEL = "model"


def work(
    component: str,
    recipe: Recipe,
    data: pathlib.Path,
    output: pathlib.Path,
    beam_args: Sequence[str],
) -> None:
    """Runs one component's executor.

    The outputs of others, which ran before, are in the same output folder.

    Args:
        component: one of `COMPONENTS`, or `MODEL`.
        recipe: the recipe.
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

    from components.evaluator import executor as evaluator
    from components.evaluator.component import Evaluator
    from components.lexicon import executor as lexicon
    from components.lexicon.component import Lexicon
    from components.parallel_text_example_gen import executor as ingest
    from components.text_transform import executor as transform
    from components.text_transform.component import TextTransform
    from components.vocabulary import executor as vocabulary
    from components.vocabulary.component import Vocabulary
    from pipeline.tasks import task_of

    if component == MODEL:
        export_model(recipe, output)
        return
    if component == "training":
        train_model(recipe, output)
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
    # The component before wrote this into metadata.
    examples.split_names = '["train", "eval", "test"]'
    examples_utils.set_payload_format(examples, example_gen_pb2.FORMAT_TF_EXAMPLE)

    def execute(
        module: ModuleType,
        inputs: Sequence[str],
        outputs: Sequence[str],
        properties: dict[str, Any],
    ) -> None:
        context = module.Executor.Context(
            beam_pipeline_args=list(beam_args), tmp_dir=str(output), unique_id="1"
        )
        module.Executor(context).Do(
            {name: [artifacts[name]] for name in inputs},
            {name: [artifacts[name]] for name in outputs},
            properties,
        )

    if component == "ingest":
        properties = {
            ingest.DATA_PATH_KEY: str(data),
            ingest.DATA_CONFIG_KEY: json.dumps(dataclasses.asdict(recipe.data)),
        }
        execute(ingest, (), ("examples", "rejects"), properties)
        return
    channels = {name: channel(artifact) for name, artifact in artifacts.items()}
    settings = views.vocabulary_settings(recipe)
    if component == "statistics":
        made = StatisticsGen(channels["examples"])
        execute(statistics, ("examples",), ("statistics",), made.exec_properties)
    elif component == "vocabulary":
        made = Vocabulary(channels["examples"], recipe.vocabulary, settings)
        execute(vocabulary, ("examples",), ("vocabulary",), made.exec_properties)
    elif component == "lexicon":
        made = Lexicon(channels["examples"], channels["vocabulary"], recipe.lexicon, settings)
        execute(lexicon, ("examples", "vocabulary"), ("lexicon",), made.exec_properties)
    elif component == "evaluation":
        made = Evaluator(
            examples=channels["examples"],
            example_splits=[task_of(recipe).evaluated_split(recipe)],
            model=channels["model"],
            eval_config=task_of(recipe).build_eval_config(recipe),
            module_path=task_of(recipe).evaluator_module(),
        )
        execute(
            evaluator,
            ("examples", "model"),
            ("evaluation", "blessing"),
            made.exec_properties,
        )
    else:
        write_schema(output / "schema")
        made = TextTransform(
            channels["examples"],
            channels["schema"],
            channels["vocabulary"],
            preprocessing_fn=task_of(recipe).preprocessing_fn,
            settings=views.transform_settings(recipe),
        )
        execute(
            transform,
            ("examples", "schema", "vocabulary"),
            ("transform_graph", "transformed_examples"),
            made.exec_properties,
        )


def train_model(recipe: Recipe, output: pathlib.Path) -> None:
    """Trains the recipe's model on the transformed examples, and says how many updates it made."""
    import tensorflow_transform as tft

    from pipeline.training import trainer
    from pipeline.training.checkpoints import Checkpoints
    from pipeline.training.model_inputs import ModelInputs
    from pipeline.training.training_inputs import TrainingInputs

    graph = tft.TFTransformOutput(str(output / "transform_graph"))
    examples = output / "transformed_examples"
    train_files, eval_files = (
        [str(examples / f"Split-{name}" / "*")] for name in ("train", "eval")
    )
    inputs = TrainingInputs(train_files, eval_files, ModelInputs.of(recipe, graph))
    checkpoints = Checkpoints(str(output / "checkpoints"))
    # Of a measurement that was interrupted: this one starts from the first update.
    checkpoints.clear()
    _, facts = trainer.train(recipe, inputs, checkpoints)
    checkpoints.clear()
    print(f"{facts['updates']} updates in {facts['seconds']} s, with the evaluation at their end")


def export_model(recipe: Recipe, output: pathlib.Path) -> None:
    """Exports the recipe's untrained model to where the Evaluator looks for it."""
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


def write_schema(folder: pathlib.Path) -> None:
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


def channel(artifact: "Artifact") -> "Channel":
    """Returns a channel of an artifact's type, to make a component for its properties."""
    from tfx.types import Channel

    return Channel(type=type(artifact))
