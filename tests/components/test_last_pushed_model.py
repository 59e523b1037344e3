"""Which model a candidate is compared with on Kubeflow, and what the Evaluator makes of none."""

import pytest

from components.last_pushed_model import executor


def save(folder, fingerprint=b""):
    """Writes what tells a SavedModel from another."""
    folder.mkdir(parents=True)
    (folder / "saved_model.pb").write_bytes(b"graph")
    if fingerprint:
        (folder / "fingerprint.pb").write_bytes(fingerprint)
    return folder


def find(tmp_path):
    found = executor.newest_other_version(str(tmp_path / "pushed"), str(tmp_path / "candidate"))
    return found and found.removeprefix(f"{tmp_path}/pushed/")


def test_the_newest_version_is_found(tmp_path):
    save(tmp_path / "candidate", b"own")
    assert find(tmp_path) is None
    (tmp_path / "pushed").mkdir()
    assert find(tmp_path) is None
    for version in ("9", "10", "2"):
        save(tmp_path / "pushed" / version, version.encode())
    (tmp_path / "pushed" / "model_card_11.md").write_text("no version")
    (tmp_path / "pushed" / "12").mkdir()  # not complete
    assert find(tmp_path) == "10"


def test_the_candidate_itself_is_not(tmp_path):
    save(tmp_path / "candidate", b"own")
    save(tmp_path / "pushed" / "1", b"other")
    save(tmp_path / "pushed" / "2", b"own")
    assert find(tmp_path) == "1"


def test_models_without_a_fingerprint_differ(tmp_path):
    save(tmp_path / "candidate")
    save(tmp_path / "pushed" / "1")
    assert find(tmp_path) == "1"


def run(tmp_path):
    """Runs the executor; returns the folder of its artifact."""
    from tfx.types import standard_artifacts

    candidate, model = standard_artifacts.Model(), standard_artifacts.Model()
    candidate.uri, model.uri = str(tmp_path / "exported"), str(tmp_path / "found")
    context = executor.Executor.Context(tmp_dir=str(tmp_path), unique_id="1")
    executor.Executor(context).Do(
        {"candidate": [candidate]}, {"model": [model]}, {"push_directory": str(tmp_path / "pushed")}
    )
    return tmp_path / "found"


@pytest.mark.parametrize("pushed", [False, True])
def test_what_is_found_is_copied(tmp_path, pushed, caplog):
    caplog.set_level("INFO", logger="verbatim.progress")
    save(tmp_path / "exported" / "Format-Serving", b"own")
    if pushed:
        save(tmp_path / "pushed" / "7", b"other")
    found = run(tmp_path)
    copied = {str(path.relative_to(found)) for path in found.rglob("*") if path.is_file()}
    assert copied == (
        {"Format-Serving/saved_model.pb", "Format-Serving/fingerprint.pb"} if pushed else set()
    )
    assert ("none to compare with" in caplog.text) is not pushed


@pytest.mark.parametrize("found", [False, True])
def test_the_evaluator_takes_an_empty_artifact_for_none(tmp_path, monkeypatch, found):
    from tfx.components.evaluator import executor as tfx_executor
    from tfx.types import standard_artifacts

    from components.evaluator.executor import Executor

    given = {}
    monkeypatch.setattr(
        tfx_executor.Executor, "Do", lambda self, inputs, outputs, properties: given.update(inputs)
    )
    model, baseline = standard_artifacts.Model(), standard_artifacts.Model()
    baseline.uri = str(tmp_path / "baseline")
    (tmp_path / "baseline").mkdir()
    if found:
        save(tmp_path / "baseline" / "Format-Serving")
    inputs = {"model": [model], "baseline_model": [baseline]}
    Executor(Executor.Context(beam_pipeline_args=[], tmp_dir=str(tmp_path), unique_id="1")).Do(
        inputs, {}, {}
    )
    assert set(given) == ({"model", "baseline_model"} if found else {"model"}) and len(inputs) == 2
