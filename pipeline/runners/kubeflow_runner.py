"""Writes a recipe's pipeline as a Kubeflow Pipelines (v2) file."""

import dataclasses
import json
import pathlib
import re

from pipeline.recipes import loading
from pipeline.recipes.fields import RecipeError

DEFAULT_IMAGE = "verbatim-text:latest"
DEFAULT_ROOT = "gs://your-bucket/verbatim"
# What Kubernetes calls it; Vertex AI has names of its own, such as NVIDIA_TESLA_T4.
DEFAULT_GPU = "nvidia.com/gpu"
#: The parameter of the pipeline that names the data, where it is one.
DATA_PARAMETER = "data"
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


#: What a training needs where nothing else is said.
TRAINER_RESOURCES = Resources(cpu=4.0, memory=16.0)


def compile_pipeline(
    recipe,
    output,
    data_path,
    pipeline_root=DEFAULT_ROOT,
    image=DEFAULT_IMAGE,
    component_images=None,
    gpu_count=1,
    gpu_type=DEFAULT_GPU,
    resources=None,
    retries=2,
    enable_cache=True,
    data_parameter=False,
    secrets=(),
    beam_args=(),
):
    """Compiles the pipeline with TFX's KubeflowV2DagRunner, and adds what that does not know of.

    Args:
        recipe: a `Recipe`.
        output: the `.yaml` or `.json` file to write; JSON has no place for secrets.
        data_path: the data as the cluster sees it, such as `gs://bucket/pairs.tsv`.
        pipeline_root: folder of the artifacts, as the cluster sees it; models are pushed to
            `ROOT/models/NAME`.
        image: container image of all components, built with the project's Dockerfile.
        component_images: dict from component id (`"Trainer"`) to another image.
        gpu_count: GPUs of each Trainer, and of the Tuner; 0 for none.
        gpu_type: the cluster's name of the GPU.
        resources: dict from component id to `Resources`; Trainers and the Tuner have
            `TRAINER_RESOURCES` by default.
        retries: how often a task that failed is tried again; a training goes on from its
            checkpoint.
        enable_cache: whether tasks of which nothing changed are taken from an earlier run.
        data_parameter: whether the data are a parameter of the pipeline, asked for when a run is
            started, `data_path` being its default; they are then a folder.
        secrets: `Secret`s.
        beam_args: options for Beam, such as `--runner=DataflowRunner`.

    Returns:
        The path written.

    Raises:
        RecipeError: an image or resources for a component that the pipeline does not have, fewer
            than 0 GPUs or retries, a file as a parameter, secrets in JSON.
    """
    output = pathlib.Path(output)
    _check(recipe, output, data_path, gpu_count, retries, data_parameter, secrets)
    from tfx.orchestration import data_types
    from tfx.orchestration.kubeflow.v2 import kubeflow_v2_dag_runner

    from components.last_pushed_model.component import LastPushedModel
    from pipeline import graph

    push_directory = f"{pipeline_root.rstrip('/')}/models/{recipe.name}"
    accelerator = {"type": gpu_type, "count": str(gpu_count)} if gpu_count else None
    recipe = loading.with_database_path(recipe, data_path)
    if data_parameter:
        data_path = data_types.RuntimeParameter(name=DATA_PARAMETER, ptype=str, default=data_path)
    tfx_pipeline = graph.create_pipeline(
        # Kubeflow allows lower-case letters, digits and dashes.
        pipeline_name=recipe.name.lower().replace("_", "-"),
        pipeline_root=pipeline_root,
        recipe=recipe,
        data_path=data_path,
        push_directory=push_directory,
        beam_args=beam_args,
        enable_cache=enable_cache,
        # Each run has folders of its own there; a training is known by what it is made from,
        # whichever run began it.
        checkpoint_directory=f"{pipeline_root.rstrip('/')}/checkpoints",
        # Kubeflow's own back end has no Resolvers.
        resolve_blessed=lambda candidate: LastPushedModel(candidate, push_directory),
    )
    ids = [component.id for component in tfx_pipeline.components]
    images = {kubeflow_v2_dag_runner._DEFAULT_IMAGE_PATH_KEY: image, **(component_images or {})}
    trainers = [name for name in ids if name.split(".")[0] in ("Trainer", "Tuner")]
    limits = {**dict.fromkeys(trainers, TRAINER_RESOURCES), **(resources or {})}
    for option, named in (
        ("--component-image", component_images or {}),
        ("--resources", resources or {}),
    ):
        for component in named:
            if component not in ids:
                raise RecipeError(
                    f"{option} names '{component}', but the pipeline has {', '.join(ids)}."
                )
    runner = kubeflow_v2_dag_runner.KubeflowV2DagRunner(
        # Kubeflow's own back end reads the constants of the newer schema alone; Vertex AI reads
        # both.
        config=kubeflow_v2_dag_runner.KubeflowV2DagRunnerConfig(
            default_image=images, use_pipeline_spec_2_1=True
        )
    )
    job = runner.run(tfx_pipeline, write_out=False)
    spec = job["pipelineSpec"]
    labels = {name: component["executorLabel"] for name, component in spec["components"].items()}
    executors = spec["deploymentSpec"]["executors"]
    for name, label in labels.items():
        _limit(
            executors[label]["container"],
            limits.get(name),
            accelerator if name in trainers else None,
        )
    for task in spec["root"]["dag"]["tasks"].values():
        if retries:
            task["retryPolicy"] = {"maxRetryCount": retries, **_RETRY}
    # Where Kubeflow keeps artifacts by itself TensorFlow may be unable to read.
    spec["defaultPipelineRoot"] = pipeline_root
    if data_parameter:
        # TFX leaves its default to who starts a run.
        spec["root"]["inputDefinitions"]["parameters"][DATA_PARAMETER].update(
            {
                "defaultValue": data_path.default,
                "isOptional": True,
                "description": "the folder of the data",
            }
        )
    _write(output, job, _platform(executors, secrets))
    return output


