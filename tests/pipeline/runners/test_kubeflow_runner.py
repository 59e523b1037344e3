"""The compiled pipeline:
valid for Kubeflow, with the right images and GPUs, and its containers do run.
"""

import json

import pytest
import yaml

from pipeline.recipes import loading
from pipeline.recipes.fields import RecipeError
from pipeline.runners import kubeflow_runner
from pipeline.runners.kubeflow_runner import ClusterSettings, Resources, Secret
from tests import kubeflow
from tests.components.test_vocabulary import SPECIAL, write_examples

COMPONENTS = {
    *(
        "ParallelTextExampleGen",
        "StatisticsGen",
        "SchemaGen",
        "ExampleValidator",
        "Vocabulary",
        "TextTransform",
    ),
    *(
        "Trainer",
        "Trainer.baseline",
        "Exporter",
        "Exporter.baseline",
        "Evaluator",
        "Pusher",
        "Reporter",
    ),
}
TRAINERS = {"Trainer", "Trainer.baseline"}
SMALL = ("vocabulary.min_count=1", "vocabulary.protected_min_count=2")


@pytest.mark.parametrize("scheme", ["s3", "minio"])
def test_buckets_that_tensorflow_cannot_read(tmp_path, scheme):
    recipe = loading.load_recipe("localization_en_fr", SMALL)
    address = f"{scheme}://mlpipeline/v2"
    at_root = kubeflow_runner.ClusterSettings(pipeline_root=address)
    good = kubeflow_runner.ClusterSettings()
    for option, data, settings in (
        ("--pipeline-root", "gs://bucket/data", at_root),
        ("--data", address, good),
    ):
        with pytest.raises(RecipeError, match=f"{option} is at {scheme}://, which TensorFlow"):
            kubeflow_runner.compile_pipeline(recipe, tmp_path / "p.yaml", data, settings)
    assert not list(tmp_path.iterdir())


def compiled(path, overrides=SMALL, data_path="gs://bucket/pairs.tsv", **settings):
    """Compiles the demo's recipe; returns the specification as a dict."""
    recipe = loading.load_recipe("localization_en_fr", overrides)
    settings = ClusterSettings(**settings)
    assert kubeflow_runner.compile_pipeline(recipe, path, data_path, settings) == path
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def spec(tmp_path_factory):
    """The specification with defaults."""
    return compiled(tmp_path_factory.mktemp("compiled") / "new" / "pipeline.yaml")


def containers(spec):
    """Dict from component to its container."""
    executors = spec["deploymentSpec"]["executors"]
    return {
        name.removesuffix("_executor"): executor["container"]
        for name, executor in executors.items()
    }


def test_it_is_a_valid_specification(spec):
    from google.protobuf import json_format
    from kfp.pipeline_spec import pipeline_spec_pb2

    proto = json_format.ParseDict(spec, pipeline_spec_pb2.PipelineSpec())
    assert proto.pipeline_info.name == "localization-en-fr"
    assert set(proto.root.dag.tasks) == set(proto.components) == COMPONENTS
    for task in proto.root.dag.tasks.values():
        assert set(task.dependent_tasks) <= COMPONENTS
    assert set(proto.root.dag.tasks["Pusher"].dependent_tasks) == {"Exporter", "Evaluator"}


def test_every_component_has_the_image_and_an_importable_executor(spec):
    import importlib

    assert set(containers(spec)) == COMPONENTS
    for container in containers(spec).values():
        assert container["image"] == "verbatim-text:latest"
        path = container["args"][container["args"].index("--executor_class_path") + 1]
        module, name = path.rsplit(".", 1)
        assert hasattr(importlib.import_module(module), name)


def test_a_component_may_have_an_image_of_its_own(tmp_path):
    images = {"Trainer": "repository/gpu:1", "Trainer.baseline": "repository/gpu:2"}
    got = containers(
        compiled(tmp_path / "p.yaml", image="repository/cpu:1", component_images=images)
    )
    assert {name: container["image"] for name, container in got.items()} == {
        **dict.fromkeys(COMPONENTS, "repository/cpu:1"),
        **images,
    }


