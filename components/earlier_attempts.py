"""What an earlier attempt left where a component writes."""

import os

from tfx.dsl.io import fileio

from components.artifacts import Artifacts


def remove(output_dict: Artifacts, key: str) -> None:
    """Empties the folders of the splits that a component is about to write.

    An orchestrator that repeats a task gives it the same folders again. Beam may then write fewer
    shards than before, and whoever reads `Split-NAME/*` would read some examples twice.
    """
    for artifact in output_dict.get(key, ()):
        if not fileio.exists(artifact.uri):
            continue
        for name in fileio.listdir(artifact.uri):
            folder = os.path.join(artifact.uri, name.rstrip("/"))
            if name.startswith("Split-") and fileio.isdir(folder):
                fileio.rmtree(folder)
