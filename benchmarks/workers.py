"""How fast several workers train, each on one core, compared with one worker on one core.

    python -m benchmarks.workers --workers 1,2,4 --rounds 3

Trains a model of a small translation recipe's size on made-up pairs of one length, by the Trainer's
own `run_fn`. Counts target tokens a second from the end of the first epoch on, so without start-up
and tracing. Rounds are interleaved; each figure is their median. Where there are fewer cores than
workers, workers share them.

The last row shows what two cores of the machine can do at most: two trainings of one worker each at
the same time, which exchange nothing.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import types
from collections.abc import Sequence
from typing import Any

from benchmarks.peers import rounds
from benchmarks.records import measuring
from benchmarks.tables import measured as tables
from pipeline.recipes.recipe import recipe_from_dict

#: The row of two trainings at the same time.
APART = "2, apart"
# Tokens of a source, and of a target without its end.
LENGTH = 19
PAIRS, EPOCHS = 1280, 3
RECIPE: dict[str, Any] = {
    "name": "workers",
    "data": {"max_tokens": LENGTH},
    "model": {"embedding_size": 192, "hidden_size": 256, "coverage": False},
    "training": {
        "epochs": EPOCHS,
        "batch_tokens": 2560,
        "bucket_lengths": [20],
        "learning_rate": 0.002,
    },
}


def write_pairs(path: pathlib.Path, count: int, vocabulary: int, seed: int) -> None:
    """Writes made-up transformed pairs."""
    import numpy as np
    import tensorflow as tf

    rng = np.random.default_rng(seed)
    with tf.io.TFRecordWriter(str(path), options="GZIP") as writer:
        for _ in range(count):
            source, target = rng.integers(4, vocabulary, (2, LENGTH)).tolist()
            ids = {
                "source_ids": source,
                "source_extended_ids": source,
                "source_feed_ids": source,
                "target_input_ids": [2, *target],
                "target_extended_ids": [*target, 3],
            }
            features = {
                name: tf.train.Feature(int64_list=tf.train.Int64List(value=value))
                for name, value in ids.items()
            }
            writer.write(
                tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()
            )


def train(folder: pathlib.Path, workers: int) -> float:
    """Trains with some workers; returns target tokens a second.

    It is called in a process of its own.
    """
    from pipeline.entry_points import run_fn
    from pipeline.features import vocabulary_files
    from pipeline.training import trainer_outputs

    assets = folder / "graph" / "transform_fn" / "assets"
    if not assets.exists():
        assets.mkdir(parents=True)
        size = recipe_from_dict(RECIPE).vocabulary.target_size
        for name in (
            vocabulary_files.SOURCE_VOCABULARY_FILE,
            vocabulary_files.TARGET_VOCABULARY_FILE,
        ):
            (assets / name).write_text("".join(f"word{number}\n" for number in range(size)))
        write_pairs(folder / "train.gz", PAIRS, size, seed=1)
        write_pairs(folder / "eval.gz", 64, size, seed=2)
    recipe = recipe_from_dict({**RECIPE, "training": {**RECIPE["training"], "workers": workers}})
    run = folder / f"run-{workers}"
    run_fn.run_fn(
        types.SimpleNamespace(
            train_files=[str(folder / "train.gz")],
            eval_files=[str(folder / "eval.gz")],
            transform_graph_path=str(folder / "graph"),
            serving_model_dir=str(run / "model"),
            model_run_dir=str(run),
            hyperparameters=None,
            custom_config={"recipe": recipe.to_json(), "checkpoints": str(run / "checkpoints")},
        )
    )
    seconds = [point["seconds"] for point in trainer_outputs.read_history(str(run))["curve"]]
    return PAIRS * (LENGTH + 1) * (EPOCHS - 1) / (seconds[-1] - seconds[0])


def once(folder: pathlib.Path, workers: int, cores: Sequence[int]) -> "subprocess.Popen[str]":
    """Starts a training in a process of its own, on some cores; it prints its rate."""
    command = [sys.executable, "-m", __spec__.name, "--once", str(folder), str(workers)]
    return subprocess.Popen(
        [*command, ",".join(map(str, cores))], stdout=subprocess.PIPE, text=True
    )


def rate_of(processes: Sequence["subprocess.Popen[str]"]) -> float:
    """Returns the target tokens a second of trainings that run at the same time.

    Raises:
        RuntimeError: one failed.
    """
    outputs = [process.communicate()[0] for process in processes]
    if any(process.returncode for process in processes):
        raise RuntimeError("A training failed; see above.")
    return sum(float(output.split()[-1]) for output in outputs)


def main() -> None:
    """Measures all numbers of workers, round by round, and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--workers", default="1,2,4")
    parser.add_argument("--rounds", type=int, default=3)
    measuring.add_argument(parser)
    parser.add_argument("--once", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.once:
        folder, workers, cores = options.once
        # `run_fn` trains in this process, or starts workers, which share its cores equally.
        os.sched_setaffinity(0, [int(core) for core in cores.split(",")])
        print(train(pathlib.Path(folder), int(workers)))
        return
    machine = measuring.machine()
    counts = [int(number) for number in options.workers.split(",")]
    cores = sorted(os.sched_getaffinity(0))
    names: list[int | str] = [*counts, APART]
    rates: dict[int | str, list[float]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)

        def measure(name: int | str) -> float:
            if name == APART:
                return rate_of([once(folder / str(core), 1, [core]) for core in cores[:2]])
            # As many cores as workers.
            return rate_of([once(folder / "together", int(name), cores[: int(name)])])

        for _ in range(options.rounds):
            for name, of_name in rates.items():
                of_name.append(measure(name))
                said = f"{name} workers: {of_name[-1]:.0f} target tokens/s"
                print(said, file=sys.stderr, flush=True)
    alone = rates[counts[0]]
    rows = [
        measuring.row(
            {"workers": name},
            {
                "rate": measuring.spread(rounds.spread(of_name)),
                "times": measuring.spread(
                    rounds.spread([rate / base for rate, base in zip(of_name, alone)])
                ),
            },
        )
        for name, of_name in rates.items()
    ]
    table = measuring.table_of(rows, options.rounds, machine)
    measuring.write(options.record, table)
    print(tables.plain(table))


if __name__ == "__main__":
    main()
