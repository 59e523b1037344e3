"""Checkpoints:
a killed training ends as one that was not, and damaged ones, strange ones and a full disk do no
harm.
"""

import errno
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import types

import numpy as np
import pytest

from tests.pipeline.training.tiny_training import Clock, write_pairs

ROOT = pathlib.Path(__file__).parents[3]
PROGRAM = pathlib.Path(__file__).with_name("killed_training.py")


@pytest.fixture
def kept(tmp_path):
    """Checkpoints of a training called `a`, in a folder with a file pattern's letters."""
    from pipeline.training import checkpoints

    kept = checkpoints.Checkpoints(str(tmp_path / "run [1]"))
    kept.load("a")
    return kept


def files(kept):
    return sorted(pathlib.Path(kept.directory).glob("*"))


def state(number):
    weights = [
        np.full((2, 3), number, "float32"),
        np.array(number, "int64"),
        np.array([1, 2], "uint32"),
        np.float32(0.1),
    ]
    curve = [{"loss": math.inf}]
    return {
        "epoch": number,
        "weights": weights,
        "best": None,
        "seconds": 0.1,
        "stopped": False,
        "curve": curve,
    }


def killed(folder, **settings):
    """Runs `killed_training.py`;
    returns (weights, facts) of the unbroken training, the same of the killed one, and what it
    printed.
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(PROGRAM), str(folder), json.dumps(settings)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    results = []
    for name in ("unbroken", "killed"):
        weights = np.load(folder / f"{name}.npz")
        results.append(
            (
                [weights[key] for key in weights.files],
                json.loads((folder / f"{name}.json").read_text()),
            )
        )
    return *results, done.stdout


def without_seconds(facts):
    return {
        key: [without_seconds(point) for point in value] if key == "curve" else value
        for key, value in facts.items()
        if key != "seconds"
    }


def assert_same(unbroken, other):
    for one, two in zip(unbroken[0], other[0], strict=True):
        assert one.dtype == two.dtype and np.array_equal(one, two)
    assert without_seconds(unbroken[1]) == without_seconds(other[1])


@pytest.fixture
def tiny(tmp_path):
    """Sections of a recipe of a tiny training, whose pairs lie in the test's folder."""
    write_pairs(tmp_path / "train.gz", count=18)
    write_pairs(tmp_path / "train-short.gz", count=18, length=3)
    write_pairs(tmp_path / "eval.gz", count=6)
    return {
        "training": {
            "epochs": 4,
            "batch_tokens": 96,
            "learning_rate": 0.02,
            "warmup_steps": 2,
            "bucket_lengths": [4, 8],
            # Otherwise the last digits of two trainings differ now and then, killed or not.
            "deterministic": True,
        },
        "data": {"max_tokens": 7},
        "model": {"embedding_size": 8, "hidden_size": 8, "dropout": 0.3},
    }


@pytest.mark.slow
def test_a_killed_training_ends_with_the_weights_of_an_unbroken_one(tmp_path, tiny):
    # In the middle of the first epoch, halfway through a file in the second, at an epoch's end.
    kills = [{"checkpoint": 3}, {"writing": 6}, {"checkpoint": 2}]
    unbroken, other, said = killed(tmp_path, kills=kills, **tiny)
    assert_same(unbroken, other)
    # What was half written was not taken for a checkpoint, and was written anew.
    lines = [line for line in said.splitlines() if line.startswith("{")]
    assert [".checkpoint.partial" in line for line in lines] == [False, True, False]
    assert said.count("resumes from a checkpoint") == 3
    assert len(list((tmp_path / "checkpoints").rglob("*.checkpoint*"))) == 2


@pytest.mark.slow
def test_a_killed_training_draws_the_same_cuts_of_words(tmp_path, tiny):
    from tests.pipeline.export import tiny_models

    words = ["nation", "national", "station", "rational", "relation", "%s"]
    rows = [(f"greet {one} and {two}", f"{two} et {one}") for one in words for two in words[:4]]
    settings = {
        **tiny,
        "data": {"units": "subwords", "tokenization": "text", "max_tokens": 12},
        "vocabulary": {"pieces": 300},
        "training": {
            **tiny["training"],
            "epochs": 2,
            "batch_tokens": 400,
            "bucket_lengths": [40],
            "subword_sampling": "both",
        },
    }
    recipe = tiny_models.make_recipe(**settings)
    output = tiny_models.transform_tiny(tmp_path, recipe, rows, [], [])
    for path in tmp_path.glob("*.gz"):
        path.unlink()
    for name, part in (("train", rows[:20]), ("eval", rows[20:])):
        path = str(tmp_path / f"{name}.gz")
        tiny_models.write_examples(path, output, part, ("source", "target"))
    full = json.loads(recipe.to_json())
    kills = [{"checkpoint": 2}, {"checkpoint": 3}]
    unbroken, other, said = killed(tmp_path, kills=kills, **full)
    assert_same(unbroken, other)
    assert said.count("resumes from a checkpoint") == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "training",
    [
        {
            "average": "moving",
            "select_by": "token_accuracy",
            "keep": "last",
            "unknown_word_rate": 0.3,
            "accumulated_batches": 2,
            "consistency_weight": 1.0,
        },
        {
            "average": "best",
            "schedule": "halving",
            "optimizer": "adamw",
            "weight_decay": 0.1,
            "max_updates": 11,
        },
    ],
)
def test_what_a_recipe_adds_resumes_as_well(tmp_path, tiny, training):
    # A network that is soon traced.
    tiny["model"].update(encoder="cnn", attention="none", head="softmax", coverage=False)
    tiny["training"].update(training)
    kills = [{"checkpoint": 3}, {"checkpoint": 4}]
    unbroken, other, said = killed(tmp_path, kills=kills, **tiny)
    assert_same(unbroken, other)
    assert said.count("resumes from a checkpoint") == 2
    assert unbroken[1]["updates"] == training.get("max_updates", unbroken[1]["updates"])
    selected = ["selected" in point for point in unbroken[1]["curve"]]
    assert all(selected) if "select_by" in training else not any(selected)


