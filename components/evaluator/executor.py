"""The work of the Evaluator: TFX's own, which ignores an empty folder as the model to compare
with."""

from typing import Any

from tfx.components.evaluator import executor as tfx_executor
from tfx.dsl.io import fileio
from tfx.types import artifact_utils, standard_component_specs
from tfx.utils import path_utils

from components.artifacts import Artifacts
from components.text_ops import TextOpsExecutor
from pipeline.common import graph_optimizer


class Executor(TextOpsExecutor, tfx_executor.Executor):
    """Uses absolute thresholds only if the artifact `baseline_model` is empty."""

    def Do(
        self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: dict[str, Any]
    ) -> None:
        """Runs TFX's Evaluator, without `baseline_model` if that holds no model."""
        key = standard_component_specs.BASELINE_MODEL_KEY
        if input_dict.get(key):
            folder = path_utils.serving_model_dir(artifact_utils.get_single_uri(input_dict[key]))
            if not fileio.exists(folder):
                input_dict = {name: value for name, value in input_dict.items() if name != key}
        with graph_optimizer.turned_off():
            super().Do(input_dict, output_dict, exec_properties)
