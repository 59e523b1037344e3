"""The folders of the outputs of a pipeline's last run, from ML Metadata."""

from typing import Any

from ml_metadata import metadata_store
from ml_metadata.proto import metadata_store_pb2

#: States of an execution whose outputs can be used.
DONE = (metadata_store_pb2.Execution.COMPLETE, metadata_store_pb2.Execution.CACHED)


def latest_outputs(metadata_config: Any, pipeline_name: str) -> dict[str, dict[str, str]]:
    """Returns the output folders of each component's last finished execution, cached ones included.

    Args:
        metadata_config: connection of ML Metadata, as the pipeline has it.
        pipeline_name: the pipeline's name.

    Returns:
        By component id (`"Trainer"`) and output key (`"model"`) the URI.
    """
    store = metadata_store.MetadataStore(metadata_config)
    outputs = {}
    for context in store.get_contexts_by_type("node"):
        # Both names may hold dots, such as the component `Trainer.baseline`.
        if not context.name.startswith(f"{pipeline_name}."):
            continue
        component = context.name.removeprefix(f"{pipeline_name}.")
        done = [
            e for e in store.get_executions_by_context(context.id) if e.last_known_state in DONE
        ]
        if not done:
            continue
        last = max(done, key=lambda execution: execution.id)
        events = [
            e
            for e in store.get_events_by_execution_ids([last.id])
            if e.type == metadata_store_pb2.Event.OUTPUT
        ]
        artifacts = {
            a.id: a for a in store.get_artifacts_by_id([event.artifact_id for event in events])
        }
        outputs[component] = {
            event.path.steps[0].key: artifacts[event.artifact_id].uri for event in events
        }
    return outputs
