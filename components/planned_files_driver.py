"""The driver of components that read a user's files: it identifies these files by their content."""

from collections.abc import Iterable
from typing import Any

from tfx.components.example_gen import driver, utils

from pipeline.readers.fingerprints import fingerprint_of


class PlannedFilesDriver(driver.FileBasedDriver):
    """Takes the fingerprint of the files that are read, and of no others.

    TFX's own driver takes that of the files that match a pattern, by their sizes and times.
    Kubeflow always runs that driver; there the patterns match the readable files of a folder.
    """

    def planned_files(self, exec_properties: dict[str, Any]) -> Iterable[tuple[str, str]]:
        """Returns (label, path) of each file that the executor will read, in its order."""
        raise NotImplementedError

    def resolve_exec_properties(
        self, exec_properties: dict[str, Any], pipeline_info: Any, component_info: Any
    ) -> dict[str, Any]:
        """Adds the fingerprint, which is part of the cache key; see TFX's driver."""
        del pipeline_info, component_info
        fingerprint = fingerprint_of(self.planned_files(exec_properties))
        exec_properties[utils.SPAN_PROPERTY_NAME] = 0
        exec_properties[utils.VERSION_PROPERTY_NAME] = None
        exec_properties[utils.FINGERPRINT_PROPERTY_NAME] = fingerprint
        return exec_properties
