"""Writes a recipe's pipeline as a Kubeflow Pipelines (v2) file."""

import contextlib
import dataclasses
import json
import logging
import os
import pathlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pipeline.common.whole_files import write_text
from pipeline.recipes import loading
from pipeline.recipes.choices import LAST_PUSHED
from pipeline.recipes.fields import RecipeError
from pipeline.recipes.recipe import Recipe

DEFAULT_IMAGE = "verbatim-text:latest"
DEFAULT_ROOT = "gs://your-bucket/verbatim"
# The name in Kubernetes; Vertex AI has names of its own, such as NVIDIA_TESLA_T4.
DEFAULT_GPU = "nvidia.com/gpu"
#: The parameter of the pipeline that names the data, if there is one.
DATA_PARAMETER = "data"
# Stores that Kubeflow knows, and TensorFlow does not without tensorflow-io, which newer versions of
# TensorFlow do not have.
_UNREADABLE = ("s3", "minio")
_RETRY = {"backoffDuration": "30s", "backoffFactor": 2.0, "backoffMaxDuration": "600s"}


@dataclasses.dataclass(frozen=True)
class Resources:
    """What a component may use at most; 0 leaves it to the cluster.

    Attributes:
        cpu: cores.
        memory: in GB.
    """

    cpu: float = 0.0
    memory: float = 0.0


@dataclasses.dataclass(frozen=True)
class Secret:
    """A Kubernetes secret that every container sees; its content is never in the file.

    Attributes:
        name: the secret's name in the cluster.
        key: which of its entries; "" for all, as files.
        variable: the environment variable that holds it; "" where it is mounted.
        path: the folder where its entries lie as files; "" where it is a variable.
    """

    name: str
    key: str = ""
    variable: str = ""
    path: str = ""


#: What a training gets by default.
TRAINER_RESOURCES = Resources(cpu=4.0, memory=16.0)


@dataclasses.dataclass(frozen=True)
class ClusterSettings:
    """How a pipeline runs on a cluster.

    Attributes:
        pipeline_root: folder of the artifacts, as the cluster sees it; models are pushed to
            `ROOT/models/NAME`.
        image: container image of all components, built with the project's Dockerfile.
        component_images: by component id (`"Trainer"`) another image.
        gpu_count: GPUs of each Trainer, and of the Tuner; 0 for none.
        gpu_type: the cluster's name of the GPU.
        resources: by component id what it may use; Trainers and the Tuner have
            `TRAINER_RESOURCES` by default.
        retries: how often a failed task is retried; a training resumes from its checkpoint.
        enable_cache: whether unchanged tasks are taken from the cache.
        data_parameter: whether the data folder is a parameter of the pipeline, set when a run
            starts, with the given path as its default.
        secrets: what every container sees.
        beam_args: options for Beam, such as `--runner=DataflowRunner`.
    """

    pipeline_root: str = DEFAULT_ROOT
    image: str = DEFAULT_IMAGE
    component_images: Mapping[str, str] = dataclasses.field(default_factory=dict)
    gpu_count: int = 1
    gpu_type: str = DEFAULT_GPU
    resources: Mapping[str, Resources] = dataclasses.field(default_factory=dict)
    retries: int = 2
    enable_cache: bool = True
    data_parameter: bool = False
    secrets: Sequence[Secret] = ()
    beam_args: Sequence[str] = ()


