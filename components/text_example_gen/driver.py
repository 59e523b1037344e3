"""The driver of TextExampleGen: finds the files of the splits."""

from collections.abc import Iterator
from typing import Any

from components.planned_files_driver import PlannedFilesDriver
from components.text_example_gen import executor
from pipeline.readers import text_streams
from pipeline.recipes.recipe import Recipe


class Driver(PlannedFilesDriver):
    """Takes the fingerprint of the files that the recipe names; see the base."""

    def planned_files(self, exec_properties: dict[str, Any]) -> Iterator[tuple[str, str]]:
        """Yields the files of each split; see the base."""
        recipe = Recipe.from_json(exec_properties[executor.RECIPE_KEY])
        plan = text_streams.plan_streams(exec_properties[executor.DATA_PATH_KEY], recipe)
        for split, files in plan.files.items():
            for name, path in files:
                yield f"{split}: {name}", path