def test_only_trainers_ask_for_a_gpu(spec):
    for name, container in containers(spec).items():
        if name in TRAINERS:
            assert container["resources"] == {
                "accelerator": {"count": "1", "type": "nvidia.com/gpu"},
                "cpuLimit": 4.0,
                "memoryLimit": 16.0,
            }
        else:
            assert "resources" not in container


def test_gpus_can_be_chosen_or_left_out(tmp_path):
    got = containers(compiled(tmp_path / "two.yaml", gpu_count=2, gpu_type="nvidia-l4"))
    assert got["Trainer"]["resources"]["accelerator"] == {"count": "2", "type": "nvidia-l4"}
    for container in containers(compiled(tmp_path / "none.yaml", gpu_count=0)).values():
        assert "accelerator" not in container.get("resources", {})


def test_wrong_calls_are_one_sentence(tmp_path):
    with pytest.raises(RecipeError, match="names 'Trainr', but the pipeline has .*Trainer.*"):
        compiled(tmp_path / "p.yaml", component_images={"Trainr": "x"})
    with pytest.raises(
        RecipeError, match="--resources names 'Trainr', but the pipeline has .*Trainer.*"
    ):
        compiled(tmp_path / "p.yaml", resources={"Trainr": Resources()})
    for keys in ({"gpu_count": -1}, {"retries": -1}):
        with pytest.raises(RecipeError, match="0 or more; got -1"):
            compiled(tmp_path / "p.yaml", **keys)
    with pytest.raises(
        RecipeError, match="must be a folder; gs://bucket/pairs.tsv looks like files"
    ):
        compiled(tmp_path / "p.yaml", data_parameter=True)
    with pytest.raises(RecipeError, match="write p.yaml"):
        compiled(tmp_path / "p.json", secrets=[Secret("a", path="/a")])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "text", ["Trainer", "Trainer=", "=cpu:1", "Trainer=cpu:x", "Trainer=cpu:1,disk:3", "T=cpu:1;"]
)
def test_resources_that_make_no_sense_are_refused(text):
    with pytest.raises(RecipeError, match=r"--resources needs ID=cpu:CORES,memory:GB, .*; got"):
        kubeflow_runner.parse_resources(text)


@pytest.mark.parametrize(
    "text", ["A", "A=", "A=secret", "1A=secret/key", "/a=secret/key", "/a=", "A=Se cret/key"]
)
def test_secrets_that_make_no_sense_are_refused(text):
    with pytest.raises(RecipeError, match=r"--secret needs VARIABLE=NAME/KEY .*; got"):
        kubeflow_runner.parse_secret(text)


def test_components_have_their_limits(tmp_path):
    given = map(
        kubeflow_runner.parse_resources, ["Trainer=cpu:8,memory:32", "Evaluator=memory:4.5"]
    )
    got = containers(compiled(tmp_path / "p.yaml", gpu_count=0, resources=dict(given)))
    assert got["Trainer"]["resources"] == {"cpuLimit": 8.0, "memoryLimit": 32.0}
    assert got["Trainer.baseline"]["resources"] == {"cpuLimit": 4.0, "memoryLimit": 16.0}
    assert got["Evaluator"]["resources"] == {"memoryLimit": 4.5}
    assert "resources" not in got["Pusher"]


def test_failed_tasks_are_tried_again_and_unchanged_ones_cached(spec, tmp_path):
    tasks = spec["root"]["dag"]["tasks"].values()
    assert {task["retryPolicy"]["maxRetryCount"] for task in tasks} == {2}
    assert all(task["cachingOptions"] == {"enableCache": True} for task in tasks)
    bare = compiled(tmp_path / "p.yaml", retries=0, enable_cache=False)["root"]["dag"][
        "tasks"
    ].values()
    assert not any(
        "retryPolicy" in task or task.get("cachingOptions", {}).get("enableCache") for task in bare
    )


