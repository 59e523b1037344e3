"""Does what a container of a compiled Kubeflow pipeline does, in this process."""

import json

from google.protobuf import json_format


def invocation(spec, name, folder, inputs=None):
    """What Kubeflow puts in place of `{{$}}` in a container's arguments.

    Args:
        spec: the pipeline specification as a dict.
        name: the task, such as `"Vocabulary"`.
        folder: where its outputs go, a folder each.
        inputs: dict from input artifact to (URI, metadata dict).

    Returns:
        Dict: the ExecutorInput; its output file is `folder/task/executor_output.json`.
    """
    task = spec["root"]["dag"]["tasks"][name]
    component = spec["components"][task["componentRef"]["name"]]
    parameters = task.get("inputs", {}).get("parameters", {})

    def artifact(key, definition, uri, metadata):
        one = {"name": key, "uri": str(uri), "type": definition["artifactType"], "metadata": metadata}
        return {"artifacts": [one]}

    definitions = component.get("inputDefinitions", {}).get("artifacts", {})
    return {
        "inputs": {
            "parameters": {key: value["runtimeValue"]["constantValue"] for key, value in parameters.items()},
            "artifacts": {key: artifact(key, definitions[key], *value) for key, value in (inputs or {}).items()},
        },
        "outputs": {
            "artifacts": {
                key: artifact(key, definition, folder / key, {})
                for key, definition in component["outputDefinitions"]["artifacts"].items()
            },
            "outputFile": str(folder / "task" / "executor_output.json"),
        },
    }


def run_driver(invocation):
    """Runs the driver of an example gen; returns what it wrote, as a dict."""
    from tfx.orchestration.kubeflow.v2.file_based_example_gen import driver

    driver.main(driver._parse_flags(["--json_serialized_invocation_args", json.dumps(invocation)]))
    return _output(invocation)


def run_container(spec, name, invocation):
    """Runs the executor with the very arguments of the compiled container; returns the ExecutorOutput proto."""
    from kfp.pipeline_spec import pipeline_spec_pb2
    from tfx.orchestration.kubeflow.v2.container import kubeflow_v2_run_executor

    container = spec["deploymentSpec"]["executors"][f"{name}_executor"]["container"]
    assert container["command"][-2:] == ["-m", kubeflow_v2_run_executor.__name__]
    arguments = [json.dumps(invocation) if argument == "{{$}}" else argument for argument in container["args"]]
    kubeflow_v2_run_executor.main(kubeflow_v2_run_executor._parse_flags(arguments))
    return json_format.ParseDict(_output(invocation), pipeline_spec_pb2.ExecutorOutput())


def _output(invocation):
    with open(invocation["outputs"]["outputFile"], encoding="utf-8") as file:
        return json.load(file)
