"""Runs a recipe on this machine with TFX's LocalDagRunner, and fills the run's folder."""

import contextlib
import dataclasses
import errno
import logging
import os
import pathlib
import re
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from pipeline.common import late_imports, progress, tensorflow_settings, whole_files
from pipeline.common.whole_files import write_json
from pipeline.entry_points import cluster_run
from pipeline.lexicons import dictionaries, pretrained_vectors
from pipeline.metrics import sql_execution
from pipeline.readers import synthetic
from pipeline.readers.files import resolve_data_path
from pipeline.recipes import loading
from pipeline.recipes.recipe import Recipe
from pipeline.runners import engine_failure, run_folder
from pipeline.runners.engine import NO_PACKAGE, Engine
from pipeline.runners.run_error import RunError as RunError
from pipeline.tasks import task_of
from pipeline.text import presets
from pipeline.training import meeting
from serving import glossary_files

if TYPE_CHECKING:
    from pipeline.graph import PipelineSettings
    from pipeline.readers.input_plan import InputPlan
    from pipeline.readers.text_streams import StreamPlan
    from pipeline.reporting.facts import RunFacts, Stage

#: The facts that `metrics.json` and `run.json` hold.
METRICS_KEYS = ("systems", "comparison", "slices", "blessed", "blessing_reason")
RUN_KEYS = ("title", "recipe", "versions", "counts", "stages", "seconds", "paths")


@dataclasses.dataclass(frozen=True)
class _Inputs:
    """The inputs of a run.

    Attributes:
        recipe: the recipe, with absolute paths.
        data_path: as the user gave it, or that of generated data.
        plan: the files behind it.
        initial_model: folder of the version whose weights the training starts from, or "".
    """

    recipe: Recipe
    data_path: str
    plan: "InputPlan | StreamPlan"
    initial_model: str


@dataclasses.dataclass(frozen=True)
class _Finished:
    """A pipeline that has run.

    Attributes:
        outputs: folders of artifacts, by component and output.
        stages: the components that ran.
        seconds: how long all took.
    """

    outputs: Mapping[str, Mapping[str, str]]
    stages: "list[Stage]"
    seconds: float


def run(
    recipe: Recipe,
    data_path: str | None,
    output: str | os.PathLike[str],
    beam_args: Sequence[str] = (),
    enable_cache: bool = True,
    engine: Engine | None = None,
    worker_patience: float = meeting.PATIENCE,
) -> "RunFacts":
    """Runs the whole pipeline, and writes its report into the run's folder.

    Where `TF_CONFIG` names several workers, this process must be the first of them; the others call
    `cluster_run.follow`.

    Args:
        recipe: the recipe.
        data_path: a file, a folder, or two line-aligned files separated by a comma; None for the
            recipe's generated data, which are written into the run's folder.
        output: the run's folder; a second run there reuses what is cached.
        beam_args: options for Beam.
        enable_cache: whether components whose inputs are unchanged are skipped.
        engine: what does the Beam work; None for this process.
        worker_patience: seconds that a training waits for the other workers.

    Returns:
        The facts, with the paths of the run under `"paths"`.

    Raises:
        pipeline.readers.DataError: the data or a lexicon cannot be read; nothing has been written.
        serving.errors.RequestError: the glossary of `decoding.glossary` cannot be used.
        pipeline.metrics.sql_execution.SqlExecutionError: the same for the database of
            `evaluation.database`.
        EngineError: the engine cannot do the work.
        DataParallelError: `TF_CONFIG` cannot be used; nothing has been written.
        RunError: the folder cannot be used, another run is using it, or a component failed.
    """
    folder = run_folder.checked_path(output)
    place = cluster_run.place_of(recipe)
    if place and place.number:
        raise RunError(
            f"TF_CONFIG says that this is worker {place.number}: only worker 0 runs the pipeline."
        )

    @contextlib.contextmanager
    def used() -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            stack.enter_context(run_folder.locked(folder))
            if place:
                stack.enter_context(cluster_run.leading(str(folder), worker_patience))
            yield

    if data_path is None:
        with used():
            data = synthetic.write_task(
                recipe.data.synthetic, folder / "data", ratio=recipe.data.synthetic_ratio
            )
            inputs = _checked_inputs(recipe, str(data), folder)
            beam_args = _on_engine(engine, folder, beam_args)
            return _run_in(folder, inputs, beam_args, enable_cache)
    # Before the folder is made, and before the slow imports: a wrong path should not cost half a
    # minute.
    inputs = _checked_inputs(recipe, data_path, folder)
    with used():
        beam_args = _on_engine(engine, folder, beam_args)
        return _run_in(folder, inputs, beam_args, enable_cache)