@pytest.mark.slow
def test_a_training_killed_at_ten_random_moments_ends_as_an_unbroken_one(tmp_path, tiny):
    # Moments of a clock fall anywhere in an update or a checkpoint, and elsewhere in each run.
    # Together they are shorter than the training.
    kills = [{"seconds": random.uniform(0.0, 0.15)} for _ in range(10)]
    tiny["training"]["epochs"] = 60
    # A network that is soon traced: each of the twelve trainings traces it.
    tiny["model"].update(encoder="cnn", attention="none", head="softmax", coverage=False)
    unbroken, other, said = killed(tmp_path, kills=kills, **tiny)
    assert_same(unbroken, other)
    assert said.count("resumes from a checkpoint") == 10, said


def test_checkpoints_come_back_and_the_last_two_are_kept(kept):
    assert kept.load("a") is None
    for number in range(4):
        kept.save(state(number))
    assert [path.name for path in files(kept)] == ["00000003.checkpoint", "00000004.checkpoint"]
    loaded = kept.load("a")
    assert list(loaded) == list(state(3))
    assert {key: value for key, value in loaded.items() if key not in ("weights", "best")} == {
        "epoch": 3,
        "seconds": 0.1,
        "stopped": False,
        "curve": [{"loss": math.inf}],
    }
    for one, two in zip(loaded["weights"], state(3)["weights"], strict=True):
        assert one.dtype == two.dtype and one.shape == two.shape and np.array_equal(one, two)
    assert loaded["best"] is None
    kept.load("b")
    kept.save(state(5))
    kept.clear()
    assert kept.load("a")["epoch"] == 3
    kept.clear()
    assert kept.load("a") is None and not pathlib.Path(kept.directory).parent.exists()


def test_a_training_finds_no_checkpoint_of_another(kept):
    from pipeline.training import checkpoints

    kept.save(state(1))
    assert kept.load("b") is None
    recipe, data = {"name": "x", "training": {"seed": 1}}, np.arange(3)
    digests = [
        checkpoints.digest_of(recipe, data),
        checkpoints.digest_of({**recipe, "training": {"seed": 2}}, data),
        checkpoints.digest_of(recipe, data[::-1]),
        checkpoints.digest_of(recipe, data.astype("int32")),
        checkpoints.digest_of(recipe, data.tobytes(), b""),
        checkpoints.digest_of(recipe, data.tobytes() + b""),
    ]
    assert len(set(digests)) == 6 and checkpoints.digest_of(recipe, np.arange(3)) == digests[0]


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-1],
        lambda content: content[:500] + b"?" + content[501:],
        lambda content: b"",
    ],
)
def test_a_damaged_checkpoint_gives_way_to_the_one_before(kept, caplog, damage):
    kept.save(state(1))
    kept.save(state(2))
    last = files(kept)[-1]
    last.write_bytes(damage(last.read_bytes()))
    assert kept.load("a")["epoch"] == 1
    assert caplog.messages == [
        f"The checkpoint {last} cannot be used (it is not complete): the training resumes from the "
        "one before, or starts again."
    ]
    # It is gone, so that the good one stays among the two.
    kept.save(state(3))
    assert [kept.load("a")["epoch"], len(files(kept)), len(caplog.messages)] == [3, 2, 1]
    for path in files(kept):
        path.write_bytes(b"nothing")
    assert kept.load("a") is None and len(caplog.messages) == 3


def test_a_full_disk_stops_no_training(kept, caplog, monkeypatch):
    kept.save(state(1))

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        kept.save(state(2))
        kept.save(state(3))
    [sentence] = caplog.messages
    assert sentence.startswith(
        f"No checkpoint can be written to {kept.directory} (No space left on device); the "
        "training continues"
    )
    # Nothing half-written is left, and what was there is still good.
    assert len(files(kept)) == 1 and kept.load("a")["epoch"] == 1
    kept.save(state(4))
    assert kept.load("a")["epoch"] == 4 and len(caplog.messages) == 1
    # A disk that is full again is told again.
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        kept.save(state(5))
    assert len(caplog.messages) == 2


def test_no_folder_no_checkpoints(monkeypatch):
    from pipeline.training import checkpoints

    monkeypatch.setattr(checkpoints, "SECONDS", 0.0)
    kept = checkpoints.Checkpoints()
    assert kept.load("a") is None and not kept.due() and not kept.due(at_epoch_end=True)
    kept.clear()


def test_when_a_checkpoint_is_due(kept, monkeypatch):
    from pipeline.training import checkpoints

    clock = Clock()
    monkeypatch.setattr(checkpoints, "time", types.SimpleNamespace(monotonic=clock))
    kept = checkpoints.Checkpoints(str(pathlib.Path(kept.directory).parent))
    kept.load("a")
    assert kept.due(at_epoch_end=True) and not kept.due()
    clock.now += checkpoints.SECONDS
    assert kept.due()
    monkeypatch.setattr(
        checkpoints, "_write", lambda path, parts: setattr(clock, "now", clock.now + 10)
    )
    kept.save(state(1))
    clock.now += 10 * checkpoints.TIMES_WRITING - 1
    assert not kept.due() and not kept.due(at_epoch_end=True)
    clock.now += 1
    assert kept.due() and kept.due(at_epoch_end=True)
