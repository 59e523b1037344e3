"""What a Trainer leaves behind, and where:
the trained network, the facts of its training, its checkpoints.
"""

import json
import os

HISTORY_FILE = "history.json"  # of a training: see `read_history`


def checkpoint_directory(model_run):
    """Returns the folder of checkpoints of the Trainer whose `model_run` artifact is given:
    beside those of its executions.

    No setting of the Trainer names it, so it takes no part in the Trainer's cache key.
    """
    return os.path.join(os.path.dirname(os.path.dirname(model_run.rstrip("/"))), "checkpoints")


def model_path(directory):
    """Returns where in the folder of a Trainer's model the trained network is."""
    return os.path.join(directory, "model.keras")


def read_history(model_run):
    """Returns the facts of a training from its `model_run` artifact:
    `head`, `curve`, `parameters`, `seconds`, `updates` and more.

    After a search `tuning` is what `search_space.read_found` gave.
    """
    with open(os.path.join(model_run, HISTORY_FILE), encoding="utf-8") as file:
        return json.load(file)
