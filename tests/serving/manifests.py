"""The files of serving/deploy: manifests rendered as kustomize does, and the flags in them."""

import copy
import pathlib
import re

import yaml

DEPLOY = pathlib.Path(__file__).resolve().parents[2] / "serving" / "deploy"
CONFIG = DEPLOY / "config"
OVERLAYS = ("base", "gpu")


def load(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def merge(document, patch):
    """Applies a strategic merge patch.

    Maps are merged, lists of named things by their names; other lists are replaced.
    """
    if isinstance(document, dict) and isinstance(patch, dict):
        return {
            **document,
            **{key: merge(document.get(key), value) for key, value in patch.items()},
        }
    if isinstance(document, list) and all(
        isinstance(item, dict) and "name" in item for item in [*document, *patch]
    ):
        patches = {item["name"]: item for item in patch}
        merged = [merge(item, patches.pop(item["name"], {})) for item in document]
        return merged + list(patches.values())
    return copy.deepcopy(patch)


def render(folder):
    """Returns the documents of a kustomization by kind, as kustomize makes them.

    Only the hash in the ConfigMap's name is missing.
    """
    kustomization = load(folder / "kustomization.yaml")
    assert (kustomization.pop("apiVersion"), kustomization.pop("kind")) == (
        "kustomize.config.k8s.io/v1beta1",
        "Kustomization",
    )
    documents = {}
    for name in kustomization.pop("resources", ()):
        path = folder / name
        documents |= render(path) if path.is_dir() else {load(path)["kind"]: load(path)}
    for generator in kustomization.pop("configMapGenerator", ()):
        data = {name: (folder / name).read_text(encoding="utf-8") for name in generator["files"]}
        documents["ConfigMap"] = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": generator["name"]},
            "data": data,
        }
    for patch in kustomization.pop("patches", ()):
        patch = load(folder / patch["path"])
        document = documents[patch["kind"]]
        assert document["metadata"]["name"] == patch["metadata"]["name"]
        documents[patch["kind"]] = merge(document, patch)
    for image in kustomization.pop("images", ()):
        (container,) = documents["Deployment"]["spec"]["template"]["spec"]["containers"]
        name, _, _ = container["image"].partition(":")
        assert name == image["name"]
        container["image"] = f"{name}:{image['newTag']}"
    assert not kustomization, f"render() does not know {sorted(kustomization)}"
    return documents


def manifests(overlay):
    return render(DEPLOY / "kubernetes" / overlay)


def pod_of(documents):
    return documents["Deployment"]["spec"]["template"]["spec"]


def container_of(documents):
    (container,) = pod_of(documents)["containers"]
    return container


def flags_of(command):
    """Returns the flags of a command line as a dict."""
    program, *flags = command
    assert program == "tensorflow_model_server" and all(
        re.fullmatch(r"--\w+=\S+", flag) for flag in flags
    )
    pairs = [flag.removeprefix("--").split("=", 1) for flag in flags]
    assert len(dict(pairs)) == len(pairs), "a flag is given twice"
    return dict(pairs)


def kubernetes_flags(documents):
    container = container_of(documents)
    return flags_of([*container["command"], *container["args"]])


def compose_services():
    return {
        service["profiles"][0]: service
        for service in load(DEPLOY / "compose.yaml")["services"].values()
    }


def compose_flags(service):
    return flags_of([*service["entrypoint"], *service["command"]])
