"""What a run left behind, as far as its measurements read it."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class SystemArtifacts:
    """Folders of one system:
    the model as it is served, the network as it was trained, and the training's own facts.
    """

    model: str
    trained_model: str
    model_run: str


@dataclasses.dataclass(frozen=True)
class RunArtifacts:
    """Folders of a run.

    `counts` holds how many records were read and kept; `systems` the run's own system first, then
    its baseline, if there is one.
    """

    examples: str
    counts: str
    vocabulary: str
    evaluation: str
    systems: tuple[SystemArtifacts, ...]
