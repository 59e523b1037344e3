"""The work of Reporter: measures, and writes the report, the outputs and the card."""

import logging
import os
import pathlib
import tempfile

from tfx.dsl.components.base import base_executor
from tfx.types import artifact_utils
from tfx.utils import io_utils

from pipeline.common import progress
from pipeline.recipes.recipe import Recipe
from pipeline.reporting import model_card, report, run_artifacts
from pipeline.tasks import task_of

EXAMPLES_KEY = "examples"
COUNTS_KEY = "counts"
VOCABULARY_KEY = "vocabulary"
EVALUATION_KEY = "evaluation"
PUSHED_MODEL_KEY = "pushed_model"
MODEL_KEY = "model"
TRAINED_MODEL_KEY = "trained_model"
MODEL_RUN_KEY = "model_run"
SYSTEM_KEYS = (MODEL_KEY, TRAINED_MODEL_KEY, MODEL_RUN_KEY)
#: Of the inputs of the run's own system, and of its baseline's.
SYSTEM_PREFIXES = ("", "baseline_")
REPORT_KEY = "report"
RECIPE_KEY = "recipe"
ANSWERS_DIRECTORY_KEY = "answers_directory"

#: The local runner shows it on the terminal.
PROGRESS = logging.getLogger(progress.PROGRESS)


class Executor(base_executor.BaseExecutor):
    """Measures the models of a run on its test split;
    where the artifacts lie elsewhere, as on a cluster, it works on copies.
    """

    def Do(self, input_dict, output_dict, exec_properties):
        self._log_startup(input_dict, output_dict, exec_properties)
        recipe = Recipe.from_json(exec_properties[RECIPE_KEY])
        task = task_of(recipe)
        uri = artifact_utils.get_single_uri(output_dict[REPORT_KEY])
        with tempfile.TemporaryDirectory() as scratch:
            copies = pathlib.Path(scratch)

            def local(key):
                return _local(artifact_utils.get_single_uri(input_dict[key]), copies / key)

            artifacts = run_artifacts.RunArtifacts(
                **{
                    key: local(key)
                    for key in (EXAMPLES_KEY, COUNTS_KEY, VOCABULARY_KEY, EVALUATION_KEY)
                },
                systems=tuple(
                    run_artifacts.SystemArtifacts(
                        **{key: local(prefix + key) for key in SYSTEM_KEYS}
                    )
                    for prefix in SYSTEM_PREFIXES
                    if input_dict.get(prefix + MODEL_KEY)
                ),
            )
            written = copies / REPORT_KEY
            answers = exec_properties[ANSWERS_DIRECTORY_KEY] or copies / ANSWERS_DIRECTORY_KEY
            facts = task.collect(recipe, artifacts, written, answers, PROGRESS.info)
            pushed = artifact_utils.get_single_instance(input_dict[PUSHED_MODEL_KEY])
            destination = pushed.get_string_custom_property("pushed_destination")
            if destination:  # the Pusher pushed
                version = pushed.get_string_custom_property("pushed_version")
                card = model_card.write_model_card(
                    os.path.dirname(destination), version, facts, task.describe_use(recipe)
                )
                facts["paths"] = {"model_card": card}
            report.write_report(written, facts)
            io_utils.copy_dir(str(written), uri)


def _local(uri, copy):
    """Returns a folder of this machine that holds an artifact: the artifact's own, or a copy."""
    if "://" not in uri:
        return uri
    io_utils.copy_dir(uri, str(copy))
    return str(copy)
