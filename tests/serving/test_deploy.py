"""serving/deploy: its files match their schemas and each other, and their flags exist."""

import re
import shutil
import subprocess

import check_jsonschema
import kubernetes_validate
import pytest
import yaml
from click.testing import CliRunner

from serving.model_config import read_config_file
from tests.serving.manifests import (
    CONFIG,
    DEPLOY,
    OVERLAYS,
    compose_flags,
    compose_services,
    container_of,
    kubernetes_flags,
    load,
    manifests,
    pod_of,
)

WAIT = 60
OLDEST, NEWEST = "1.30", kubernetes_validate.latest_version().rpartition(".")[0]
# Of TensorFlow Serving's flags (tensorflow_serving/model_servers/main.cc) those that a deployment
# may want. It goes on, with a line in its log, where a flag is not known: a slip would show in
# nothing else.
KNOWN_FLAGS = set(
    """
    port rest_api_port rest_api_num_threads rest_api_timeout_in_ms rest_api_enable_cors_support
    enable_batching batching_parameters_file enable_per_model_batching_parameters
    model_config_file model_config_file_poll_wait_seconds model_name model_base_path
    allow_version_labels_for_unavailable_models num_load_threads num_unload_threads
    max_num_load_retries load_retry_interval_micros file_system_poll_wait_seconds
    flush_filesystem_caches tensorflow_session_parallelism
    tensorflow_intra_op_parallelism tensorflow_inter_op_parallelism
    ssl_config_file per_process_gpu_memory_fraction saved_model_tags grpc_channel_arguments
    grpc_max_threads enable_model_warmup num_request_iterations_for_warmup monitoring_config_file
    remove_unused_fields_from_bundle_metagraph enable_signature_method_name_check
    xla_cpu_compilation_enabled xla_gpu_compilation_enabled enable_grpc_healthcheck_service
    """.split()
)


@pytest.fixture(params=OVERLAYS)
def documents(request):
    return manifests(request.param)


# Schemas


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
def test_manifests_match_the_schema_of_kubernetes(documents, version):
    assert sorted(documents) == [
        "ConfigMap",
        "Deployment",
        "HorizontalPodAutoscaler",
        "NetworkPolicy",
        "PersistentVolumeClaim",
        "PodDisruptionBudget",
        "Service",
    ]
    for document in documents.values():
        assert kubernetes_validate.validate(document, version, strict=True) == version


def test_a_slip_in_a_manifest_is_found():
    for slip in (
        {"imagePullPolcy": "Always"},
        {"ports": [{"containerPort": "8500"}]},
        {"image": 7},
    ):
        documents = manifests("base")
        container_of(documents).update(slip)
        with pytest.raises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(documents["Deployment"], NEWEST, strict=True)


def check_compose(path):
    """Runs check-jsonschema in this process: importing it takes longer than all it does."""
    arguments = ["--builtin-schema", "vendor.compose-spec", str(path)]
    return CliRunner().invoke(check_jsonschema.main, arguments)


def test_the_compose_file_matches_the_schema(tmp_path):
    path = DEPLOY / "compose.yaml"
    done = check_compose(path)
    assert done.exit_code == 0, done.output
    wrong = tmp_path / "compose.yaml"
    wrong.write_text(
        path.read_text().replace("read_only: true\n  tmpfs", "readonly: true\n  tmpfs")
    )
    done = check_compose(wrong)
    assert done.exit_code == 1 and "readonly" in done.output


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_kustomize_renders_the_same(overlay):
    kubectl = shutil.which("kubectl")
    if not kubectl:
        pytest.skip("kubectl is not installed")
    command = [kubectl, "kustomize", str(DEPLOY / "kubernetes" / overlay)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT)
    assert done.returncode == 0, done.stderr
    name = re.search(r"name: (verbatim-serving-\w{10})\n", done.stdout)[1]
    # The name with its hash is what the pods mount.
    assert done.stdout.count(name) == 2
    rendered = yaml.safe_load_all(done.stdout.replace(name, "verbatim-serving"))
    assert {document["kind"]: document for document in rendered} == manifests(overlay)


def test_no_manifest_is_forgotten():
    for kustomization in DEPLOY.rglob("kustomization.yaml"):
        content = load(kustomization)
        named = {name for name in content.get("resources", ()) if name.endswith(".yaml")}
        named |= {patch["path"] for patch in content.get("patches", ())}
        named |= {
            name
            for generator in content.get("configMapGenerator", ())
            for name in generator["files"]
        }
        assert named == {path.name for path in kustomization.parent.iterdir()} - {
            "kustomization.yaml"
        }


# What belongs together


def test_tensorflow_serving_knows_the_flags_and_the_readme_explains_them():
    explained = (DEPLOY / "README.md").read_text(encoding="utf-8")
    commands = [compose_flags(service) for service in compose_services().values()]
    commands += [kubernetes_flags(manifests(overlay)) for overlay in OVERLAYS]
    for flags in commands:
        assert set(flags) <= KNOWN_FLAGS
        for flag in flags:
            assert f"`--{flag}`" in explained


