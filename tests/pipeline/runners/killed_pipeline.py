"""The first components of a pipeline, killed in one and then in the other, and run again:
a program, run by `test_killed_pipeline.py`.

    killed_pipeline.py FOLDER

Each run is a fork, so that TFX is imported once. FOLDER gets `runs.json`, for each run: the signal
that ended it, which executions have left a folder by then, by component, and which of these are
outputs of a finished one.
"""

import json
import os
import pathlib
import signal
import sys

NAME = "tiny"


def main(folder):
    # Here, for all forks.
    from tfx.orchestration import metadata  # noqa: F401
    from tfx.orchestration import pipeline as tfx_pipeline  # noqa: F401
    from tfx.orchestration.local import local_dag_runner  # noqa: F401

    from components.parallel_text_example_gen import component  # noqa: F401
    from components.vocabulary import component as vocabulary  # noqa: F401

    data = folder / "pairs.tsv"
    data.write_text(
        "source\ttarget\n" + "".join(f"one {number}\tun {number}\n" for number in range(100))
    )
    runs = [
        run_in_fork(folder, data, killed)
        for killed in ("ParallelTextExampleGen", "Vocabulary", None, None)
    ]
    (folder / "runs.json").write_text(json.dumps(runs))


def run_in_fork(folder, data, killed):
    child = os.fork()
    if not child:
        status = 1
        try:
            run(folder, data, killed)
            status = 0
        finally:
            sys.stderr.flush()
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, f"The run failed: {status}."
    made = {
        path.name: sorted(map(int, os.listdir(next(path.glob("[a-z]*")))))
        for path in (folder / "root").iterdir()
    }
    return {
        "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0,
        "made": made,
        **finished_in_fork(folder),
    }


def finished_in_fork(folder):
    """Returns, by component, the number of the execution whose outputs are the component's."""
    read, write = os.pipe()
    if not os.fork():
        from tfx.orchestration import metadata

        from pipeline.runners import lineage

        outputs = lineage.latest_outputs(
            metadata.sqlite_metadata_connection_config(str(folder / "metadata.sqlite")), NAME
        )
        found = {
            name: int(os.path.basename(next(iter(uris.values())))) for name, uris in outputs.items()
        }
        os.write(write, json.dumps({"finished": found}).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as file:
        found = json.loads(file.read())
    os.wait()
    return found


def run(folder, data, killed):
    from tfx.orchestration import metadata
    from tfx.orchestration import pipeline as tfx_pipeline
    from tfx.orchestration.local.local_dag_runner import LocalDagRunner

    from components.parallel_text_example_gen.component import ParallelTextExampleGen
    from components.vocabulary.component import Vocabulary
    from pipeline.recipes import views
    from pipeline.recipes.recipe import recipe_from_dict

    recipe = recipe_from_dict({"name": NAME})
    example_gen = ParallelTextExampleGen(data_path=str(data), data=recipe.data)
    vocabulary = Vocabulary(
        examples=example_gen.outputs["examples"],
        config=recipe.vocabulary,
        settings=views.vocabulary_settings(recipe),
    )
    for component in (example_gen, vocabulary):
        if component.id == killed:
            die_after(component.executor_spec.executor_class)
    LocalDagRunner().run(
        tfx_pipeline.Pipeline(
            pipeline_name=NAME,
            pipeline_root=str(folder / "root"),
            metadata_connection_config=metadata.sqlite_metadata_connection_config(
                str(folder / "metadata.sqlite")
            ),
            components=[example_gen, vocabulary],
            enable_cache=True,
        )
    )


def die_after(executor):
    """The worst moment: all is written, and nobody knows."""
    do = executor.Do

    def do_and_die(self, *arguments):
        do(self, *arguments)
        os.kill(os.getpid(), signal.SIGKILL)

    executor.Do = do_and_die


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
