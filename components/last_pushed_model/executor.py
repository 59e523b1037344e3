"""The work of LastPushedModel: look through the versions that were pushed, and copy the newest."""

import os

from tfx.dsl.components.base import base_executor
from tfx.dsl.io import fileio
from tfx.types import artifact_utils
from tfx.utils import io_utils, path_utils

CANDIDATE_KEY = "candidate"
MODEL_KEY = "model"
PUSH_DIRECTORY_KEY = "push_directory"
#: What tells one SavedModel from another: TensorFlow writes it beside each.
_FINGERPRINT = "fingerprint.pb"


def newest_other_version(push_directory, candidate):
    """Returns the newest version's folder whose model is not the candidate;
    None where there is none.

    Args:
        push_directory: the folder of a model, a folder a version in it; it need not exist.
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


def _fingerprint(folder):
    path = os.path.join(folder, _FINGERPRINT)
    if not fileio.exists(path):
        return None
    with fileio.open(path, "rb") as file:
        return file.read()


class Executor(base_executor.BaseExecutor):
    """Copies the model that was pushed last;
    leaves the artifact's folder empty where there is none.
    """

    def Do(self, input_dict, output_dict, exec_properties):  # noqa: N802 (TFX's name)
        candidate = path_utils.serving_model_path(
            artifact_utils.get_single_uri(input_dict[CANDIDATE_KEY])
        )
        uri = artifact_utils.get_single_uri(output_dict[MODEL_KEY])
        fileio.makedirs(uri)
        found = newest_other_version(exec_properties[PUSH_DIRECTORY_KEY], candidate)
        if found is None:
            print(
                "  No other model has been pushed yet: there is nothing to compare with.",
                flush=True,
            )
            return
        print(f"  The model to compare with is {found}.", flush=True)
        io_utils.copy_dir(found, path_utils.serving_model_dir(uri))