def _on_engine(
    engine: Engine | None, folder: pathlib.Path, beam_args: Sequence[str]
) -> Sequence[str]:
    """Checks the engine, if there is one; returns the options for Beam, its own first."""
    if not engine:
        on_this_machine = beam_args and not any(arg.startswith("--runner") for arg in beam_args)
        return [NO_PACKAGE, *beam_args] if on_this_machine else beam_args
    from pipeline.runners import engine_check

    engine_check.check(engine, folder)
    return [*engine.beam_args(), *beam_args]


def _checked_inputs(recipe: Recipe, data_path: str, folder: pathlib.Path) -> _Inputs:
    """Finds and checks the files behind a data path, and those that the recipe names beside it."""
    initial = _checked_initial_model(recipe, str(folder / "models" / recipe.name))
    task = task_of(recipe)
    plan = task.plan_inputs(data_path, recipe)
    recipe = task.fitted_to(recipe, plan)
    recipe = loading.with_database_path(recipe, resolve_data_path(data_path))
    dictionaries.check(recipe)
    pretrained_vectors.check(recipe)
    presets.check(recipe)
    if recipe.decoding.glossary:
        glossary_files.read_glossary(recipe.decoding.glossary)
    if recipe.evaluation.database:
        sql_execution.SqlExecutor(recipe.evaluation.database).close()
    return _Inputs(recipe, data_path, plan, initial)


def _checked_initial_model(recipe: Recipe, push_directory: str) -> str:
    """Returns the folder of the version that the training starts from; "" if there is none.

    Raises:
        InitialModelError: it does not fit the recipe's network.
    """
    place = recipe.training.initialize_from
    if not place:
        return ""
    from pipeline.training import initial_model, initial_weights

    version = initial_model.find_version(place, push_directory)
    initial_weights.check_recipe(recipe.to_dict(), initial_model.read_recipe(version), version)
    return whole_files.absolute(version)


def _run_in(
    folder: pathlib.Path, inputs: _Inputs, beam_args: Sequence[str], enable_cache: bool
) -> "RunFacts":
    """Runs the pipeline in a folder that no other process uses; arguments as for `run`."""
    recipe, plan = inputs.recipe, inputs.plan
    task = task_of(recipe)
    progress.say(f"Reading {len(plan.units)} file(s); artifacts go to {folder}")
    if plan.ignored_files:
        progress.say(f"  ignored, of unknown type: {', '.join(plan.ignored_files)}")
    for problem in plan.unreadable_files:
        progress.say(f"  rejected: {problem}")
    progress.say("Loading TFX")
    tensorflow_settings.quiet()
    tensorflow_settings.for_training()
    late_imports.install()
    import tfx.v1 as tfx

    from pipeline import graph

    paths = {
        "output": str(folder),
        "models": str(folder / "models" / recipe.name),
        "report": str(folder / "report" / "index.html"),
        "metrics": str(folder / "metrics.json"),
        "log": str(folder / "run.log"),
    }
    settings = graph.PipelineSettings(
        name=recipe.name,
        root=str(folder / "pipeline"),
        push_directory=paths["models"],
        metadata_config=tfx.orchestration.metadata.sqlite_metadata_connection_config(
            str(folder / "metadata.sqlite")
        ),
        beam_args=beam_args,
        enable_cache=enable_cache,
        answers_directory=str(folder / "answers"),
        initial_model=inputs.initial_model,
    )
    finished = _run_pipeline(
        graph.create_pipeline(recipe, inputs.data_path, settings), settings, paths["log"]
    )
    paths.update(task.paths_of(recipe, finished.outputs))
    return _write_results(folder, finished, paths)


