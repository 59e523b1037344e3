"""`verbatim clean`: what the last run refers to stays, the rest goes, and the cache knows it."""

import io
import json
import sys

import pytest
from ml_metadata import metadata_store
from ml_metadata.proto import metadata_store_pb2 as pb

from pipeline.commands import main
from pipeline.runners import run_folder, unused_artifacts
from pipeline.runners.run_error import RunError


class Metadata:
    """A run's folder with the metadata that TFX would write."""

    def __init__(self, folder):
        self.folder = folder
        config = pb.ConnectionConfig()
        config.sqlite.filename_uri = str(folder / unused_artifacts.METADATA_FILE)
        config.sqlite.connection_mode = 3
        self.store = metadata_store.MetadataStore(config)
        self.execution_type = self.store.put_execution_type(pb.ExecutionType(name="Component"))
        self.artifact_type = self.store.put_artifact_type(pb.ArtifactType(name="Artifact"))

    def context(self, kind, name):
        found = self.store.get_context_by_type_and_name(kind, name)
        if found:
            return found.id
        kind_id = self.store.put_context_type(pb.ContextType(name=kind))
        return self.store.put_contexts([pb.Context(type_id=kind_id, name=name)])[0]

    def execute(self, run, component, inputs=(), cached=None, state="COMPLETE", **properties):
        """Adds an execution; returns the artifact that it wrote, or found in the cache."""
        execution = pb.Execution(
            type_id=self.execution_type,
            last_known_state=pb.Execution.State.Value("CACHED" if cached else state),
        )
        number = self.store.put_executions([execution])[0]
        for kind, name in (("pipeline", "p"), ("pipeline_run", run), ("node", f"p.{component}")):
            self.store.put_attributions_and_associations(
                [], [pb.Association(execution_id=number, context_id=self.context(kind, name))]
            )
        path = self.folder / "pipeline" / component / "output" / str(number)
        artifact = cached
        if cached is None:
            path.mkdir(parents=True)
            (path / "file").write_bytes(b"x" * 1000)
            if state == "FAILED":
                return None
            made = pb.Artifact(type_id=self.artifact_type, uri=str(path), state=pb.Artifact.LIVE)
            for name, value in properties.items():
                made.custom_properties[name].int_value = value
            artifact = self.store.put_artifacts([made])[0]
        events = [(artifact, pb.Event.OUTPUT), *((one, pb.Event.INPUT) for one in inputs)]
        self.store.put_events(
            [pb.Event(artifact_id=a, execution_id=number, type=kind) for a, kind in events]
        )
        return artifact


@pytest.fixture
def folder(tmp_path):
    """Three runs: a blessed model; other settings on the same data; and a failed training."""
    (tmp_path / "run").mkdir()
    runs = Metadata(tmp_path / "run")
    data = runs.execute("1", "Gen")
    model = runs.execute("1", "Trainer", [data])
    runs.execute("1", "Evaluator", [model], blessed=1, current_model_id=model)
    runs.execute("1", "Reporter", [model])
    runs.execute("2", "Gen", cached=data)
    worse = runs.execute("2", "Trainer", [data])
    runs.execute("2", "Evaluator", [worse], blessed=0, current_model_id=worse)
    runs.execute("2", "Reporter", [worse])
    runs.execute("2.1", "Gen", cached=data)
    runs.execute("2.1", "Trainer", [data], state="FAILED")
    runs.execute("3", "Gen", cached=data)
    best = runs.execute("3", "Trainer", [data])
    runs.execute("3", "Evaluator", [best, model], blessed=0, current_model_id=best)
    runs.execute("3", "Reporter", [best])
    (runs.folder / "pipeline" / "Trainer" / "checkpoints" / "7").mkdir(parents=True)
    (runs.folder / "pipeline" / "Gen" / "output" / "99-failed").mkdir()
    return runs.folder


def names(folder):
    return [str(one.path.relative_to(folder / "pipeline")) for one in unused_artifacts.find(folder)]


UNUSED = [
    "Evaluator/output/7",
    "Gen/output/99-failed",
    "Reporter/output/4",
    "Reporter/output/8",
    "Trainer/output/10",
    "Trainer/output/6",
]


def test_what_the_last_run_refers_to_stays(folder):
    assert names(folder) == UNUSED


def test_removed_artifacts_are_marked_and_a_second_clean_finds_nothing(folder, capsys):
    assert main.main(["clean", str(folder), "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "Trainer/output/6  0.0 MB" in said and "6 folders, 0.0 MB, would be removed" in said
    assert names(folder) == UNUSED
    assert main.main(["clean", str(folder), "--yes", "--json", "-"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["removed"] and [one["bytes"] for one in facts["folders"]].count(1000) == 5
    assert names(folder) == []
    assert (folder / "pipeline" / "Trainer" / "checkpoints" / "7").is_dir()
    assert (folder / "pipeline" / "Trainer" / "output" / "2").is_dir()
    config = pb.ConnectionConfig()
    config.sqlite.filename_uri = str(folder / unused_artifacts.METADATA_FILE)
    states = {
        artifact.uri.rpartition("pipeline/")[2]: artifact.state
        for artifact in metadata_store.MetadataStore(config).get_artifacts()
    }
    deleted = {uri for uri, state in states.items() if state == pb.Artifact.DELETED}
    assert deleted == set(UNUSED) - {"Gen/output/99-failed", "Trainer/output/10"}
    assert main.main(["clean", str(folder)]) == 0
    assert "Nothing to remove" in capsys.readouterr().out


@pytest.mark.parametrize("answer, left", [("y\n", []), ("\n", UNUSED), ("no\n", UNUSED)])
def test_it_asks(folder, monkeypatch, answer, left):
    terminal = io.StringIO(answer)
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stdin", terminal)
    assert main.main(["clean", str(folder)]) == 0
    assert names(folder) == left


def test_what_cannot_be_cleaned(folder, tmp_path, monkeypatch, capsys):
    def refusal(*arguments):
        assert main.main(["clean", *map(str, arguments)]) == 1
        return capsys.readouterr().err

    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    assert "give --yes" in refusal(folder)
    assert "not the folder of a run" in refusal(tmp_path)
    assert not (tmp_path / run_folder.LOCK_FILE).exists()
    with run_folder.locked(folder):
        assert "Another run" in refusal(folder, "--yes")
    moved = folder.rename(tmp_path / "moved")
    with pytest.raises(RunError, match="was moved"):
        unused_artifacts.find(moved)
    assert len(list((moved / "pipeline" / "Trainer" / "output").iterdir())) == 4


def test_without_a_complete_run_everything_stays(tmp_path):
    runs = Metadata(tmp_path)
    data = runs.execute("1", "Gen")
    runs.execute("2", "Gen", cached=data)
    runs.execute("2", "Trainer", [data])
    assert names(tmp_path) == []
