"""Our side of a comparison, in a process of its own:
the exported model's own signature, and the Trainer's own `run_fn`.
"""

import concurrent.futures
import pathlib
import types

from benchmarks.peers import corpus, processes
from benchmarks.peers.job import Job
from serving import processors

_loaded = {}
# The first epoch begins with tracing, so it is not measured.
EPOCHS = 3


def make(job, data, folder, shortlist=0, forced=True, trained=None):
    """Exports a model of the job's sizes to `folder/model/1`, which answers with a shortlist of so
    many words, or all.

    Args:
        job: a `Job`, as JSON.
        data: the corpus, whose words it knows.
        folder: for the model and its graph.
        shortlist: number of words, 0 for all.
        forced: whether outputs have exactly `job.length` tokens.
        trained: folder of a model that `train` left, with the same corpus and sizes; without it
            nothing is learned.
    """
    from benchmarks.peers import ours_model

    recipe = ours_model.recipe(Job.from_json(job), shortlist, forced)
    graph = ours_model.write_graph(
        recipe, corpus.read(data, "train"), pathlib.Path(folder) / "graph"
    )
    model = pathlib.Path(folder) / "model"
    return {
        "model": str(model),
        "parameters": ours_model.export(recipe, graph, model / "1", trained),
    }


def load(model, job, folder, forced):
    """Loads an exported model; its recipe says its lengths, forced or not."""
    import tensorflow as tf

    from pipeline.export.served_model import ServedModel

    _loaded["model"] = ServedModel(model)
    decoding = _loaded["model"].facts["recipe"]["decoding"]
    return {"version": f"TensorFlow {tf.__version__}", "decoding": decoding}


def decode(texts, batch, signature="serving_default"):
    """Answers texts in batches, in their order, as many at once as there are cores for;
    returns seconds, outputs and their numbers of tokens.
    """
    model, at_once = _loaded["model"], processors.batches_at_once()
    batches = [texts[start : start + batch] for start in range(0, len(texts), batch)]
    with processes.Timer() as timer, concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        answers = sum(pool.map(lambda some: model.predict(some, signature), batches), [])
    return {
        **timer.facts,
        "outputs": [answer["text"] for answer in answers],
        "lengths": [len(answer["tokens"]) for answer in answers],
    }


def train(job, data, folder, large_vocabulary=0):
    """Trains on the corpus' first pairs, with so many words in the softmax of an update, or all
    (0).

    Returns rates from the end of the first epoch on, and the losses after each epoch; those of the
    evaluation are over all words.
    """
    import dataclasses

    from pipeline.common import tensorflow_settings

    # As `verbatim run` does.
    tensorflow_settings.for_training()

    import tensorflow as tf

    from benchmarks.peers import ours_model
    from pipeline.entry_points.run_fn import run_fn
    from pipeline.training import trainer_outputs

    job, folder = Job.from_json(job), pathlib.Path(folder)
    pairs = corpus.read(data, "train")
    recipe = ours_model.recipe(job)
    chosen, evaluated = corpus.training_pairs(pairs, job)
    # A pair counts as long as its bucket, on both sides: this many tokens make batches of so many
    # pairs on average.
    buckets = recipe.training.bucket_lengths
    padded = [next(size for size in buckets if size >= pair_length(pair)) for pair in chosen]
    batch_tokens = round(job.training_batch * 2 * sum(padded) / len(padded))
    training = dataclasses.replace(
        recipe.training,
        epochs=EPOCHS,
        batch_tokens=batch_tokens,
        large_vocabulary_size=large_vocabulary,
    )
    recipe = dataclasses.replace(recipe, training=training)
    graph = ours_model.write_graph(recipe, pairs, folder / "graph")
    for name, part in {"train": chosen, "eval": evaluated}.items():
        ours_model.write_examples(graph, part, folder / f"{name}.gz")
    run_fn(
        types.SimpleNamespace(
            train_files=[str(folder / "train.gz")],
            eval_files=[str(folder / "eval.gz")],
            transform_graph_path=str(folder / "graph" / "transform"),
            serving_model_dir=str(folder / "model"),
            model_run_dir=str(folder / "run"),
            hyperparameters=None,
            custom_config={"recipe": recipe.to_json(), "checkpoints": str(folder / "checkpoints")},
        )
    )
    history = trainer_outputs.read_history(str(folder / "run"))
    points = history["curve"]
    seconds = (points[-1]["seconds"] - points[0]["seconds"]) / (EPOCHS - 1)
    updates = [round((n + 1) * history["steps_per_epoch"]) for n in range(len(points))]
    return {
        "version": f"TensorFlow {tf.__version__}",
        "parameters": history["parameters"],
        "source_rate": sum(len(source.split()) for source, _ in chosen) / seconds,
        "target_rate": sum(len(target.split()) + 1 for _, target in chosen) / seconds,
        "pairs_an_update": len(chosen) / history["steps_per_epoch"],
        "losses": [[update, point["loss"]] for update, point in zip(updates, points)],
        "eval_losses": [[update, point["eval_loss"]] for update, point in zip(updates, points)],
    }


def pair_length(pair):
    """Returns the length that a pair is padded by:
    the longer of its source, and its target with the end.
    """
    return max(len(pair[0].split()), len(pair[1].split()) + 1)


if __name__ == "__main__":
    processes.serve({"make": make, "load": load, "decode": decode, "train": train})
