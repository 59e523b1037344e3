"""The compiled Kubeflow pipeline, executed:
it ends with the model, the report and the card that the local run ends with.
"""

import json
import pathlib

import numpy as np
import pytest
import yaml

from pipeline.recipes import loading
from tests import kubeflow
from tests.end_to_end.conftest import OVERRIDES

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def executed(data_file, tmp_path_factory):
    """The pipeline's root, and the outputs of every task."""
    from pipeline.runners import kubeflow_runner

    # What the pushed model does not depend on is left out: each task costs the start of a process.
    without = ("baseline.head=", "lexicon.kind=none")
    # There is nothing to compare with yet: the task that looks for it finds nothing, and the model
    # is pushed all the same.
    demanded = ("evaluation.change_thresholds.bleu=-1",)
    recipe = loading.load_recipe("localization_en_fr", (*OVERRIDES, *without, *demanded))
    root = tmp_path_factory.mktemp("kubeflow")
    settings = kubeflow_runner.ClusterSettings(pipeline_root=str(root))
    path = kubeflow_runner.compile_pipeline(
        recipe, root / "pipeline.yaml", str(data_file), settings
    )
    return root, kubeflow.run_pipeline(
        yaml.safe_load(path.read_text(encoding="utf-8")), root / "tasks"
    )


def variables(folder):
    """The values of a SavedModel's variables by name."""
    import tensorflow as tf

    path = str(folder / "variables" / "variables")
    return {
        name: np.asarray(tf.train.load_variable(path, name))
        for name, _ in tf.train.list_variables(path)
    }


def test_it_pushes_the_model_that_the_local_run_pushes(executed, finished_run):
    root, _ = executed
    facts, _ = finished_run
    (pushed,) = (
        path for path in (root / "models" / "localization_en_fr").iterdir() if path.is_dir()
    )
    (local,) = (path for path in pathlib.Path(facts["paths"]["models"]).iterdir() if path.is_dir())
    of_cluster, of_local = variables(pushed), variables(local)
    numeric = [name for name, value in of_local.items() if value.dtype.kind == "f"]
    assert set(of_cluster) == set(of_local) and len(numeric) > 10
    for name in numeric:
        # Threads add the parts of a sum in any order.
        np.testing.assert_allclose(of_cluster[name], of_local[name], atol=1e-4)


def test_it_says_that_no_model_was_blessed_before(executed):
    root, outputs = executed
    assert not list(pathlib.Path(outputs["LastPushedModel"]["model"][0]).rglob("saved_model.pb"))
    log = (root / "tasks" / "LastPushedModel.log").read_text(encoding="utf-8")
    assert "No other model has been pushed yet" in log


def test_it_writes_the_report_and_the_card(executed, finished_run):
    root, outputs = executed
    facts, _ = finished_run
    written = pathlib.Path(outputs["Reporter"]["report"][0])
    own = json.loads((written / "report" / "facts.json").read_text(encoding="utf-8"))
    of_local = facts["systems"][0]["metrics"]
    values = {name: found["value"] for name, found in own["systems"][0]["metrics"].items()}
    assert values == pytest.approx(
        {name: found["value"] for name, found in of_local.items()}, rel=1e-4
    )
    assert "<svg" in (written / "report" / "index.html").read_text(encoding="utf-8")

    def texts(of_run):
        return {
            (one["source"], one["reference"]): one["outputs"]["pointer_generator"]["text"]
            for one in of_run["samples"]
        }

    # Not from the run's folder, where other tests have run since.
    assert texts(own) == texts(facts) and len(texts(own)) > 10
    (card,) = (root / "models" / "localization_en_fr").glob("model_card_*.json")
    assert json.loads(card.read_text(encoding="utf-8"))["metrics"] == own["systems"][0]["metrics"]