def _check(recipe, output, data_path, gpu_count, retries, data_parameter, secrets):
    if gpu_count < 0:
        raise RecipeError(f"The number of GPUs must be 0 or more; got {gpu_count}.")
    if retries < 0:
        raise RecipeError(f"The number of retries must be 0 or more; got {retries}.")
    if output.suffix == ".json" and secrets:
        raise RecipeError(
            "Secrets stand in a part of the file that JSON has no place for: write "
            f"{output.stem}.yaml."
        )
    if data_parameter and not recipe.data.train_files and re.search(r"[.,][^/]*$", data_path):
        raise RecipeError(
            f"As a parameter of the pipeline the data must be a folder; {data_path} reads like "
            "files."
        )


def _limit(container, resources, accelerator):
    """Puts the limits of a component in its container."""
    limits = {}
    if resources is not None:
        limits = {"cpuLimit": float(resources.cpu), "memoryLimit": float(resources.memory)}
    limits = {key: value for key, value in limits.items() if value}
    if accelerator:
        limits["accelerator"] = accelerator
    if limits:
        container["resources"] = limits


def _platform(executors, secrets):
    """Returns the part of the file that only Kubernetes understands, or None where there is nothing
    to say.
    """
    if not secrets:
        return None
    given = {}
    variables = [secret for secret in secrets if secret.variable]
    if variables:
        given["secretAsEnv"] = [
            {
                "secretName": secret.name,
                "keyToEnv": [{"secretKey": secret.key, "envVar": secret.variable}],
            }
            for secret in variables
        ]
    mounted = [secret for secret in secrets if secret.path]
    if mounted:
        given["secretAsVolume"] = [
            {"secretName": secret.name, "mountPath": secret.path} for secret in mounted
        ]
    return {
        "platforms": {
            "kubernetes": {"deploymentSpec": {"executors": dict.fromkeys(executors, given)}}
        }
    }


def _write(output, job, platform):
    """Writes the file: YAML with a document for the pipeline and one for the platform, or JSON."""
    output.parent.mkdir(parents=True, exist_ok=True)
    if output.suffix == ".json":
        text = json.dumps(job, sort_keys=True)
    else:
        import yaml

        class Dumper(yaml.SafeDumper):
            """Writes out what stands in several places, instead of referring to the first."""

            def ignore_aliases(self, data):
                return True

        documents = [job["pipelineSpec"], *([platform] if platform else [])]
        text = yaml.dump_all(documents, Dumper=Dumper, sort_keys=True, allow_unicode=True)
    output.write_text(text, encoding="utf-8")


def parse_resources(text):
    """Returns (component id, `Resources`) of `Trainer=cpu:8,memory:32`.

    Raises:
        RecipeError: it does not read like that.
    """
    component, separator, limits = text.partition("=")
    found = dict(re.findall(r"(?:^|,)(cpu|memory):([0-9]+(?:\.[0-9]+)?)(?=,|$)", limits))
    if not separator or not component or not found or len(found) != limits.count(",") + 1:
        raise RecipeError(
            "--resources needs ID=cpu:CORES,memory:GB, for example Trainer=cpu:8,memory:32; got "
            f"'{text}'."
        )
    return component, Resources(**{key: float(value) for key, value in found.items()})


def parse_secret(text):
    """Returns the `Secret` of `VARIABLE=NAME/KEY`, an environment variable, or of `/path=NAME`, a
    folder.

    Raises:
        RecipeError: it does not read like either.
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
