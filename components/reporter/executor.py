"""The work of Reporter: measures, and writes the report, the outputs and the card."""

import os
import pathlib
import tempfile
from typing import Any

from tfx.dsl.components.base import base_executor
from tfx.types import artifact_utils
from tfx.utils import io_utils

from components.artifacts import (
    EXAMPLES_KEY,
    MODEL_KEY,
    TRAINED_MODEL_KEY,
    VOCABULARY_KEY,
    Artifacts,
    folder_of,
)
from pipeline.common import graph_optimizer
from pipeline.recipes.recipe import Recipe
from pipeline.reporting import model_card, report, run_artifacts
from pipeline.tasks import task_of

COUNTS_KEY = "counts"
EVALUATION_KEY = "evaluation"
PUSHED_MODEL_KEY = "pushed_model"
MODEL_RUN_KEY = "model_run"
SYSTEM_KEYS = (MODEL_KEY, TRAINED_MODEL_KEY, MODEL_RUN_KEY)
#: The prefixes of the inputs of the run's own system, and of its baseline's.
SYSTEM_PREFIXES = ("", "baseline_")
REPORT_KEY = "report"
RECIPE_KEY = "recipe"
ANSWERS_DIRECTORY_KEY = "answers_directory"


class Executor(base_executor.BaseExecutor):
    """Measures the models of a run on its test split.

    It works on copies of artifacts that are elsewhere, as on a cluster.
    """

    def Do(
        self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: dict[str, Any]
    ) -> None:
        """Writes the report, the outputs and, for a pushed model, the card."""
        self._log_startup(input_dict, output_dict, exec_properties)
        recipe = Recipe.from_json(exec_properties[RECIPE_KEY])
        task = task_of(recipe)
        uri = folder_of(output_dict, REPORT_KEY)
        with tempfile.TemporaryDirectory() as scratch:
            copies = pathlib.Path(scratch)

            def local(key: str) -> str:
                return _local(folder_of(input_dict, key), copies / key)

            artifacts = run_artifacts.RunArtifacts(
                examples=local(EXAMPLES_KEY),
                counts=local(COUNTS_KEY),
                vocabulary=local(VOCABULARY_KEY),
                evaluation=local(EVALUATION_KEY),
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
            with graph_optimizer.turned_off():
                facts = task.collect(recipe, artifacts, written, answers)
            pushed = artifact_utils.get_single_instance(input_dict[PUSHED_MODEL_KEY])
            destination = pushed.get_string_custom_property("pushed_destination")
            # Empty if the Pusher did not push.
            if destination:
                version = pushed.get_string_custom_property("pushed_version")
                card = model_card.write_model_card(
                    os.path.dirname(destination), version, facts, task.describe_use(recipe)
                )
                facts["paths"] = {"model_card": card}
            report.write_report(written, facts)
            io_utils.copy_dir(str(written), uri)


def _local(uri: str, copy: pathlib.Path) -> str:
    """Returns a folder of this machine that holds an artifact: the artifact's own, or a copy."""
    if "://" not in uri:
        return uri
    io_utils.copy_dir(uri, str(copy))
    return str(copy)
