"""Does what Kubeflow does with a compiled pipeline:
fills in what its containers are told, and runs them, drivers included.

`run_container` runs one in this process; `run_pipeline` all of them, in order, each as a process of
its own. These processes are forked from one that has imported what all containers begin with: an
import of TFX takes some ten seconds of a processor.
"""

import graphlib
import json
import multiprocessing
import os
import pathlib
import runpy
import sys

from google.protobuf import json_format

#: What is imported once for all processes: this module, and those that containers and drivers begin
#: with.
PRELOADED = [
    __name__,  # first: a library of the others brings a package `tests` of its own
    "tfx.orchestration.kubeflow.v2.container.kubeflow_v2_run_executor",
    "tfx.orchestration.kubeflow.v2.file_based_example_gen.driver",
    # Last: what is imported is no concern of the forked processes' garbage collectors.
    "tests.frozen",
]


def invocation(spec, name, folder, inputs=None, given=None):
    """What Kubeflow puts in place of `{{$}}` in a container's arguments.

    Args:
        spec: the pipeline specification as a dict.
        name: the task, such as `"Vocabulary"`.
        folder: where its outputs go, a folder each; a path or an address.
        inputs: dict from input artifact to (URI, metadata dict).
        given: dict from a parameter of the pipeline to its value, where that is not its default.

    Returns:
        Dict: the ExecutorInput; its output file is `folder/task/executor_output.json`.
    """
    task = spec["root"]["dag"]["tasks"][name]
    component = spec["components"][task["componentRef"]["name"]]
    parameters = task.get("inputs", {}).get("parameters", {})

    def artifact(key, definition, uri, metadata):
        # Metadata knows an artifact by its name, hence no two may share one.
        one = {
            "name": str(uri),
            "uri": str(uri),
            "type": definition["artifactType"],
            "metadata": metadata,
        }
        return {"artifacts": [one]}

    def value(parameter):
        if "componentInputParameter" in parameter:
            of_pipeline = parameter["componentInputParameter"]
            default = spec["root"]["inputDefinitions"]["parameters"][of_pipeline].get(
                "defaultValue"
            )
            return (given or {}).get(of_pipeline, default)
        # Kubeflow's driver knows `constant` alone, not the `constantValue` of the older schema.
        return parameter["runtimeValue"]["constant"]

    definitions = component.get("inputDefinitions", {}).get("artifacts", {})
    return {
        "inputs": {
            "parameterValues": {key: value(parameter) for key, parameter in parameters.items()},
            "artifacts": {
                key: artifact(key, definitions[key], *value)
                for key, value in (inputs or {}).items()
            },
        },
        "outputs": {
            "artifacts": {
                key: artifact(key, definition, f"{folder}/{key}", {})
                for key, definition in component["outputDefinitions"]["artifacts"].items()
            },
            "outputFile": f"{folder}/task/executor_output.json",
        },
    }


def run_driver(spec, name, invocation):
    """Runs the driver of an example gen; returns what it wrote, as a dict."""
    from tfx.orchestration.kubeflow.v2.file_based_example_gen import driver

    container = spec["deploymentSpec"]["executors"][f"{name}_executor"]["container"]
    driver.main(
        driver._parse_flags(_arguments(container["lifecycle"]["preCacheCheck"], invocation))
    )
    return _output(invocation)


def run_container(spec, name, invocation):
    """Runs the executor with the very arguments of the compiled container;
    returns the ExecutorOutput proto.
    """
    from kfp.pipeline_spec import pipeline_spec_pb2
    from tfx.orchestration.kubeflow.v2.container import kubeflow_v2_run_executor

    container = spec["deploymentSpec"]["executors"][f"{name}_executor"]["container"]
    assert container["command"][-2:] == ["-m", kubeflow_v2_run_executor.__name__]
    kubeflow_v2_run_executor.main(
        kubeflow_v2_run_executor._parse_flags(_arguments(container, invocation))
    )
    return json_format.ParseDict(_output(invocation), pipeline_spec_pb2.ExecutorOutput())