def _run_pipeline(tfx_pipeline: Any, settings: "PipelineSettings", log: str) -> _Finished:
    """Runs a pipeline; everything that is logged goes to a file."""
    import tfx.v1 as tfx

    from pipeline.runners import lineage
    from pipeline.runners.component_progress import ComponentProgress

    components = ComponentProgress(len(tfx_pipeline.components))
    started = time.monotonic()
    with contextlib.closing(components), _logs_to(log, components):
        try:
            tfx.orchestration.LocalDagRunner().run(tfx_pipeline)
        except Exception as error:
            logging.exception("The component %s failed.", components.current)
            raise RunError(_failure_sentence(components.current, error, log)) from error
        outputs = lineage.latest_outputs(settings.metadata_config, settings.name)
    return _Finished(outputs, components.stages, round(time.monotonic() - started, 1))


def _write_results(
    folder: pathlib.Path, finished: _Finished, paths: Mapping[str, str]
) -> "RunFacts":
    """Copies the Reporter's files into the run's folder, and adds facts that only the run knows."""
    from pipeline.reporting import report
    from pipeline.reporting.outputs import OUTPUTS_FOLDER

    reported = pathlib.Path(finished.outputs["Reporter"]["report"])
    facts = report.load_facts(reported)
    facts["stages"] = finished.stages
    facts["seconds"] = finished.seconds
    facts["paths"] = {**paths, **facts.get("paths", {})}
    # The same page again, with the seconds of each component.
    report.write_report(folder, facts)
    # Outputs of an earlier run may be from another head.
    shutil.rmtree(folder / OUTPUTS_FOLDER, ignore_errors=True)
    if (reported / OUTPUTS_FOLDER).is_dir():
        shutil.copytree(reported / OUTPUTS_FOLDER, folder / OUTPUTS_FOLDER)
    write_json(paths["metrics"], selected(facts, METRICS_KEYS))
    write_json(folder / "run.json", selected(facts, RUN_KEYS))
    return facts


def selected(facts: "RunFacts", keys: Sequence[str]) -> dict[str, Any]:
    """Returns the named facts, in the order of their names."""
    by_key = cast(Mapping[str, Any], facts)
    return {key: by_key[key] for key in keys}


@contextlib.contextmanager
def _logs_to(path: str, handler: logging.Handler) -> Iterator[None]:
    """Sends all logging to a file and to `handler`; the terminal stays readable."""
    from absl import logging as absl_logging

    root = logging.getLogger()
    file_handler = logging.FileHandler(path, encoding="utf-8")
    # Steps of counted work would fill the file.
    file_handler.setLevel(logging.INFO)
    file_handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    loggers = [root, logging.getLogger("absl"), logging.getLogger("tensorflow")]
    saved = [(logger, logger.level, list(logger.handlers), logger.propagate) for logger in loggers]
    for logger in loggers:
        logger.handlers = []
    root.handlers = [file_handler, handler]
    root.setLevel(logging.INFO)
    absl_logging.set_verbosity(absl_logging.INFO)
    for logger in loggers[1:]:
        logger.propagate = True
    try:
        yield
    finally:
        file_handler.close()
        for logger, level, handlers, propagate in saved:
            logger.handlers, logger.propagate = handlers, propagate
            logger.setLevel(level)


def _failure_sentence(component: str | None, error: Exception, log: str) -> str:
    """Returns a message about a failure for people.

    Our own errors say what to do; for others the message names the component and the log.
    """
    failed = component or "The pipeline"
    again = f"run the same command again to resume this run. The full log is {log}."
    if os.strerror(errno.ENOSPC) in str(error):
        return f"{failed} failed because the disk is full: free some space and {again}"
    if said := engine_failure.sentence(failed, error, again, f"The full log is {log}."):
        return said
    lines = [line.strip() for line in str(error).strip().splitlines() if line.strip()] or [
        type(error).__name__
    ]
    # TensorFlow puts the place of an error before the error.
    sentence = lines[-1] if lines[0] == "in user code:" else lines[0]
    # Beam appends the place in its graph.
    sentence = re.sub(r" \[while running .*$", "", sentence)
    return f"{failed} failed: {sentence.rstrip('.')}. The full log is {log}."
