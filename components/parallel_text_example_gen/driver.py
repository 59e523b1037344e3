"""The driver of ParallelTextExampleGen: finds the files behind a data path."""

from collections.abc import Iterator
from typing import Any

from components.parallel_text_example_gen import executor
from components.planned_files_driver import PlannedFilesDriver
from pipeline.readers import planning
from pipeline.recipes import sections
from pipeline.recipes.recipe import section_from_json


class Driver(PlannedFilesDriver):
    """Takes the fingerprint of the files that the plan names; see the base."""

    def planned_files(self, exec_properties: dict[str, Any]) -> Iterator[tuple[str, str]]:
        """Yields the files of each unit; see the base."""
        config = section_from_json(sections.DataConfig, exec_properties[executor.DATA_CONFIG_KEY])
        plan = planning.find_inputs(exec_properties[executor.DATA_PATH_KEY], config)
        for unit in plan.units:
            yield from zip(unit.names, unit.paths)