def run_pipeline(spec, folder, root=None, ended=None):
    """Runs every task's container, its driver first, when all tasks that it depends on have ended.

    Nothing is tried again, whatever its policy of retries: a failure shall be seen.

    Args:
        spec: the pipeline specification as a dict, compiled for paths of this machine.
        folder: where the tasks' logs go, and their outputs, a folder each.
        root: where the outputs go instead, such as `gs://bucket/tasks`.
        ended: function of a task's name; called when that task has ended.

    Returns:
        Dict from task to a dict from output artifact to (URI, metadata dict).

    Raises:
        AssertionError: a container failed; the message is the end of what it printed.
    """
    tasks = spec["root"]["dag"]["tasks"]
    folder.mkdir(parents=True)
    outputs = {}
    for name in graphlib.TopologicalSorter(
        {name: task.get("dependentTasks", ()) for name, task in tasks.items()}
    ).static_order():
        sources = tasks[name].get("inputs", {}).get("artifacts", {})
        inputs = {}
        for key, source in sources.items():
            source = source["taskOutputArtifact"]
            inputs[key] = outputs[source["producerTask"]][source["outputArtifactKey"]]
        told = invocation(spec, name, f"{root or folder}/{name}", inputs)
        label = spec["components"][tasks[name]["componentRef"]["name"]]["executorLabel"]
        container = spec["deploymentSpec"]["executors"][label]["container"]
        if "lifecycle" in container:
            driver = container["lifecycle"]["preCacheCheck"]
            run_apart(name, driver, told, folder / f"{name}.driver.log")
            # What the driver found about the inputs stands in the outputs that the executor is
            # given.
            for key, found in _output(told).get("artifacts", {}).items():
                told["outputs"]["artifacts"][key]["artifacts"][0]["metadata"] = found["artifacts"][
                    0
                ]["metadata"]
        run_apart(name, container, told, folder / f"{name}.log")
        outputs[name] = {
            key: (found["artifacts"][0]["uri"], found["artifacts"][0].get("metadata", {}))
            for key, found in _output(told)["artifacts"].items()
        }
        if ended:
            ended(name)
    return outputs


def run_apart(name, container, invocation, log):
    """Runs a container's command in a process of its own;
    the image's Python and its installed packages are this environment's.

    Raises:
        AssertionError: it failed; the message is the end of what it printed.
    """
    command, option, module = container["command"]
    assert (command, option) == ("python", "-m")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        PRELOADED
    )  # heard by the first process alone, which starts the server
    process = context.Process(
        target=_run_module,
        args=(module, _arguments(container, invocation), str(log), dict(os.environ)),
    )
    process.start()
    process.join()
    printed = log.read_text(encoding="utf-8", errors="replace")
    assert process.exitcode == 0, f"{name} ended with status {process.exitcode}:\n{printed[-4000:]}"


def _run_module(module, arguments, log, environment):
    """What `python -m module` does, in a forked process, with what it prints in a file."""
    with open(log, "w", encoding="utf-8") as file, open(os.devnull, encoding="utf-8") as nothing:
        for source, target in ((nothing, 0), (file, 1), (file, 2)):
            os.dup2(source.fileno(), target)
    # The server that forks may be older than what the caller has set since.
    os.environ.update(environment)
    os.chdir(pathlib.Path(__file__).parents[1])  # what the image has as its working directory
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _arguments(container, invocation):
    return [
        json.dumps(invocation) if argument == "{{$}}" else argument
        for argument in container["args"]
    ]


def _output(invocation):
    path = invocation["outputs"]["outputFile"]
    if "://" in path:
        import tensorflow as tf

        return json.loads(tf.io.gfile.GFile(path).read())
    with open(path, encoding="utf-8") as file:
        return json.load(file)
