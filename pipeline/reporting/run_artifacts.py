"""The folders of a run that its measurements read."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class SystemArtifacts:
    """Folders of one system.

    Attributes:
        model: the model as it is served.
        trained_model: the network as it was trained.
        model_run: the training's own facts.
    """

    model: str
    trained_model: str
    model_run: str


@dataclasses.dataclass(frozen=True)
class RunArtifacts:
    """Folders of a run.

    Attributes:
        examples, vocabulary, evaluation: the artifacts of these names.
        counts: how many records were read and kept.
        systems: the run's own system first, then its baseline, if there is one.
    """

    examples: str
    counts: str
    vocabulary: str
    evaluation: str
    systems: tuple[SystemArtifacts, ...]
