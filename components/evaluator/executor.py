"""The work of the Evaluator:
TFX's own, without a model to compare with where that is an empty folder.
"""

from tfx.components.evaluator import executor as tfx_executor
from tfx.dsl.io import fileio
from tfx.types import artifact_utils, standard_component_specs
from tfx.utils import path_utils


class Executor(tfx_executor.Executor):
    """Judges a model by absolute thresholds alone where `baseline_model` is an artifact without a
    model.
    """

    def Do(self, input_dict, output_dict, exec_properties):  # noqa: N802 (TFX's name)
        key = standard_component_specs.BASELINE_MODEL_KEY
        if input_dict.get(key):
            folder = path_utils.serving_model_dir(artifact_utils.get_single_uri(input_dict[key]))
            if not fileio.exists(folder):
                input_dict = {name: value for name, value in input_dict.items() if name != key}
        super().Do(input_dict, output_dict, exec_properties)
