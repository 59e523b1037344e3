"""The work of LastPushedModel: searches the pushed versions and copies the newest."""

import os
from typing import Any

from tfx.dsl.components.base import base_executor
from tfx.dsl.io import fileio
from tfx.utils import io_utils, path_utils

from components.artifacts import MODEL_KEY, Artifacts, folder_of
from pipeline.common import progress

CANDIDATE_KEY = "candidate"
PUSH_DIRECTORY_KEY = "push_directory"
#: The file that identifies a SavedModel: TensorFlow writes it beside each.
_FINGERPRINT = "fingerprint.pb"


def newest_other_version(push_directory: str, candidate: str) -> str | None:
    """Returns the folder of the newest version that is not the candidate, or None.

    Args:
        push_directory: the folder of a model, which has one folder per version; it need not exist.
        candidate: the folder of a SavedModel.
    """
    if not fileio.exists(push_directory):
        return None
    # An object store's names of folders may end with a slash.
    names = [name.rstrip("/") for name in fileio.listdir(push_directory)]
    own = _fingerprint(candidate)
    for version in sorted((name for name in names if name.isdecimal()), key=int, reverse=True):
        folder = os.path.join(push_directory, version)
        if fileio.exists(os.path.join(folder, "saved_model.pb")) and (
            own is None or _fingerprint(folder) != own
        ):
            return folder
    return None


def _fingerprint(folder: str) -> bytes | None:
    path = os.path.join(folder, _FINGERPRINT)
    if not fileio.exists(path):
        return None
    with fileio.open(path, "rb") as file:
        content: bytes = file.read()
        return content


class Executor(base_executor.BaseExecutor):
    """Copies the model that was pushed last; leaves the folder empty if there is none."""

    def Do(
        self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: dict[str, Any]
    ) -> None:
        """Writes the model to compare with."""
        candidate = path_utils.serving_model_path(folder_of(input_dict, CANDIDATE_KEY))
        uri = folder_of(output_dict, MODEL_KEY)
        fileio.makedirs(uri)
        newest = newest_other_version(exec_properties[PUSH_DIRECTORY_KEY], candidate)
        if newest is None:
            progress.say("No other model has been pushed yet, so there is none to compare with.")
            return
        progress.say(f"The model to compare with is {newest}.")
        io_utils.copy_dir(newest, path_utils.serving_model_dir(uri))