def test_secrets_are_named_and_not_written(tmp_path):
    """Kubeflow's own loader reads the file's second document as the platform's part."""
    from kfp import components

    given = [
        kubeflow_runner.parse_secret(text)
        for text in ("AWS_KEY=storage/access-key", "/secrets/gcp=gcp-key")
    ]
    path = tmp_path / "p.yaml"
    recipe = loading.load_recipe("localization_en_fr", SMALL)
    settings = ClusterSettings(secrets=given)
    kubeflow_runner.compile_pipeline(recipe, path, "gs://bucket/pairs.tsv", settings)
    pipeline, platform = yaml.safe_load_all(path.read_text(encoding="utf-8"))
    executors = platform["platforms"]["kubernetes"]["deploymentSpec"]["executors"]
    assert set(executors) == set(pipeline["deploymentSpec"]["executors"])
    for executor in executors.values():
        assert executor == {
            "secretAsEnv": [
                {
                    "secretName": "storage",
                    "keyToEnv": [{"secretKey": "access-key", "envVar": "AWS_KEY"}],
                }
            ],
            "secretAsVolume": [{"secretName": "gcp-key", "mountPath": "/secrets/gcp"}],
        }
    loaded = components.load_component_from_file(str(path))
    assert loaded.name == "localization-en-fr"
    assert "kubernetes" in loaded.platform_spec.platforms


def test_the_data_may_be_a_parameter(tmp_path):
    from kfp import components

    path = tmp_path / "p.yaml"
    spec = compiled(path, data_path="gs://bucket/data", data_parameter=True)
    assert (
        spec["root"]["inputDefinitions"]["parameters"]["data"]["defaultValue"] == "gs://bucket/data"
    )
    inputs = spec["root"]["dag"]["tasks"]["ParallelTextExampleGen"]["inputs"]["parameters"]
    for name in ("data_path", "input_base"):
        assert inputs[name] == {"componentInputParameter": "data"}
    (parameter,) = components.load_component_from_file(str(path)).component_spec.inputs.items()
    assert parameter[0] == "data" and parameter[1].default == "gs://bucket/data"


@pytest.mark.slow
def test_another_folder_of_data_is_read_when_a_run_is_started(tmp_path):
    """Driver and executor read what the run was started with, not the path in the file."""
    (tmp_path / "data").mkdir()
    lines = [f"Open the file {number}\tOuvrir le fichier {number}\n" for number in range(40)]
    (tmp_path / "data" / "pairs.tsv").write_text("".join(lines), encoding="utf-8")
    spec = compiled(
        tmp_path / "p.yaml", ("data.format=tsv",), data_path="gs://bucket/none", data_parameter=True
    )
    given = {"data": str(tmp_path / "data")}
    invocation = kubeflow.invocation(spec, "ParallelTextExampleGen", tmp_path / "out", given=given)
    assert "num_files:1" in json.dumps(
        kubeflow.run_driver(spec, "ParallelTextExampleGen", invocation)
    )
    output = kubeflow.run_container(spec, "ParallelTextExampleGen", invocation)
    counts = json.loads((tmp_path / "out" / "rejects" / "counts.json").read_text(encoding="utf-8"))
    assert set(output.artifacts) == {"examples", "rejects"} and counts["read"] == 40


def test_settings_reach_the_cluster(tmp_path):
    spec = compiled(
        tmp_path / "p.yaml",
        ("name=My_Recipe", "baseline.head=", "training.epochs=3"),
        pipeline_root="gs://bucket/root/",
        beam_args=["--runner=DataflowRunner"],
    )
    assert spec["pipelineInfo"]["name"] == "my-recipe"
    assert set(spec["root"]["dag"]["tasks"]) == COMPONENTS - {
        "Trainer.baseline",
        "Exporter.baseline",
    }
    assert "--runner=DataflowRunner" in json.dumps(containers(spec)["Vocabulary"]["args"])

    def constants(name):
        parameters = spec["root"]["dag"]["tasks"][name]["inputs"]["parameters"]
        return json.dumps([value["runtimeValue"]["constant"] for value in parameters.values()])

    assert "gs://bucket/root/models/My_Recipe" in constants("Pusher")
    assert "gs://bucket/pairs.tsv" in constants("ParallelTextExampleGen")
    assert "epochs" in constants("Trainer") and "pipeline.entry_points.run_fn.run_fn" in constants(
        "Trainer"
    )


