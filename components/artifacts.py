"""The artifacts that components exchange: the keys that several of them use, and their folders."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from tfx.types import Artifact, artifact_utils

EXAMPLES_KEY = "examples"
LEXICON_KEY = "lexicon"
MODEL_KEY = "model"
REJECTS_KEY = "rejects"
SUBWORDS_KEY = "subwords"
TRAINED_MODEL_KEY = "trained_model"
TRANSFORM_GRAPH_KEY = "transform_graph"
VOCABULARY_KEY = "vocabulary"

#: TFX's arguments of an executor: the artifacts of each input or output.
Artifacts: TypeAlias = Mapping[str, Sequence[Artifact]]


def folder_of(artifacts: Artifacts, key: str) -> str:
    """Returns the folder of an input or output, which has one artifact."""
    folder: str = artifact_utils.get_single_uri(artifacts[key])
    return folder


def optional_folder_of(artifacts: Artifacts, key: str) -> str | None:
    """Returns the folder of an input, or None if the component has no such input."""
    return folder_of(artifacts, key) if artifacts.get(key) else None