def compile_pipeline(
    recipe: Recipe,
    output: str | os.PathLike[str],
    data_path: str,
    settings: ClusterSettings = ClusterSettings(),  # noqa: B008 (it cannot be changed)
) -> pathlib.Path:
    """Compiles the pipeline with TFX's KubeflowV2DagRunner, and adds what that runner does not
    support.

    Args:
        recipe: the recipe.
        output: the `.yaml` or `.json` file to write; JSON has no place for secrets.
        data_path: the data as the cluster sees it, such as `gs://bucket/pairs.tsv`.
        settings: how it runs on the cluster.

    Returns:
        The path written.

    Raises:
        RecipeError: a bucket that TensorFlow cannot read, an image or resources for a component
            that the pipeline does not have, fewer than 0 GPUs or retries, a file as a parameter,
            secrets in JSON.
    """
    path = pathlib.Path(output)
    _check(recipe, path, data_path, settings)
    from tfx.orchestration import data_types
    from tfx.orchestration.kubeflow.v2 import kubeflow_v2_dag_runner

    from components.last_pushed_model.component import LastPushedModel
    from pipeline import graph

    root = settings.pipeline_root.rstrip("/")
    push_directory = f"{root}/models/{recipe.name}"
    recipe = loading.with_database_path(recipe, data_path)
    tfx_pipeline = graph.create_pipeline(
        recipe,
        data_types.RuntimeParameter(name=DATA_PARAMETER, ptype=str, default=data_path)
        if settings.data_parameter
        else data_path,
        graph.PipelineSettings(
            # Kubeflow allows lower-case letters, digits and dashes.
            name=recipe.name.lower().replace("_", "-"),
            root=settings.pipeline_root,
            push_directory=push_directory,
            beam_args=settings.beam_args,
            enable_cache=settings.enable_cache,
            # Each run has folders of its own there. A training is identified by its inputs,
            # whichever run began it.
            checkpoint_directory=f"{root}/checkpoints",
            initial_model=recipe.training.initialize_from,
            # Kubeflow's own back end has no Resolvers.
            resolve_blessed=lambda candidate: LastPushedModel(candidate, push_directory),
        ),
    )
    ids = [component.id for component in tfx_pipeline.components]
    _check_components(settings, ids)
    images = {
        kubeflow_v2_dag_runner._DEFAULT_IMAGE_PATH_KEY: settings.image,
        **settings.component_images,
    }
    runner = kubeflow_v2_dag_runner.KubeflowV2DagRunner(
        # Kubeflow's own back end reads the constants of the newer schema alone; Vertex AI reads
        # both.
        config=kubeflow_v2_dag_runner.KubeflowV2DagRunnerConfig(
            default_image=images, use_pipeline_spec_2_1=True
        )
    )
    with _without_false_warning():
        job = runner.run(tfx_pipeline, write_out=False)
    spec = job["pipelineSpec"]
    _limit_components(spec, settings)
    for task in spec["root"]["dag"]["tasks"].values():
        if settings.retries:
            task["retryPolicy"] = {"maxRetryCount": settings.retries, **_RETRY}
    # TensorFlow may be unable to read Kubeflow's default place for artifacts.
    spec["defaultPipelineRoot"] = settings.pipeline_root
    if settings.data_parameter:
        # TFX does not write its default into the file.
        spec["root"]["inputDefinitions"]["parameters"][DATA_PARAMETER].update(
            {
                "defaultValue": data_path,
                "isOptional": True,
                "description": "the folder of the data",
            }
        )
    _write(path, job, _platform(spec["deploymentSpec"]["executors"], settings.secrets))
    return path


def _check(recipe: Recipe, output: pathlib.Path, data_path: str, settings: ClusterSettings) -> None:
    """Refuses wrong settings before the slow imports."""
    for option, path in (("--pipeline-root", settings.pipeline_root), ("--data", data_path)):
        if scheme := re.match(rf"({'|'.join(_UNREADABLE)})://", path):
            raise RecipeError(
                f"{option} is at {scheme[0]}, which TensorFlow in this environment cannot read: "
                "give a gs:// address, or a folder that every task mounts."
            )
    if settings.gpu_count < 0:
        raise RecipeError(f"The number of GPUs must be 0 or more; got {settings.gpu_count}.")
    if settings.retries < 0:
        raise RecipeError(f"The number of retries must be 0 or more; got {settings.retries}.")
    if recipe.training.initialize_from == LAST_PUSHED:
        raise RecipeError(
            f'On a cluster training.initialize_from = "{LAST_PUSHED}" cannot be looked up before a '
            "run: give the address of a version, such as gs://bucket/models/NAME/1."
        )
    if output.suffix == ".json" and settings.secrets:
        raise RecipeError(
            f"Secrets are in a part of the file that JSON cannot hold: write {output.stem}.yaml."
        )
    if (
        settings.data_parameter
        and not recipe.data.train_files
        and re.search(r"[.,][^/]*$", data_path)
    ):
        raise RecipeError(
            "Data that are a parameter of the pipeline must be a folder; "
            f"{data_path} looks like files."
        )


@contextlib.contextmanager
def _without_false_warning() -> Iterator[None]:
    """Suppresses TFX's warning about a missing default image, because there is one."""
    logger = logging.getLogger("absl")

    def is_true(record: logging.LogRecord) -> bool:
        return not record.getMessage().startswith("DEFAULT_IMAGE_PATH_KEY is not found")

    logger.addFilter(is_true)
    try:
        yield
    finally:
        logger.removeFilter(is_true)


