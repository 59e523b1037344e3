"""The TFJob of the guide: the operator's fields, Kubernetes' schema, the command's options.

No package has the schema of the CRD; the fields are those of the models of kubeflow-training 1.9.4.
"""

import copy
import pathlib
import re

import kubernetes_validate
import pytest
import yaml

from pipeline.commands import main
from pipeline.recipes import loading

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "guides" / "workers.md"
JOB_FIELDS = {"apiVersion", "kind", "metadata", "spec", "status"}
SPEC_FIELDS = {"enableDynamicWorker", "runPolicy", "successPolicy", "tfReplicaSpecs"}
RUN_POLICY = {
    "activeDeadlineSeconds": int,
    "backoffLimit": int,
    "cleanPodPolicy": str,
    "managedBy": str,
    "schedulingPolicy": dict,
    "suspend": bool,
    "ttlSecondsAfterFinished": int,
}
REPLICA_TYPES = {"PS", "Worker", "Chief", "Master", "Evaluator"}
REPLICA_FIELDS = {"replicas", "restartPolicy", "template"}
RESTART_POLICIES = {"Always", "OnFailure", "Never", "ExitCode"}
CLEAN_POLICIES = {"All", "Running", "None"}
SCHEMA = kubernetes_validate.latest_version().rpartition(".")[0]


def job_of_the_guide():
    (block,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return yaml.safe_load(block)


def check(job):
    """Fails where the operator would refuse a job, or start something else than is meant."""
    assert set(job) <= JOB_FIELDS
    assert (job["apiVersion"], job["kind"]) == ("kubeflow.org/v1", "TFJob")
    assert set(job["spec"]) <= SPEC_FIELDS
    for name, value in job["spec"]["runPolicy"].items():
        assert type(value) is RUN_POLICY[name]
    assert job["spec"]["runPolicy"]["cleanPodPolicy"] in CLEAN_POLICIES
    for kind, replicas in job["spec"]["tfReplicaSpecs"].items():
        assert kind in REPLICA_TYPES and set(replicas) == REPLICA_FIELDS
        assert type(replicas["replicas"]) is int
        assert replicas["restartPolicy"] in RESTART_POLICIES
        assert set(replicas["template"]) <= {"metadata", "spec"}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": job["metadata"],
            "spec": replicas["template"]["spec"],
        }
        assert kubernetes_validate.validate(pod, SCHEMA, strict=True) == SCHEMA
        # The operator sets TF_CONFIG in the container of this name alone.
        assert "tensorflow" in [one["name"] for one in pod["spec"]["containers"]]


def test_the_operator_takes_the_job():
    job = job_of_the_guide()
    check(job)
    workers = job["spec"]["tfReplicaSpecs"]["Worker"]
    # With one there is no TF_CONFIG; with another policy nobody comes back.
    assert workers["replicas"] == 2 and workers["restartPolicy"] == "OnFailure"


@pytest.mark.parametrize(
    "path,value",
    [
        (("spec", "runPolicy", "backofLimit"), 3),
        (("spec", "runPolicy", "backoffLimit"), "3"),
        (("spec", "tfReplicaSpecs", "Worker", "restartPolicy"), "OnError"),
        (("spec", "tfReplicaSpecs", "Worker", "template", "spec", "volume"), []),
        (("spec", "tfReplicaSpecs", "Worker", "template", "spec", "containers", 0, "name"), "a"),
        (("spec", "tfReplicaSpecs", "Worker", "template", "spec", "containers", 0, "image"), 1),
        (("apiVersion",), "kubeflow.org/v2"),
    ],
)
def test_a_slip_in_the_job_is_found(path, value):
    job = copy.deepcopy(job_of_the_guide())
    place = job
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises((AssertionError, KeyError, kubernetes_validate.ValidationError)):
        check(job)


def test_its_command_is_one_of_verbatim_on_the_shared_volume():
    job = job_of_the_guide()
    pod = job["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]
    (container,) = pod["containers"]
    program, *words = [*container["command"], *container["args"]]
    assert program == "verbatim"
    options = main._parser(words).parse_args(words)
    assert options.command.__name__ == "pipeline.commands.run"
    assert options.worker_patience == 1800
    loading.load_recipe(options.recipe, options.set)
    (mount,) = container["volumeMounts"]
    (volume,) = pod["volumes"]
    assert mount["name"] == volume["name"]
    for path in (options.data, options.output):
        assert path.startswith(f"{mount['mountPath']}/")
