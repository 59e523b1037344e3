"""Writes a recipe's pipeline as a Kubeflow Pipelines (v2) file."""

import pathlib

from pipeline import configs
from pipeline.recipe_fields import RecipeError

DEFAULT_IMAGE = "verbatim-text:latest"
DEFAULT_ROOT = "gs://your-bucket/verbatim"


def compile_pipeline(
    recipe,
    output,
    data_path,
    pipeline_root=DEFAULT_ROOT,
    image=DEFAULT_IMAGE,
    component_images=None,
    gpu_count=1,
    gpu_type="nvidia-tesla-t4",
    trainer_cpu=4.0,
    trainer_memory=16.0,
    beam_args=(),
):
    """Compiles the pipeline with TFX's KubeflowV2DagRunner.

    Args:
        recipe: a `Recipe`.
        output: the `.yaml` or `.json` file to write.
        data_path: the data as the cluster sees it, such as `gs://bucket/pairs.tsv`.
        pipeline_root: folder of the artifacts, as the cluster sees it; models are pushed to `ROOT/models/NAME`.
        image: container image of all components, built with the project's Dockerfile.
        component_images: dict from component id (`"Trainer"`) to another image.
        gpu_count: GPUs of each Trainer; 0 for none.
        gpu_type: the cluster's name of the GPU.
        trainer_cpu: cores of each Trainer.
        trainer_memory: memory of each Trainer in GB.
        beam_args: options for Beam, such as `--runner=DataflowRunner`.

    Returns:
        The path written.

    Raises:
        RecipeError: an image for a component that the pipeline does not have, or fewer than 0 GPUs.
    """
    if gpu_count < 0:
        raise RecipeError(f"The number of GPUs must be 0 or more; got {gpu_count}.")
    from kfp.pipeline_spec import pipeline_spec_pb2
    from tfx.orchestration.kubeflow.v2 import kubeflow_v2_dag_runner

    from pipeline import pipeline

    resources = pipeline_spec_pb2.PipelineDeploymentConfig.PipelineContainerSpec.ResourceSpec(
        cpu_limit=trainer_cpu, memory_limit=trainer_memory
    )
    if gpu_count:
        resources.accelerator.type = gpu_type
        resources.accelerator.count = gpu_count
    recipe = configs.with_database_path(recipe, data_path)
    tfx_pipeline = pipeline.create_pipeline(
        # Kubeflow allows lower-case letters, digits and dashes.
        pipeline_name=recipe.name.lower().replace("_", "-"),
        pipeline_root=pipeline_root,
        recipe=recipe,
        data_path=data_path,
        push_directory=f"{pipeline_root.rstrip('/')}/models/{recipe.name}",
        beam_args=beam_args,
        # Each run has folders of its own there; a training is known by what it is made from, whichever run began it.
        checkpoint_directory=f"{pipeline_root.rstrip('/')}/checkpoints",
        configure_trainer=lambda trainer: trainer.with_platform_config(resources),
        # Kubeflow knows no strategy but TFX's: there a run that is repeated compares a model with itself.
        resolve_blessed=pipeline.last_blessed_model,
    )
    known = [component.id for component in tfx_pipeline.components]
    images = {kubeflow_v2_dag_runner._DEFAULT_IMAGE_PATH_KEY: image}
    for component, other in (component_images or {}).items():
        if component not in known:
            raise RecipeError(f"--component-image names '{component}', but the pipeline has {', '.join(known)}.")
        images[component] = other
    output = pathlib.Path(output)
    output.parent.mkdir(parents=True, exist_ok=True)
    runner = kubeflow_v2_dag_runner.KubeflowV2DagRunner(
        config=kubeflow_v2_dag_runner.KubeflowV2DagRunnerConfig(default_image=images), output_filename=str(output)
    )
    runner.run(tfx_pipeline, write_out=True)
    return output
