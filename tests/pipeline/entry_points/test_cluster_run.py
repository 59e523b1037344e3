"""Followers of a run: when they train, wait, end and give up; nothing of TensorFlow runs here."""

import contextlib
import json
import threading

import pytest

from pipeline.commands import main
from pipeline.entry_points import cluster_run, worker_processes
from pipeline.recipes import loading
from pipeline.recipes.recipe import Recipe
from pipeline.training.tf_config import DataParallelError, WorkerPlace

PLACE = WorkerPlace(2, 1)


class _Process:
    """A worker that ends with a status once `over` is set."""

    def __init__(self, status):
        self.status, self.over, self.killed = status, threading.Event(), False

    def poll(self):
        return self.status if self.over.is_set() else None


class _Started:
    """Takes the place of `worker_processes.one_worker`."""

    def __init__(self, *statuses):
        self.folders, self.seen = [], threading.Semaphore(0)
        self.processes = [_Process(status) for status in statuses]

    @contextlib.contextmanager
    def __call__(self, folder, seconds):
        process = self.processes[len(self.folders)]
        self.folders.append(folder)
        self.seen.release()
        try:
            yield process
        finally:
            process.killed = not process.over.is_set()


class _Follower(threading.Thread):
    """Follows in a thread."""

    def __init__(self, folder, seconds):
        super().__init__()
        self.arguments, self.error = (str(folder), PLACE, seconds), None
        self.start()

    def run(self):
        try:
            cluster_run.follow(*self.arguments)
        except DataParallelError as error:
            self.error = str(error)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(cluster_run, "_SECONDS_BETWEEN_SIGNS", 0.1)
    monkeypatch.setattr(cluster_run, "_PAUSE_SECONDS", 0.02)


def started(monkeypatch, *statuses):
    made = _Started(*statuses)
    monkeypatch.setattr(worker_processes, "one_worker", made)
    return made


def test_a_follower_trains_in_each_training_and_ends_with_the_run(tmp_path, monkeypatch):
    made = started(monkeypatch, 0, 0)
    # An earlier run's end ends nobody.
    with cluster_run.leading(str(tmp_path)):
        pass
    follower = _Follower(tmp_path, 60)
    with cluster_run.leading(str(tmp_path)):
        (leader,) = worker_processes.LEADERS
        for number, folder in enumerate(("first", "second")):
            leader.training(folder)
            assert made.seen.acquire(timeout=60)
            made.processes[number].over.set()
            leader.training("")
        assert follower.is_alive()
    follower.join(60)
    assert not follower.is_alive() and follower.error is None
    assert made.folders == ["first", "second"] and worker_processes.LEADERS == []


def test_a_follower_that_comes_back_joins_the_training_that_is_on(tmp_path, monkeypatch):
    made = started(monkeypatch, 3)
    with cluster_run.leading(str(tmp_path)):
        (leader,) = worker_processes.LEADERS
        leader.training("first")
        follower = _Follower(tmp_path, 60)
        assert made.seen.acquire(timeout=60)
        made.processes[0].over.set()
        follower.join(60)
        assert follower.error.startswith("This machine's worker ended with the error above")


def test_a_follower_joins_worker_0_that_was_killed_and_begins_again(tmp_path, monkeypatch):
    made = started(monkeypatch, 0, 0)
    follower = _Follower(tmp_path, 60)
    killed = cluster_run._Leader(str(tmp_path), 60)
    killed.training("first")
    # What stands there when the follower begins counts for nothing until it changes.
    while not made.seen.acquire(timeout=0.1):
        killed.tell()
    with cluster_run.leading(str(tmp_path)):
        (leader,) = worker_processes.LEADERS
        leader.training("first")
        assert made.seen.acquire(timeout=60)
        assert made.processes[0].killed
        made.processes[1].over.set()
    follower.join(60)
    assert follower.error is None and made.folders == ["first", "first"]


def test_a_follower_ends_when_worker_0_fails(tmp_path, monkeypatch):
    started(monkeypatch)
    follower = _Follower(tmp_path, 60)
    with contextlib.suppress(ZeroDivisionError), cluster_run.leading(str(tmp_path)):
        1 / 0  # noqa: B018
    follower.join(60)
    assert follower.error.startswith("Worker 0 ended with an error, which its output shows")


@pytest.mark.parametrize("earlier", [False, True])
def test_worker_0_that_never_answers_is_told(tmp_path, earlier):
    if earlier:
        with cluster_run.leading(str(tmp_path)):
            pass
    follower = _Follower(tmp_path, 0.3)
    follower.join(60)
    assert follower.error == (
        f"Worker 0 wrote nothing to {tmp_path} for 0.3 seconds: start it with the same command, "
        "and let all workers share this folder."
    )


def test_worker_0_that_is_lost_during_a_training_is_told(tmp_path, monkeypatch):
    made = started(monkeypatch, 0)
    follower = _Follower(tmp_path, 3)
    lost = cluster_run._Leader(str(tmp_path), 60)
    lost.training("first")
    # What stands there when the follower begins counts for nothing until it changes.
    while not made.seen.acquire(timeout=0.1):
        lost.tell()
    follower.join(60)
    assert "wrote nothing" in follower.error and made.processes[0].killed


@pytest.mark.parametrize("content", ["", "{", "[]", '{"other": 1}'])
def test_a_state_that_cannot_be_read_is_none(tmp_path, content):
    (tmp_path / cluster_run.STATE_FILE).write_text(content)
    assert cluster_run.read_state(str(tmp_path)) is None


def config(index, *addresses):
    return json.dumps(
        {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}}
    )


def test_a_language_model_is_refused(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", config(0, "a:1", "b:1"))
    with pytest.raises(DataParallelError, match="is trained by one process: unset TF_CONFIG"):
        cluster_run.place_of(loading.load_recipe("penn_treebank"))
    assert cluster_run.place_of(Recipe(name="pairs")) == (2, 0)
    exact = loading.load_recipe("geo880", ["training.deterministic=true"])
    for check in (cluster_run.place_of, worker_processes.are_needed):
        with pytest.raises(DataParallelError, match=r"names 2 workers.*deterministic = false"):
            check(exact)


@pytest.mark.parametrize(
    "text,sentence",
    [
        ("{", "TF_CONFIG cannot be read"),
        (config(0), "TF_CONFIG has a cluster without a worker"),
        (config(2, "a:1", "b:1"), "TF_CONFIG says that this is worker 2, which its cluster lacks"),
        (config(1, "a:1", "b:1"), "Worker 0 wrote nothing to "),
    ],
)
def test_run_refuses_what_it_cannot_use(tmp_path, monkeypatch, capsys, text, sentence):
    monkeypatch.setenv("TF_CONFIG", text)
    output = tmp_path / "run"
    words = ["run", "translation", "--data", "absent.tsv", "--output", str(output)]
    assert main.main([*words, "--worker-patience", "0.3"]) == 1
    captured = capsys.readouterr().err
    assert captured.startswith(f"verbatim: {sentence}") and captured.count("\n") == 1
    assert not output.exists()
