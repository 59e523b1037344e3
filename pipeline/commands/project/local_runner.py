"""Runs this project's pipeline on this machine.

    python local_runner.py

or with TFX's own command line:

    tfx pipeline create --engine=local --pipeline-path=local_runner.py
    tfx run create --engine=local --pipeline-name=$name
"""

import pathlib

import tfx.v1 as tfx

from pipeline import graph
from pipeline.recipes import loading

FOLDER = pathlib.Path(__file__).resolve().parent


def create_pipeline() -> tfx.dsl.Pipeline:
    """Returns the pipeline: from the files in `data` to a model in `models`."""
    settings = graph.PipelineSettings(
        name="$name",
        root=str(FOLDER / "artifacts"),
        push_directory=str(FOLDER / "models" / "$name"),
        metadata_config=tfx.orchestration.metadata.sqlite_metadata_connection_config(
            str(FOLDER / "metadata.sqlite")
        ),
    )
    recipe = loading.load_recipe(FOLDER / "$name.toml")
    return graph.create_pipeline(recipe, str(FOLDER / "data"), settings)


if __name__ == "__main__":
    tfx.orchestration.LocalDagRunner().run(create_pipeline())
