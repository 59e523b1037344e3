"""The work of TextTransform: TFX's own, once it knows where the vocabulary lies."""

import json

from tfx.components.transform import executor as transform_executor
from tfx.types import artifact_utils, standard_component_specs

VOCABULARY_KEY = "vocabulary"


class Executor(transform_executor.Executor):
    """Hands the vocabulary's folder to the preprocessing function, then transforms."""

    def Do(self, input_dict, output_dict, exec_properties):  # noqa: N802 (TFX's name)
        uri = artifact_utils.get_single_uri(input_dict[VOCABULARY_KEY])
        settings = json.loads(exec_properties[standard_component_specs.CUSTOM_CONFIG_KEY])
        exec_properties = {
            **exec_properties,
            standard_component_specs.CUSTOM_CONFIG_KEY: json.dumps({**settings, "vocabulary_uri": uri}),
        }
        inputs = {key: value for key, value in input_dict.items() if key != VOCABULARY_KEY}
        super().Do(inputs, output_dict, exec_properties)
