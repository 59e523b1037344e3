"""The work of TextTransform: TFX's own, once it knows where vocabulary, lexicon and subwords lie."""

import json

from tfx.components.transform import executor as transform_executor
from tfx.types import artifact_utils, standard_component_specs

VOCABULARY_KEY = "vocabulary"
LEXICON_KEY = "lexicon"
SUBWORDS_KEY = "subwords"
FOLDERS = (VOCABULARY_KEY, LEXICON_KEY, SUBWORDS_KEY)


class Executor(transform_executor.Executor):
    """Hands the folders of vocabulary, lexicon and subwords to the preprocessing function, then
    transforms.
    """

    def Do(self, input_dict, output_dict, exec_properties):  # noqa: N802 (TFX's name)
        folders = {
            f"{key}_uri": artifact_utils.get_single_uri(input_dict[key])
            for key in FOLDERS
            if input_dict.get(key)
        }
        settings = json.loads(exec_properties[standard_component_specs.CUSTOM_CONFIG_KEY])
        exec_properties = {
            **exec_properties,
            standard_component_specs.CUSTOM_CONFIG_KEY: json.dumps({**settings, **folders}),
        }
        inputs = {key: value for key, value in input_dict.items() if key not in FOLDERS}
        super().Do(inputs, output_dict, exec_properties)
