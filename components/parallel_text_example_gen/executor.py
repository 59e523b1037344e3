"""The work of ParallelTextExampleGen: plans the files, and reads them with Beam."""

from typing import Any

from tfx.types import standard_component_specs

from components.artifacts import Artifacts, folder_of
from components.parallel_text_example_gen.ingest import ReadUnit
from components.parallel_text_example_gen.pair_writer import PairWriter
from pipeline.common import object_stores
from pipeline.readers.planning import plan_inputs
from pipeline.recipes import sections
from pipeline.recipes.recipe import section_from_json

DATA_PATH_KEY = "data_path"
DATA_CONFIG_KEY = "data_config"
LONGEST_TEST_KEY = "longest_test"


class Executor(PairWriter):
    """Reads the user's files."""

    def Do(
        self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: dict[str, Any]
    ) -> None:
        """Writes the examples and the rejects.

        Args:
            input_dict: unused.
            output_dict: `examples` and `rejects`, one artifact each.
            exec_properties: `data_path` (str) and `data_config` (JSON of the recipe's data
                section); `longest_test` (int): the most tokens of a text in files given as test
                split, 0 for the limits of the data section; `copy_lexicon_digest` (str): unused.

        Raises:
            pipeline.readers.DataError: the data cannot be read, too many records are rejected, or a
                split is empty.
            pipeline.common.object_stores.StorageError: the bucket cannot be written.
        """
        self._log_startup(input_dict, output_dict, exec_properties)
        object_stores.check_writable(folder_of(output_dict, standard_component_specs.EXAMPLES_KEY))
        config = section_from_json(sections.DataConfig, exec_properties[DATA_CONFIG_KEY])
        longest_test = exec_properties.get(LONGEST_TEST_KEY) or None
        plan = plan_inputs(exec_properties[DATA_PATH_KEY], config)
        self.write_pairs(
            output_dict, config, plan.units, ReadUnit(config, longest_test), plan.ignored_files
        )
