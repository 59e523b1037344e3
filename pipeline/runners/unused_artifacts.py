"""Artifacts in a run's folder that nothing refers to any more.

In use are: what the last complete run of each pipeline wrote or read, everything of later runs, and
the model that was blessed last, which the next run is compared with. All other artifacts are there
only for the cache, or were left by failed runs.
"""

import dataclasses
import os
import pathlib
import re
import shutil
from collections.abc import Iterator, Sequence, Set
from typing import TYPE_CHECKING, Any

from pipeline.runners.lineage import DONE
from pipeline.runners.run_error import RunError

if TYPE_CHECKING:
    from ml_metadata import metadata_store

METADATA_FILE = "metadata.sqlite"
ARTIFACTS_FOLDER = "pipeline"
# An execution's folder of one output, or the kept rejects of one that failed.
_EXECUTION = re.compile(r"[0-9]+(-failed)?")
# A Trainer's folder for unfinished trainings, which resume from there.
_CHECKPOINTS = "checkpoints"
_LAST_COMPONENT = "Reporter"


@dataclasses.dataclass(frozen=True)
class Unused:
    """A folder that nothing refers to.

    Attributes:
        path: the folder.
        size: of its files, in bytes.
    """

    path: pathlib.Path
    size: int


def find(folder: pathlib.Path) -> list[Unused]:
    """Returns the unused folders of a run's folder, in the order of their names.

    Raises:
        RunError: it is no run's folder, or was moved since its last run.
    """
    used = _used_paths(_store(folder))
    artifacts = folder / ARTIFACTS_FOLDER
    if used and not any(path.is_relative_to(artifacts) for path in used):
        raise RunError(
            f"The artifacts of the last run are not below {artifacts}: the folder was moved. Move "
            "it back, or remove it."
        )
    return [
        Unused(path, _size(path))
        for path in sorted(_execution_folders(artifacts))
        if not any(one.is_relative_to(path) for one in used)
    ]


def remove(folder: pathlib.Path, unused: Sequence[Unused]) -> None:
    """Removes folders that `find` found, and marks their artifacts as deleted in the metadata."""
    from ml_metadata.proto import metadata_store_pb2

    store = _store(folder)
    gone = [one.path for one in unused]
    artifacts = [
        artifact
        for artifact in store.get_artifacts()
        if any(pathlib.Path(artifact.uri).is_relative_to(path) for path in gone)
    ]
    for artifact in artifacts:
        artifact.state = metadata_store_pb2.Artifact.DELETED
    # Metadata first: a folder without metadata is found again, an artifact without a folder is not.
    if artifacts:
        store.put_artifacts(artifacts)
    for path in gone:
        shutil.rmtree(path)


def _store(folder: pathlib.Path) -> "metadata_store.MetadataStore":
    path = folder / METADATA_FILE
    if not path.is_file():
        raise RunError(
            f"{folder} is not the folder of a run: give the --output folder of a verbatim run."
        )
    from ml_metadata import metadata_store
    from ml_metadata.proto import metadata_store_pb2

    config = metadata_store_pb2.ConnectionConfig()
    config.sqlite.filename_uri = str(path)
    config.sqlite.connection_mode = metadata_store_pb2.SqliteMetadataSourceConfig.READWRITE
    return metadata_store.MetadataStore(config)


def _used_paths(store: "metadata_store.MetadataStore") -> set[pathlib.Path]:
    """Returns the folders of the artifacts that are in use."""
    executions = sorted(
        execution
        for pipeline in store.get_contexts_by_type("pipeline")
        for execution in _recent_executions(store, pipeline)
    )
    events = store.get_events_by_execution_ids(executions) if executions else []
    ids = {event.artifact_id for event in events}
    by_id = {artifact.id: artifact for artifact in store.get_artifacts()}
    return {pathlib.Path(by_id[one].uri) for one in ids | _last_blessed(by_id) if one in by_id}


def _recent_executions(store: "metadata_store.MetadataStore", pipeline: Any) -> Set[int]:
    """Returns the ids of a pipeline's executions since its last complete run began."""
    of_pipeline = {execution.id for execution in store.get_executions_by_context(pipeline.id)}
    reporter = store.get_context_by_type_and_name("node", f"{pipeline.name}.{_LAST_COMPONENT}")
    reported = {
        execution.id
        for execution in (store.get_executions_by_context(reporter.id) if reporter else ())
        if execution.last_known_state in DONE
    }
    recent: set[int] = set()
    runs = store.get_contexts_by_type("pipeline_run")
    for run in sorted(runs, key=lambda context: context.id, reverse=True):
        of_run = {execution.id for execution in store.get_executions_by_context(run.id)}
        recent |= of_run & of_pipeline
        if of_run & reported:
            break
    return recent


def _last_blessed(by_id: dict[int, Any]) -> set[int]:
    """Returns the ids of the newest blessing of each pipeline's Evaluator, and of its model."""
    newest: dict[str, Any] = {}
    for artifact in sorted(by_id.values(), key=lambda artifact: artifact.id):
        # A blessing of anomalies or of a model; only a model's names the model.
        if (
            artifact.custom_properties["blessed"].int_value
            and artifact.custom_properties["current_model_id"].int_value
        ):
            newest[os.path.dirname(artifact.uri)] = artifact
    return {
        one
        for artifact in newest.values()
        for one in (artifact.id, artifact.custom_properties["current_model_id"].int_value)
    }


def _execution_folders(artifacts: pathlib.Path) -> Iterator[pathlib.Path]:
    for path in artifacts.glob("*/*/*"):
        output = path.parent.name
        if output.startswith(".") or output == _CHECKPOINTS:
            continue
        if _EXECUTION.fullmatch(path.name) and path.is_dir() and not path.is_symlink():
            yield path


def _size(path: pathlib.Path) -> int:
    return sum(file.lstat().st_size for file in path.rglob("*") if not file.is_dir())
