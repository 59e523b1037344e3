"""Our side of a comparison, in a process of its own: an exported model, the Trainer's `run_fn`."""

import concurrent.futures
import pathlib
import types
from typing import Any

from benchmarks.peers import corpus, processes
from benchmarks.peers.job import Job
from serving import processors

_loaded: dict[str, Any] = {}
# The first epoch begins with tracing, so it is not measured.
EPOCHS = 3


def make(
    job: str,
    data: str,
    folder: str,
    shortlist: int = 0,
    forced: bool = True,
    trained: str | None = None,
) -> processes.Answer:
    """Exports a model of the job's sizes to `folder/model/1`.

    Args:
        job: a `Job`, as JSON.
        data: the corpus, whose words it knows.
        folder: for the model and its graph.
        shortlist: number of words that it chooses among, 0 for all.
        forced: whether outputs have exactly `job.length` tokens.
        trained: folder of a model that `train` left, with the same corpus and sizes; without it
            the model is untrained.
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


def load(model: str, job: str, folder: str, forced: bool) -> processes.Answer:
    """Loads an exported model, whose recipe sets its lengths."""
    import tensorflow as tf

    from pipeline.export.served_model import ServedModel

    _loaded["model"] = ServedModel(model)
    decoding = _loaded["model"].facts["recipe"]["decoding"]
    return {"version": f"TensorFlow {tf.__version__}", "decoding": decoding}


def decode(texts: list[str], batch: int, signature: str = "serving_default") -> processes.Answer:
    """Answers texts in batches, in their order, one batch per core at a time.

    Returns:
        Seconds, outputs and their numbers of tokens.
    """
    model, at_once = _loaded["model"], processors.batches_at_once()
    batches = [texts[start : start + batch] for start in range(0, len(texts), batch)]
    with processes.Timer() as timer, concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        answered = pool.map(lambda some: model.predict(some, signature), batches)
        answers = [answer for answers in answered for answer in answers]
    return {
        **timer.facts,
        "outputs": [answer["text"] for answer in answers],
        "lengths": [len(answer["tokens"]) for answer in answers],
    }


def train(
    job: str, data: str, folder: str, large_vocabulary: int = 0, mixed_precision: bool = False
) -> processes.Answer:
    """Trains on the corpus' first pairs.

    Args:
        job: a `Job`, as JSON.
        data: the corpus.
        folder: for the model, its graph and its examples.
        large_vocabulary: number of words in the softmax of an update, 0 for all.
        mixed_precision: whether it computes in bfloat16.

    Returns:
        Rates from the end of the first epoch on, and the losses after each epoch; those of the
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

    sizes, directory = Job.from_json(job), pathlib.Path(folder)
    pairs = corpus.read(data, "train")
    recipe = ours_model.recipe(sizes)
    chosen, evaluated = corpus.training_pairs(pairs, sizes)
    # Both sides of a pair count as long as its bucket. With this many tokens, a batch has the job's
    # number of pairs on average.
    buckets = recipe.training.bucket_lengths
    padded = [next(size for size in buckets if size >= pair_length(pair)) for pair in chosen]
    batch_tokens = round(sizes.training_batch * 2 * sum(padded) / len(padded))
    training = dataclasses.replace(
        recipe.training,
        epochs=EPOCHS,
        batch_tokens=batch_tokens,
        large_vocabulary_size=large_vocabulary,
        mixed_precision=mixed_precision,
    )
    recipe = dataclasses.replace(recipe, training=training)
    graph = ours_model.write_graph(recipe, pairs, directory / "graph")
    for name, part in {"train": chosen, "eval": evaluated}.items():
        ours_model.write_examples(graph, part, directory / f"{name}.gz")
    run_fn(
        types.SimpleNamespace(
            train_files=[str(directory / "train.gz")],
            eval_files=[str(directory / "eval.gz")],
            transform_graph_path=str(directory / "graph" / "transform"),
            serving_model_dir=str(directory / "model"),
            model_run_dir=str(directory / "run"),
            hyperparameters=None,
            custom_config={
                "recipe": recipe.to_json(),
                "checkpoints": str(directory / "checkpoints"),
            },
        )
    )
    history = trainer_outputs.read_history(str(directory / "run"))
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


def pair_length(pair: corpus.Pair) -> int:
    """Returns the length of a pair's longer side, the end of the target included."""
    return max(len(pair[0].split()), len(pair[1].split()) + 1)


if __name__ == "__main__":
    processes.serve({"make": make, "load": load, "decode": decode, "train": train})
