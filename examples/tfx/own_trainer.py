"""Verbatim's reading of parallel text before a Transform and a Trainer of the user's own.

    python examples/tfx/own_trainer.py --data FOLDER --output FOLDER

The data folder holds files that Verbatim reads, such as TSV, CSV, JSON Lines and gettext
catalogues, with the columns source, target and domain. The pipeline is

    ParallelTextExampleGen -> StatisticsGen, SchemaGen (TFX) -> Transform (TFX) -> Trainer (TFX)
    -> Pusher (TFX)

Transform and Trainer run `domain_module.py`, an ordinary module file, which learns the domain of a
text. ParallelTextExampleGen gives it what CsvExampleGen does not: a reject with file, line and
reason for each record that cannot be used, no duplicates, and splits that share no text.
"""

import argparse
import os
import pathlib

import tfx.v1 as tfx

from components.parallel_text_example_gen.component import ParallelTextExampleGen
from pipeline.recipes.sections import DataConfig

MODULE_FILE = str(pathlib.Path(__file__).with_name("domain_module.py"))


def create_pipeline(data: str, output: str, train_steps: int = 200) -> tfx.dsl.Pipeline:
    """Creates the pipeline; it runs nothing.

    Args:
        data: a file, or the folder of the files.
        output: the folder of artifacts, metadata and pushed models.
        train_steps: how many batches the model learns from.
    """
    example_gen = ParallelTextExampleGen(
        data, DataConfig(slice_features=("domain",), eval_share=0.2, test_share=0.1)
    )
    statistics_gen = tfx.components.StatisticsGen(examples=example_gen.outputs["examples"])
    schema_gen = tfx.components.SchemaGen(
        statistics=statistics_gen.outputs["statistics"], infer_feature_shape=True
    )
    transform = tfx.components.Transform(
        examples=example_gen.outputs["examples"],
        schema=schema_gen.outputs["schema"],
        module_file=MODULE_FILE,
    )
    trainer = tfx.components.Trainer(
        module_file=MODULE_FILE,
        examples=transform.outputs["transformed_examples"],
        transform_graph=transform.outputs["transform_graph"],
        schema=schema_gen.outputs["schema"],
        train_args=tfx.proto.TrainArgs(splits=["train"], num_steps=train_steps),
        eval_args=tfx.proto.EvalArgs(splits=["eval"], num_steps=1),
    )
    pusher = tfx.components.Pusher(
        model=trainer.outputs["model"],
        push_destination=tfx.proto.PushDestination(
            filesystem=tfx.proto.PushDestination.Filesystem(
                base_directory=os.path.join(output, "models")
            )
        ),
    )
    return tfx.dsl.Pipeline(
        pipeline_name="own_trainer",
        pipeline_root=os.path.join(output, "artifacts"),
        components=[example_gen, statistics_gen, schema_gen, transform, trainer, pusher],
        metadata_connection_config=tfx.orchestration.metadata.sqlite_metadata_connection_config(
            os.path.join(output, "metadata.sqlite")
        ),
    )


def main() -> None:
    """Runs the pipeline on this machine."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", required=True, help="file or folder of parallel text")
    parser.add_argument("--output", required=True, help="folder for artifacts and models")
    options = parser.parse_args()
    tfx.orchestration.LocalDagRunner().run(create_pipeline(options.data, options.output))


if __name__ == "__main__":
    main()
