"""A pod of a training operator, without the pipeline around its Trainer.

    python -m tests.pipeline.training.pod FOLDER

`TF_CONFIG` says which worker it is, as for `verbatim run`. FOLDER has the pairs of a tiny training.
"""

import logging
import os
import pathlib
import sys

from pipeline.common import progress
from pipeline.entry_points import cluster_run
from tests.pipeline.training.tiny_training import fn_args, recipe

#: What it trains with.
OPTIONS = {"epochs": 40, "accumulated_batches": 2}
#: The folder of its outputs.
NAME = "pods"


def main(folder):
    """Does one pod's work; returns the status to exit with."""
    progress.LOGGER.addHandler(logging.StreamHandler(sys.stdout))
    progress.LOGGER.setLevel("INFO")
    made = recipe(**OPTIONS)
    try:
        place = cluster_run.place_of(made)
        if place.number:
            cluster_run.follow(str(folder), place, 300)
            return 0
        with cluster_run.leading(str(folder), 300):
            if not os.path.exists(fn_args(folder, NAME, made).serving_model_dir):
                # TFX's cache, with a model there.
                from pipeline.entry_points import run_fn

                run_fn.run_fn(fn_args(folder, NAME, made))
    except ValueError as error:
        print(f"pod: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