def test_compose_and_kubernetes_say_the_same():
    services = compose_services()
    for profile, overlay in ("cpu", "base"), ("gpu", "gpu"):
        documents = manifests(overlay)
        assert compose_flags(services[profile]) == kubernetes_flags(documents)
        assert services[profile]["image"] == container_of(documents)["image"]
    cpu, gpu = compose_flags(services["cpu"]), compose_flags(services["gpu"])
    assert dict(cpu.items() - gpu.items()) == {"xla_cpu_compilation_enabled": "true"}
    assert dict(gpu.items() - cpu.items()) == {"xla_gpu_compilation_enabled": "true"}


def test_images_are_pinned():
    images = [service["image"] for service in compose_services().values()]
    version = re.fullmatch(r"tensorflow/serving:(\d+\.\d+\.\d+)", images[0])[1]
    assert images[1] == f"{images[0]}-gpu"
    assert f"`tensorflow/serving:{version}` and `{version}-gpu`" in (
        DEPLOY / "README.md"
    ).read_text(encoding="utf-8")


def test_ports_meet(documents):
    flags, container = kubernetes_flags(documents), container_of(documents)
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"grpc": int(flags["port"]), "http": int(flags["rest_api_port"])}
    for port in documents["Service"]["spec"]["ports"]:
        assert ports[port["targetPort"]] == port["port"]
    for probe in "startupProbe", "readinessProbe", "livenessProbe":
        assert container[probe]["grpc"] == {"port": ports["grpc"]}
    assert flags["enable_grpc_healthcheck_service"] == "true"
    (rule,) = documents["NetworkPolicy"]["spec"]["ingress"]
    assert {port["port"] for port in rule["ports"]} == set(ports)
    for service in compose_services().values():
        assert [port.rpartition("}:")[2] for port in service["ports"]] == ["8500:8500", "8501:8501"]


def test_selectors_find_the_pods(documents):
    spec = documents["Deployment"]["spec"]
    labels = spec["template"]["metadata"]["labels"]
    assert spec["selector"]["matchLabels"] == labels == documents["Service"]["spec"]["selector"]
    for kind, key in ("PodDisruptionBudget", "selector"), ("NetworkPolicy", "podSelector"):
        assert documents[kind]["spec"][key]["matchLabels"] == labels
    (spread,) = pod_of(documents)["topologySpreadConstraints"]
    assert spread["labelSelector"]["matchLabels"] == labels
    scaled = documents["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"]
    deployment = documents["Deployment"]
    assert scaled == {
        "apiVersion": deployment["apiVersion"],
        "kind": "Deployment",
        "name": deployment["metadata"]["name"],
    }
    assert "replicas" not in spec  # it would undo at each apply what the autoscaler chose


def test_volumes_hold_what_the_flags_name(documents):
    flags, pod = kubernetes_flags(documents), pod_of(documents)
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    mounts = {mount["mountPath"]: mount for mount in container_of(documents)["volumeMounts"]}
    assert {mount["name"] for mount in mounts.values()} == set(volumes)
    assert volumes["config"]["configMap"]["name"] == documents["ConfigMap"]["metadata"]["name"]
    claim = documents["PersistentVolumeClaim"]["metadata"]["name"]
    assert volumes["models"]["persistentVolumeClaim"] == {"claimName": claim, "readOnly": True}
    assert mounts["/models"]["readOnly"] and mounts["/config"]["readOnly"]
    files = {flag: path for flag, path in flags.items() if flag.endswith("_file")}
    assert sorted(files) == [
        "batching_parameters_file",
        "model_config_file",
        "monitoring_config_file",
    ]
    assert set(files.values()) == {f"/config/{name}" for name in documents["ConfigMap"]["data"]}
    for config in read_config_file(CONFIG / "models.config"):
        assert config.base_path.startswith("/models/")
    for service in compose_services().values():
        assert {volume["target"]: volume["read_only"] for volume in service["volumes"]} == {
            "/models": True,
            "/config": True,
        }
        assert {volume["source"] for volume in service["volumes"]} >= {"./config"}


def test_pods_have_no_rights(documents):
    """The Pod Security Standard "restricted", and nothing that can be written but /tmp."""
    pod, container = pod_of(documents), container_of(documents)
    assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["runAsUser"] > 0
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod["automountServiceAccountToken"] is False
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
    allowed = {"configMap", "emptyDir", "persistentVolumeClaim"}
    assert all(set(volume) - {"name"} <= allowed for volume in pod["volumes"])
    assert {"cpu", "memory"} <= set(container["resources"]["limits"])
    for service in compose_services().values():
        assert service["read_only"] and service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["user"] == "{runAsUser}:{runAsGroup}".format(**pod["securityContext"])
        assert all(port.startswith("${BIND:-127.0.0.1}:") for port in service["ports"])


def test_threads_are_as_many_as_processors(documents):
    flags = kubernetes_flags(documents)
    assert (
        flags["tensorflow_intra_op_parallelism"]
        == container_of(documents)["resources"]["limits"]["cpu"]
    )
    for service in compose_services().values():
        cpus = service["deploy"]["resources"]["limits"]["cpus"]
        assert compose_flags(service)["tensorflow_intra_op_parallelism"] == cpus


def test_the_gpu_variants_have_a_gpu():
    assert container_of(manifests("gpu"))["resources"]["limits"]["nvidia.com/gpu"] == "1"
    reserved = compose_services()["gpu"]["deploy"]["resources"]["reservations"]["devices"]
    assert reserved == [{"driver": "nvidia", "count": 1, "capabilities": ["gpu"]}]
    assert "nvidia.com/gpu" not in container_of(manifests("base"))["resources"]["limits"]
