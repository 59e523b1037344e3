"""A tiny training that is killed again and again, beside one that is not.

It is a program, run by `test_checkpoints.py`.

    killed_training.py FOLDER SETTINGS

SETTINGS is JSON: `task`; sections of the recipe with keys that differ; and `kills`, a list of when
SIGKILL comes, each `{"checkpoint": n}` (after the n-th checkpoint of its process), `{"writing": n}`
(when half of it is written) or `{"seconds": s}` (so long after the first). A checkpoint is written
after each update. FOLDER has the pairs and, for `training.subword_sampling`, the Transform graph.
It gets `unbroken.npz` and `killed.npz`, the weights, `unbroken.json` and `killed.json`, the facts,
and `checkpoints`. Each training is a fork, so that TensorFlow is imported once.
"""

import json
import logging
import os
import pathlib
import signal
import sys
import time
import traceback

from tests.pipeline.training import tiny_training


def main(folder, settings):
    logger = logging.getLogger("verbatim.progress")
    logger.setLevel(logging.INFO)
    logger.addHandler(logging.StreamHandler(sys.stdout))
    kills = settings.pop("kills")
    ended_by(folder, settings, "unbroken", None)
    for kill in kills:
        assert ended_by(folder, settings, "killed", kill) == signal.SIGKILL, (
            f"The training ended before {kill}."
        )
        print(
            kill,
            sorted(path.name for path in (folder / "checkpoints").rglob("*") if path.is_file()),
            flush=True,
        )
    assert ended_by(folder, settings, "killed", {}) == 0


def ended_by(folder, settings, name, kill):
    """Runs a training in a process of its own; returns the signal that ended it, 0 for none."""
    begun, says_so = os.pipe()
    child = os.fork()
    if not child:
        status = 1
        try:
            train(folder, settings, name, kill, says_so)
            status = 0
        except Exception:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(status)
    os.close(says_so)
    if kill and "seconds" in kill:
        os.read(begun, 1)
        time.sleep(kill["seconds"])
        os.kill(child, signal.SIGKILL)
    os.close(begun)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, f"The training failed: {status}."
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def train(folder, settings, name, kill, says_so):
    """Trains, with checkpoints unless `kill` is None, and writes what came of it."""
    import numpy as np

    from pipeline.recipes.recipe import recipe_from_dict
    from pipeline.training import checkpoints, language_model_trainer
    from pipeline.training.language_model_inputs import LanguageModelInputs

    kept = None
    if kill is not None:
        kept = checkpoints.Checkpoints(str(folder / "checkpoints"))
        die_at(kill, says_so)
    recipe = recipe_from_dict({"name": "tiny", **settings})
    train_files, eval_files = ([str(folder / f"{split}*.gz")] for split in ("train", "eval"))
    if recipe.task == "language_model":
        inputs = LanguageModelInputs(train_files, eval_files, tiny_training.VOCABULARY)
        model, facts = language_model_trainer.train(recipe, inputs, kept)
    elif recipe.training.subword_sampling != "none":
        model, facts = train_sampled(recipe, folder, train_files, eval_files, kept)
    else:
        model, facts = tiny_training.train(recipe, train_files, eval_files, checkpoints=kept)
    # Random states and all.
    np.savez(folder / f"{name}.npz", *(variable.numpy() for variable in model.variables))
    (folder / f"{name}.json").write_text(json.dumps(facts))


def train_sampled(recipe, folder, train_files, eval_files, kept):
    """Trains on words that are cut anew; the Transform graph is `folder / "transform"`."""
    import tensorflow_transform as tft

    from pipeline.training import trainer
    from pipeline.training.model_inputs import ModelInputs
    from pipeline.training.sampled_units import SampledUnits
    from pipeline.training.training_inputs import TrainingInputs

    output = tft.TFTransformOutput(str(folder / "transform"))
    inputs = TrainingInputs(
        train_files,
        eval_files,
        ModelInputs.of(recipe, output),
        cutting=SampledUnits.of(recipe, output),
    )
    return trainer.train(recipe, inputs, kept)


def die_at(kill, says_so):
    """Makes a checkpoint follow each update, and this process end at one of them."""
    from pipeline.training import checkpoints

    checkpoints.SECONDS = checkpoints.TIMES_WRITING = 0.0
    save, pack = checkpoints.Checkpoints.save, checkpoints._pack
    written = 0

    def pack_and_die(state):
        header, content = pack(state)
        if written + 1 != kill.get("writing"):
            return [header, content]

        def halves():
            yield header
            yield content[: len(content) // 2]
            # More than a file's buffer: the half stands on the disk.
            yield bytes(1 << 20)
            os.kill(os.getpid(), signal.SIGKILL)

        return halves()

    def save_and_die(kept, state):
        nonlocal written
        save(kept, state)
        written += 1
        if written == 1:
            os.write(says_so, b".")
        if written == kill.get("checkpoint"):
            os.kill(os.getpid(), signal.SIGKILL)

    checkpoints.Checkpoints.save, checkpoints._pack = save_and_die, pack_and_die


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), json.loads(sys.argv[2]))
