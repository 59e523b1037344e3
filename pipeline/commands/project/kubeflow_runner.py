"""Compiles this project's pipeline for Kubeflow Pipelines or Vertex AI.

    python kubeflow_runner.py

writes `pipeline.yaml`, to upload to Kubeflow; with TFX's own command line, for Vertex AI:

    tfx pipeline create --engine=vertex --pipeline-path=kubeflow_runner.py
"""

import pathlib

from pipeline.recipes import loading
from pipeline.runners import kubeflow_runner

FOLDER = pathlib.Path(__file__).resolve().parent
# What the cluster sees: where the data are, where artifacts and models go, and the image that
# Verbatim's Dockerfile builds.
DATA = "gs://BUCKET/$name/data"
SETTINGS = kubeflow_runner.ClusterSettings(
    pipeline_root="gs://BUCKET/$name/artifacts", image="REGISTRY/verbatim:latest"
)


def compile_pipeline() -> pathlib.Path:
    """Writes `pipeline.yaml`; returns its path."""
    recipe = loading.load_recipe(FOLDER / "$name.toml")
    return kubeflow_runner.compile_pipeline(recipe, FOLDER / "pipeline.yaml", DATA, SETTINGS)


if __name__ == "__main__":
    print(f"Wrote {compile_pipeline()}")
