"""The work of TextTransform: TFX's own, given the folders of vocabulary, lexicon and subwords."""

import json
from typing import Any

from tfx.components.transform import executor as transform_executor
from tfx.types import standard_component_specs

from components import earlier_attempts
from components.artifacts import (
    LEXICON_KEY,
    SUBWORDS_KEY,
    VOCABULARY_KEY,
    Artifacts,
    folder_of,
)
from components.text_ops import TextOpsExecutor

FOLDERS = (VOCABULARY_KEY, LEXICON_KEY, SUBWORDS_KEY)


class Executor(TextOpsExecutor, transform_executor.Executor):
    """Passes the folders of vocabulary, lexicon and subwords to the preprocessing function, then
    transforms.
    """

    def Do(
        self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: dict[str, Any]
    ) -> None:
        """Runs TFX's Transform with the folders among its settings."""
        folders = {
            f"{key}_uri": folder_of(input_dict, key) for key in FOLDERS if input_dict.get(key)
        }
        settings = json.loads(exec_properties[standard_component_specs.CUSTOM_CONFIG_KEY])
        exec_properties = {
            **exec_properties,
            standard_component_specs.CUSTOM_CONFIG_KEY: json.dumps({**settings, **folders}),
        }
        inputs = {key: value for key, value in input_dict.items() if key not in FOLDERS}
        earlier_attempts.remove(output_dict, standard_component_specs.TRANSFORMED_EXAMPLES_KEY)
        super().Do(inputs, output_dict, exec_properties)