def _check_components(settings: ClusterSettings, ids: Sequence[str]) -> None:
    """Refuses an image or resources for a component that the pipeline does not have."""
    for option, named in (
        ("--component-image", settings.component_images),
        ("--resources", settings.resources),
    ):
        for component in named:
            if component not in ids:
                raise RecipeError(
                    f"{option} names '{component}', but the pipeline has {', '.join(ids)}."
                )


def _limit_components(spec: Mapping[str, Any], settings: ClusterSettings) -> None:
    """Puts the limits of each component in its container."""
    executors = spec["deploymentSpec"]["executors"]
    for name, component in spec["components"].items():
        trains = name.split(".")[0] in ("Trainer", "Tuner")
        resources = settings.resources.get(name, TRAINER_RESOURCES if trains else Resources())
        numbers = {"cpuLimit": float(resources.cpu), "memoryLimit": float(resources.memory)}
        limits: dict[str, Any] = {key: number for key, number in numbers.items() if number}
        if trains and settings.gpu_count:
            limits["accelerator"] = {"type": settings.gpu_type, "count": str(settings.gpu_count)}
        if limits:
            executors[component["executorLabel"]]["container"]["resources"] = limits


def _platform(executors: Iterable[str], secrets: Sequence[Secret]) -> dict[str, Any] | None:
    """Returns the part of the file that only Kubernetes understands; None without secrets."""
    if not secrets:
        return None
    shown: dict[str, Any] = {}
    variables = [secret for secret in secrets if secret.variable]
    if variables:
        shown["secretAsEnv"] = [
            {
                "secretName": secret.name,
                "keyToEnv": [{"secretKey": secret.key, "envVar": secret.variable}],
            }
            for secret in variables
        ]
    mounted = [secret for secret in secrets if secret.path]
    if mounted:
        shown["secretAsVolume"] = [
            {"secretName": secret.name, "mountPath": secret.path} for secret in mounted
        ]
    return {
        "platforms": {
            "kubernetes": {"deploymentSpec": {"executors": dict.fromkeys(executors, shown)}}
        }
    }


def _write(output: pathlib.Path, job: dict[str, Any], platform: dict[str, Any] | None) -> None:
    """Writes the file: YAML with a document for the pipeline and one for the platform, or JSON."""
    output.parent.mkdir(parents=True, exist_ok=True)
    if output.suffix == ".json":
        text = json.dumps(job, sort_keys=True)
    else:
        import yaml

        class Dumper(yaml.SafeDumper):
            """Writes repeated values out, instead of referring to the first."""

            def ignore_aliases(self, data: Any) -> bool:
                return True

        documents = [job["pipelineSpec"], *([platform] if platform else [])]
        text = yaml.dump_all(documents, Dumper=Dumper, sort_keys=True, allow_unicode=True)
    write_text(output, text)


def parse_resources(text: str) -> tuple[str, Resources]:
    """Returns (component id, `Resources`) of `Trainer=cpu:8,memory:32`.

    Raises:
        RecipeError: it does not have that form.
    """
    component, separator, limits = text.partition("=")
    amounts = dict(re.findall(r"(?:^|,)(cpu|memory):([0-9]+(?:\.[0-9]+)?)(?=,|$)", limits))
    if not separator or not component or not amounts or len(amounts) != limits.count(",") + 1:
        raise RecipeError(
            "--resources needs ID=cpu:CORES,memory:GB, for example Trainer=cpu:8,memory:32; got "
            f"'{text}'."
        )
    return component, Resources(**{key: float(value) for key, value in amounts.items()})


def parse_secret(text: str) -> Secret:
    """Returns the secret of `VARIABLE=NAME/KEY`, a variable, or of `/path=NAME`, a folder.

    Raises:
        RecipeError: it has neither form.
    """
    place, _, secret = text.partition("=")
    name, _, key = secret.partition("/")
    legal = re.fullmatch(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", name)
    if legal and place.startswith("/") and not key:
        return Secret(name, path=place)
    if legal and key and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", place):
        return Secret(name, key, variable=place)
    raise RecipeError(
        "--secret needs VARIABLE=NAME/KEY for an environment variable, or /FOLDER=NAME for "
        f"files; got '{text}'."
    )
