"""Several workers:
two train as one does, a lost one is told and its training goes on, and what TF_CONFIG may say.
"""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from pipeline.entry_points import worker_processes
from pipeline.training import tf_config, workers
from tests.pipeline.training.tiny_training import fn_args, recipe, weights_of, write_pairs


def children():
    """The processes that this one has started, the oldest first."""
    found = []
    # By their parents: what a thread has started is in another's list once that thread is gone.
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # gone meanwhile
            _, parent, *_ = stat.read_text().rpartition(")")[2].split()
            if int(parent) == os.getpid():
                found.append(int(stat.parent.name))
    return sorted(found)


@pytest.mark.slow
def test_two_workers_train_as_one_even_if_one_is_lost_on_the_way(tmp_path, capfd, caplog):
    from pipeline.entry_points import run_fn
    from pipeline.training import trainer_outputs

    caplog.set_level("INFO", logger="verbatim.progress")
    # The last batch of an epoch has one pair: one of the workers has none of it.
    write_pairs(tmp_path / "train.gz", count=19)
    write_pairs(tmp_path / "train-short.gz", count=7, length=3)
    write_pairs(tmp_path / "eval.gz", count=13)
    options = {"epochs": 12, "accumulated_batches": 2}
    alone = fn_args(tmp_path, "alone", recipe(**options))
    run_fn.run_fn(alone)

    together = fn_args(tmp_path, "together", recipe(**options, workers=2))
    errors = []

    def train():
        try:
            run_fn.run_fn(together)
        except ValueError as error:
            errors.append(str(error))

    before = children()
    training = threading.Thread(target=train)
    training.start()
    checkpoints = pathlib.Path(together.custom_config["checkpoints"])
    while training.is_alive() and not list(checkpoints.rglob("*.checkpoint")):
        time.sleep(0.05)
    os.kill([number for number in children() if number not in before][-1], signal.SIGKILL)
    training.join()
    assert len(errors) == 1 and errors[0].startswith(
        "Worker 2 of 2 was killed by SIGKILL, and the others cannot continue"
    )
    assert not os.path.exists(together.serving_model_dir)
    assert [number for number in children() if number not in before] == []

    run_fn.run_fn(together)
    # What the workers say goes to their standard output, which is this process'.
    assert "2 workers on this machine" in caplog.text
    assert capfd.readouterr().out.count("resumes from a checkpoint") == 1
    one, two = (
        trainer_outputs.read_history(arguments.model_run_dir) for arguments in (alone, together)
    )
    assert (one["workers"], two["workers"]) == (1, 2)
    assert one["updates"] == two["updates"] == 12 * one["steps_per_epoch"] // 2
    for name in ("loss", "eval_loss"):
        curves = [[point[name] for point in facts["curve"]] for facts in (one, two)]
        np.testing.assert_allclose(*curves, rtol=1e-4)
    for expected, found in zip(weights_of(alone), weights_of(together), strict=True):
        np.testing.assert_allclose(found, expected, atol=2e-3)
    assert not checkpoints.exists()


@pytest.mark.slow
def test_two_replicas_train_as_one_does(tmp_path):
    """Loss and clipping:
    Keras alone doubles the one, and clips each replica's gradients by themselves.
    """
    root = pathlib.Path(__file__).parents[3]
    command = [sys.executable, "-m", "tests.pipeline.training.mirrored_training", str(tmp_path)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    two, one = json.loads((tmp_path / "mirrored.json").read_text())
    assert (two["workers"], one["workers"]) == (2, 1)
    for name in ("loss", "eval_loss"):
        np.testing.assert_allclose(
            *([point[name] for point in facts["curve"]] for facts in (two, one)), rtol=1e-4
        )
    assert (
        (tmp_path / "refused.txt")
        .read_text()
        .startswith("On 2 GPUs one process cannot accumulate batches: set")
    )


def config(cluster, kind="worker", index=0):
    return json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})


@pytest.mark.parametrize(
    "text,expected",
    [
        (None, None),
        ("", None),
        ("{}", None),
        (config({"worker": ["a:1"]}), None),
        (config({"worker": ["a:1", "b:1"]}, index=1), (2, 1)),
        (config({"chief": ["a:1"], "worker": ["b:1", "c:1"]}, index=1), (3, 2)),
        (config({"chief": ["a:1"], "worker": ["b:1", "c:1"]}, "chief"), (3, 0)),
    ],
)
def test_what_tf_config_says(text, expected):
    assert tf_config.tasks_of(text) == expected


@pytest.mark.parametrize(
    "text,sentence",
    [
        ("{", "TF_CONFIG cannot be read"),
        ("[]", "TF_CONFIG cannot be read"),
        (
            config({"worker": ["a:1", "b:1"], "ps": ["c:1"]}),
            "names tasks ps; only chief and worker",
        ),
        (
            config({"worker": ["a:1", "b:1"]}, index=2),
            "says that this is worker 2, which its cluster lacks",
        ),
        (
            config({"worker": ["a:1", "b:1"]}, "chief"),
            "says that this is chief 0, which its cluster lacks",
        ),
        (config({"worker": ["a:1", "b:1"]}, index=-1), "says that this is worker -1"),
        (config({"worker": []}), "has a cluster without a worker"),
        (config({}), "has a cluster without a worker"),
        (config({"worker": ["a:1", "b"]}), "a worker at 'b': write HOST:PORT"),
        (config({"worker": ["a:1", "b:0"]}), "a worker at 'b:0': write HOST:PORT"),
        (config({"worker": ["a:1", 2]}), "a worker at 2: write HOST:PORT"),
        (config({"worker": ["a:1", "a:1"]}), "two workers at one address"),
    ],
)
def test_a_tf_config_that_cannot_be_used(text, sentence):
    with pytest.raises(tf_config.DataParallelError, match=sentence):
        tf_config.tasks_of(text)


@pytest.mark.parametrize("rows", [1, 2, 3, 7])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_the_workers_rows_are_the_batch(rows, count):
    """Each row is one worker's, shares sum to 1 and weigh by tokens."""
    import tensorflow as tf

    rng = np.random.default_rng(0)
    labels = rng.integers(1, 9, (rows, 5)) * (np.arange(5) < rng.integers(1, 6, (rows, 1)))
    batch = {
        "source_ids": tf.constant(rng.integers(1, 9, (rows, 4))),
        "target_extended_ids": tf.constant(labels),
    }
    seen, shares = [], []
    for index in range(count):
        some = object.__new__(workers.Workers)
        some.count, some.index = count, index
        inputs, own, share = some.own_rows(batch, tf.constant(labels))
        assert (
            np.array_equal(inputs["target_extended_ids"], own)
            and len(own) == len(inputs["source_ids"]) >= 1
        )
        real = own.numpy().any(axis=1)
        seen += [tuple(row) for row in own.numpy()[real]]
        assert float(share) == pytest.approx((own.numpy() > 0).sum() / (labels > 0).sum())
        shares.append(float(share))
    assert sorted(seen) == sorted(map(tuple, labels)) and sum(shares) == pytest.approx(1)


def test_a_worker_without_tf_config_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    assert worker_processes.work(str(tmp_path)) == 1
    assert "TF_CONFIG names no cluster of two workers or more" in capsys.readouterr().err
