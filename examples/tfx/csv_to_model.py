"""TFX's own components around Verbatim's: a CSV file in, a pushed model out.

    python examples/tfx/csv_to_model.py --data FOLDER --output FOLDER

The data folder holds CSV files with the columns english, french and domain. The pipeline is

    CsvExampleGen (TFX) -> PairsFromExamples -> StatisticsGen, SchemaGen (TFX) -> Vocabulary
    -> TextTransform -> Trainer (TFX, with Verbatim's run_fn) -> Exporter -> Evaluator (TFX)
    -> Pusher (TFX) -> Reporter

PairsFromExamples connects the two. It takes the examples of any TFX component, with any feature
names. It lists examples that are no pair of texts in its output `rejects`. CsvExampleGen makes the
splits train and eval. PairsFromExamples takes the split test from train, so that no text is in two
splits. The Evaluator also measures each domain.
"""

import argparse
import os
from collections.abc import Sequence

import tfx.v1 as tfx

from components.exporter.component import Exporter
from components.pairs_from_examples.component import PairsFromExamples
from components.reporter.component import Reporter, SystemChannels
from components.text_transform.component import TextTransform
from components.vocabulary.component import Vocabulary
from pipeline.graph import RUN_FN
from pipeline.recipes import loading, views
from pipeline.tasks import task_of

#: What differs from the recipe `translation`.
SETTINGS = (
    'data.source_column="english"',
    'data.target_column="french"',
    'data.slice_features=["domain"]',
    'data.target_language="fr"',
    'evaluation.slices=["domain"]',
)


def create_pipeline(data: str, output: str, settings: Sequence[str] = ()) -> tfx.dsl.Pipeline:
    """Creates the pipeline; it runs nothing.

    Args:
        data: the folder of the CSV files.
        output: the folder of artifacts, metadata and pushed models.
        settings: more keys of the recipe, as `--set` takes them.
    """
    recipe = loading.load_recipe("translation", [*SETTINGS, *settings])
    task = task_of(recipe)
    example_gen = tfx.components.CsvExampleGen(input_base=data)
    pairs = PairsFromExamples(examples=example_gen.outputs["examples"], data=recipe.data)
    examples = pairs.outputs["pairs"]
    statistics_gen = tfx.components.StatisticsGen(examples=examples)
    schema_gen = tfx.components.SchemaGen(
        statistics=statistics_gen.outputs["statistics"], infer_feature_shape=True
    )
    vocabulary = Vocabulary(
        examples=examples, config=recipe.vocabulary, settings=views.vocabulary_settings(recipe)
    )
    transform = TextTransform(
        examples=examples,
        schema=schema_gen.outputs["schema"],
        vocabulary=vocabulary.outputs["vocabulary"],
        preprocessing_fn=task.preprocessing_fn,
        settings=views.transform_settings(recipe),
    )
    trainer = tfx.components.Trainer(
        run_fn=RUN_FN,
        examples=transform.outputs["transformed_examples"],
        transform_graph=transform.outputs["transform_graph"],
        schema=schema_gen.outputs["schema"],
        train_args=tfx.proto.TrainArgs(splits=["train"]),
        eval_args=tfx.proto.EvalArgs(splits=["eval"]),
        custom_config={"recipe": views.training_recipe(recipe).to_json()},
    )
    exporter = Exporter(
        trained_model=trainer.outputs["model"],
        transform_graph=transform.outputs["transform_graph"],
        vocabulary=vocabulary.outputs["vocabulary"],
        recipe=views.export_recipe(recipe),
    )
    # On Spark and Dataflow take components.evaluator.component.Evaluator: it also registers
    # TensorFlow Text's operations in their workers.
    evaluator = tfx.components.Evaluator(
        examples=examples,
        example_splits=[task.evaluated_split(recipe)],
        model=exporter.outputs["model"],
        eval_config=task.build_eval_config(recipe),
        module_path=task.evaluator_module(),
    )
    pusher = tfx.components.Pusher(
        model=exporter.outputs["model"],
        model_blessing=evaluator.outputs["blessing"],
        push_destination=tfx.proto.PushDestination(
            filesystem=tfx.proto.PushDestination.Filesystem(
                base_directory=os.path.join(output, "models")
            )
        ),
    )
    reporter = Reporter(
        examples=examples,
        counts=pairs.outputs["rejects"],
        vocabulary=vocabulary.outputs["vocabulary"],
        evaluation=evaluator.outputs["evaluation"],
        pushed_model=pusher.outputs["pushed_model"],
        systems=[
            SystemChannels(
                model=exporter.outputs["model"],
                trained_model=trainer.outputs["model"],
                model_run=trainer.outputs["model_run"],
            )
        ],
        recipe=recipe,
    )
    return tfx.dsl.Pipeline(
        pipeline_name="csv_to_model",
        pipeline_root=os.path.join(output, "artifacts"),
        components=[
            example_gen,
            pairs,
            statistics_gen,
            schema_gen,
            vocabulary,
            transform,
            trainer,
            exporter,
            evaluator,
            pusher,
            reporter,
        ],
        metadata_connection_config=tfx.orchestration.metadata.sqlite_metadata_connection_config(
            os.path.join(output, "metadata.sqlite")
        ),
    )


def main() -> None:
    """Runs the pipeline on this machine."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", required=True, help="folder of CSV files")
    parser.add_argument("--output", required=True, help="folder for artifacts and models")
    parser.add_argument("--set", action="append", default=[], help="a key of the recipe")
    options = parser.parse_args()
    tfx.orchestration.LocalDagRunner().run(
        create_pipeline(options.data, options.output, options.set)
    )


if __name__ == "__main__":
    main()
