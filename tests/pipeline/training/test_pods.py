"""A run by machines that start by one command: what is killed and comes back changes nothing."""

import os
import pathlib
import sys
import time

import numpy as np
import pytest

from tests.pipeline.training import pod
from tests.pipeline.training.tiny_training import fn_args, recipe, weights_of, write_pairs
from tests.pipeline.training.training_operator import Operator


@pytest.mark.slow
def test_pods_that_are_killed_train_as_the_pipelines_own_workers(tmp_path):
    """A follower first, then worker 0."""
    from pipeline.entry_points import run_fn
    from pipeline.training import trainer_outputs

    write_pairs(tmp_path / "train.gz", count=19)
    write_pairs(tmp_path / "train-short.gz", count=7, length=3)
    write_pairs(tmp_path / "eval.gz", count=13)
    own = fn_args(tmp_path, "own", recipe(**pod.OPTIONS, workers=2))
    pods = fn_args(tmp_path, pod.NAME, recipe(**pod.OPTIONS))
    checkpoints = pathlib.Path(pods.custom_config["checkpoints"])
    log = tmp_path / "pods.log"

    def newest():
        found = [os.stat(path).st_mtime_ns for path in checkpoints.rglob("*.checkpoint")]
        return max(found, default=0)

    operator = Operator(
        [sys.executable, "-m", "tests.pipeline.training.pod", str(tmp_path)], 2, log
    )
    try:
        for victim, resumed in ((1, 0), (0, 1)):
            # Until it has resumed from what was written before, and written more.
            while log.read_text().count("resumes from a checkpoint") < resumed:
                assert not operator.step(), "the training was over before it was disturbed"
            before = newest()
            while newest() == before:
                assert not operator.step(), "the training was over before it was disturbed"
            assert not os.path.exists(pods.serving_model_dir)
            operator.kill(victim)
        began = time.monotonic()
        while not operator.step():
            assert time.monotonic() - began < 3600, log.read_text()
    finally:
        operator.close()
        print(log.read_text())
    assert -9 in operator.statuses[0] and -9 in operator.statuses[1]
    assert log.read_text().count("resumes from a checkpoint") >= 2
    assert not checkpoints.exists()

    run_fn.run_fn(own)
    one, two = (trainer_outputs.read_history(args.model_run_dir) for args in (own, pods))
    assert one["workers"] == two["workers"] == 2 and one["updates"] == two["updates"]
    for expected, found in zip(weights_of(own), weights_of(pods), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-4)