def test_the_last_pushed_model_is_looked_up_where_a_change_is_demanded(tmp_path):
    """By a container: Kubeflow's own back end runs no Resolver."""
    spec = compiled(
        tmp_path / "p.yaml",
        ("evaluation.change_thresholds.bleu=-0.5", 'evaluation.slices=["source_length"]'),
        pipeline_root="gs://bucket/root",
    )
    tasks = spec["root"]["dag"]["tasks"]
    assert set(tasks) == set(containers(spec)) == COMPONENTS | {"LastPushedModel"}
    baseline = tasks["Evaluator"]["inputs"]["artifacts"]["baseline_model"]["taskOutputArtifact"]
    assert baseline["producerTask"] == "LastPushedModel"
    inputs = tasks["LastPushedModel"]["inputs"]
    assert inputs["artifacts"]["candidate"]["taskOutputArtifact"]["producerTask"] == "Exporter"
    pushed_to = inputs["parameters"]["push_directory"]["runtimeValue"]["constant"]
    assert pushed_to == "gs://bucket/root/models/localization_en_fr"
    module = tasks["Evaluator"]["inputs"]["parameters"]["module_path"]["runtimeValue"]
    assert module["constant"] == "pipeline.evaluation.extractors"


def test_a_search_is_a_task_that_trains(tmp_path):
    """It has what a Trainer has, and what it finds goes to all that train and export."""
    from google.protobuf import json_format
    from kfp import components
    from kfp.pipeline_spec import pipeline_spec_pb2

    space = ("tuning.trials=3", "tuning.space.training.learning_rate={low=0.001, high=0.01}")
    spec = compiled(tmp_path / "p.yaml", (*SMALL, *space), resources={"Tuner": Resources(cpu=8.0)})
    json_format.ParseDict(spec, pipeline_spec_pb2.PipelineSpec())
    assert (
        components.load_component_from_file(str(tmp_path / "p.yaml")).name == "localization-en-fr"
    )
    tasks = spec["root"]["dag"]["tasks"]
    assert set(tasks) == set(containers(spec)) == COMPONENTS | {"Tuner"}
    given = {"accelerator": {"count": "1", "type": "nvidia.com/gpu"}, "cpuLimit": 8.0}
    assert containers(spec)["Tuner"]["resources"] == given
    assert tasks["Tuner"]["dependentTasks"] == ["SchemaGen", "TextTransform"]
    for name in ("Trainer", "Trainer.baseline", "Exporter", "Exporter.baseline"):
        found = tasks[name]["inputs"]["artifacts"]["hyperparameters"]["taskOutputArtifact"]
        assert found == {"producerTask": "Tuner", "outputArtifactKey": "best_hyperparameters"}
    function = tasks["Tuner"]["inputs"]["parameters"]["tuner_fn"]["runtimeValue"]["constant"]
    assert function == "pipeline.entry_points.tuner.tuner_fn"


def test_json_can_be_written_too(tmp_path):
    path = kubeflow_runner.compile_pipeline(
        loading.load_recipe("localization_en_fr"), tmp_path / "p.json", "gs://bucket/pairs.tsv"
    )
    assert set(json.loads(path.read_text())["pipelineSpec"]["root"]["dag"]["tasks"]) == COMPONENTS


@pytest.mark.slow
def test_the_vocabulary_container_writes_its_files(spec, tmp_path):
    """Runs the compiled container's own arguments on examples, as Kubeflow would."""
    write_examples(
        tmp_path / "examples", [("Open %s, now", "Ouvrez %s"), ("Open Zanzibar", "Ouvrez Zanzibar")]
    )
    metadata = {"split_names": '["train", "eval", "test"]'}
    invocation = kubeflow.invocation(
        spec, "Vocabulary", tmp_path, {"examples": (tmp_path / "examples", metadata)}
    )
    output = kubeflow.run_container(spec, "Vocabulary", invocation)
    assert set(output.artifacts) == {"vocabulary"}
    assert output.artifacts["vocabulary"].artifacts[0].uri == str(tmp_path / "vocabulary")
    source = (
        (tmp_path / "vocabulary" / "source_vocabulary.txt").read_text(encoding="utf-8").split("\n")
    )
    assert source == [*SPECIAL, "Open", "Zanzibar", "now", "￭,", ""]
    target = (
        (tmp_path / "vocabulary" / "target_vocabulary.txt").read_text(encoding="utf-8").split("\n")
    )
    assert target == [*SPECIAL, "Ouvrez", "Zanzibar", ""]
