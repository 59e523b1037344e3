"""Runs a recipe on this machine with TFX's LocalDagRunner, and puts together what people look for
in the run's folder.
"""

import contextlib
import errno
import json
import logging
import os
import pathlib
import re
import shutil
import time

from pipeline.common import tensorflow_settings
from pipeline.common.errors import VerbatimError
from pipeline.lexicons import dictionaries
from pipeline.metrics import sql_execution
from pipeline.readers.files import resolve_data_path
from pipeline.recipes import loading
from pipeline.tasks import task_of

PROGRESS = "verbatim.progress"  # the logger of what components say to people
_STEP = re.compile(r"Component (\S+) is (running|finished)\.")


class RunError(VerbatimError, RuntimeError):
    """A run that failed; its message is one sentence for the user."""


class _StepProgress(logging.Handler):
    """Turns TFX's own messages about its components into a line each, and keeps their times."""

    def __init__(self, number, progress):
        super().__init__(logging.INFO)
        self.number = number
        self.progress = progress
        self.stages = []
        self.current = None
        self._started = None

    def emit(self, record):
        if record.name == PROGRESS:
            self.progress(f"  {record.getMessage()}")
            return
        match = _STEP.search(record.getMessage())
        if not match:
            return
        component, state = match.groups()
        if state == "running":
            self.current, self._started = component, time.monotonic()
            self.progress(f"[{len(self.stages) + 1}/{self.number}] {component}")
        else:
            seconds = round(time.monotonic() - self._started, 1)
            self.stages.append({"name": component, "seconds": seconds})
            self.current = None


@contextlib.contextmanager
def _logs_to(path, handler):
    """Sends all logging to a file, and TFX's progress to `handler`; the terminal stays readable."""
    from absl import logging as absl_logging

    root = logging.getLogger()
    file_handler = logging.FileHandler(path, encoding="utf-8")
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


def run(recipe, data_path, output, beam_args=(), enable_cache=True, progress=print):
    """Runs the whole pipeline, and writes its report into the run's folder.

    Args:
        recipe: a `Recipe`.
        data_path: a file, a folder, or two line-aligned files separated by a comma.
        output: the run's folder; a second run there reuses what is cached.
        beam_args: options for Beam.
        enable_cache: whether components whose inputs are unchanged are skipped.
        progress: function of one string, for people.

    Returns:
        The facts, as `pipeline.reporting.report.write_report` takes them, with the paths of the run
        under `"paths"`.

    Raises:
        pipeline.readers.DataError: the data or a lexicon cannot be read; nothing has been written.
        pipeline.metrics.sql_execution.SqlExecutionError: the same for the database of
            `evaluation.database`.
        RunError: a component failed.
    """
    # Before the slow imports: a wrong path should not cost half a minute.
    task = task_of(recipe)
    plan = task.plan_inputs(data_path, recipe)
    recipe = loading.with_database_path(recipe, resolve_data_path(data_path))
    dictionaries.check(recipe)
    if recipe.evaluation.database:
        sql_execution.SqlExecutor(recipe.evaluation.database).close()
    output = pathlib.Path(output).absolute()
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"The output folder {output} cannot be made: {error.strerror}.") from None
    progress(f"Reading {len(plan.units)} file(s); artifacts go to {output}")
    if plan.ignored_files:
        progress(f"  ignored, of unknown type: {', '.join(plan.ignored_files)}")
    progress("Loading TFX")
    tensorflow_settings.quiet()
    tensorflow_settings.for_training()
    import tfx.v1 as tfx

    from pipeline import graph
    from pipeline.reporting import report, results
    from pipeline.runners import lineage

    paths = {
        "output": str(output),
        "models": str(output / "models" / recipe.name),
        "report": str(output / "report" / "index.html"),
        "metrics": str(output / "metrics.json"),
        "log": str(output / "run.log"),
    }
    metadata = tfx.orchestration.metadata.sqlite_metadata_connection_config(
        str(output / "metadata.sqlite")
    )
    tfx_pipeline = graph.create_pipeline(
        pipeline_name=recipe.name,
        pipeline_root=str(output / "pipeline"),
        recipe=recipe,
        data_path=data_path,
        push_directory=paths["models"],
        metadata_config=metadata,
        beam_args=beam_args,
        enable_cache=enable_cache,
        answers_directory=str(output / "answers"),
    )
    steps = _StepProgress(len(tfx_pipeline.components), progress)
    started = time.monotonic()
    with _logs_to(paths["log"], steps):
        try:
            tfx.orchestration.LocalDagRunner().run(tfx_pipeline)
        except Exception as error:
            logging.exception("The component %s failed.", steps.current)
            raise RunError(_failure_sentence(steps.current, error, paths["log"])) from error
        outputs = lineage.latest_outputs(metadata, recipe.name)
    reported = pathlib.Path(outputs["Reporter"]["report"])
    facts = report.load_facts(reported)
    facts["stages"] = steps.stages
    facts["seconds"] = round(time.monotonic() - started, 1)
    facts["paths"] = {**paths, **task.paths_of(recipe, outputs), **facts.get("paths", {})}
    # The same once more, with the seconds of each component.
    report.write_report(output, facts)
    shutil.rmtree(
        output / results.OUTPUTS_FOLDER, ignore_errors=True
    )  # of an earlier run, perhaps with another head
    if (reported / results.OUTPUTS_FOLDER).is_dir():
        shutil.copytree(reported / results.OUTPUTS_FOLDER, output / results.OUTPUTS_FOLDER)
    write_json(paths["metrics"], {key: facts[key] for key in METRICS_KEYS})
    write_json(output / "run.json", {key: facts[key] for key in RUN_KEYS})
    return facts


METRICS_KEYS = ("systems", "comparison", "slices", "blessed", "blessing_reason")
RUN_KEYS = ("title", "recipe", "versions", "counts", "stages", "seconds", "paths")


def write_json(path, content):
    """Writes a JSON file, whole or not at all."""
    temporary = pathlib.Path(f"{path}.tmp")
    temporary.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    temporary.replace(path)


def _failure_sentence(component, error, log):
    """Our own errors say what to do; for others the component and the log are what a person needs."""
    if os.strerror(errno.ENOSPC) in str(error):
        return (
            f"{component or 'The pipeline'} failed because the disk is full: make room and run "
            "the same command again, which goes on where "
            f"this run ended. The full log is {log}."
        )
    lines = [line.strip() for line in str(error).strip().splitlines() if line.strip()] or [
        type(error).__name__
    ]
    # TensorFlow puts where an error arose before what it is.
    sentence = lines[-1] if lines[0] == "in user code:" else lines[0]
    # Beam appends where in its graph it arose.
    sentence = re.sub(r" \[while running .*$", "", sentence)
    return f"{component or 'The pipeline'} failed: {sentence.rstrip('.')}. The full log is {log}."
