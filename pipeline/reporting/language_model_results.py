"""What a language model's run found, as the facts that the table and the report show."""

import glob
import json
import os

import numpy as np

from pipeline.metrics.base import MetricResult

PASSAGES = "passage_perplexity"
HEAT_MAPS = 4
_BETWEEN_MAPS = 8  # words that a heat map predicts: no two show the same ones


def result(name, value, words, signature):
    """Returns a perplexity as a `MetricResult`."""
    return MetricResult(
        name, value, signature=signature, details={"words": int(words)}, lower_is_better=True
    )


def read_words(examples_uri, split):
    """Returns the words of a split's stream, a list of strings:
    its passages put together, without what they repeat.
    """
    import tensorflow as tf

    from pipeline.readers import text_streams

    passages = []
    files = sorted(glob.glob(os.path.join(examples_uri, f"Split-{split}", "*")))
    for record in tf.data.TFRecordDataset(files, compression_type="GZIP"):
        feature = tf.train.Example.FromString(record.numpy()).features.feature
        context, order = (feature[name].int64_list.value[0] for name in ("context", "order"))
        passages.append(
            (
                order,
                text_streams.words_of(feature["text"].bytes_list.value[0].decode("utf-8"))[
                    context:
                ],
            )
        )
    # Beam keeps no order.
    return [word for _, words in sorted(passages, key=lambda passage: passage[0]) for word in words]


def collect(recipe, artifacts, directory, cache_directory, progress=print):
    """Measures the models of a run on the stream of the evaluated split, and gathers what the
    report shows.

    Args:
        recipe: the run's `Recipe`.
        artifacts: the run's `RunArtifacts`.
        directory: folder for what the report leaves out; of a language model there is nothing.
        cache_directory: folder for what the models gave each word.
        progress: function of one string.

    Returns:
        The facts as `pipeline.reporting.report.write_report` takes them. `passage_perplexity` is
        the Evaluator's, of passages, each after a window of context; `validation_perplexity` that
        of the eval text, as training saw it.
    """
    from pipeline.evaluation import gate, perplexity_of_text
    from pipeline.features.vocabulary_files import STREAM_SIDES, read_counts
    from pipeline.readers import text_streams
    from pipeline.reporting import results
    from pipeline.training import trainer_outputs

    with open(os.path.join(artifacts.counts, "counts.json"), encoding="utf-8") as file:
        counts = json.load(file)
    split = text_streams.evaluated_split(recipe.data)
    stream = read_words(artifacts.examples, split)
    training_counts = read_counts(artifacts.vocabulary, STREAM_SIDES[0])
    scored = [
        _score_once(of_system.model, stream, cache_directory, progress)
        for of_system in artifacts.systems
    ]
    progress(f"measuring, {recipe.evaluation.bootstrap_samples} bootstrap samples")
    measured, comparison = perplexity_of_text.metrics_of(
        stream, scored, recipe.evaluation.bootstrap_samples
    )
    systems = []
    for number, (of_system, metrics, gave) in enumerate(
        zip(artifacts.systems, measured, scored, strict=True)
    ):
        history = trainer_outputs.read_history(of_system.model_run)
        if not number:  # what the Evaluator measured
            value = gate.read_metrics(artifacts.evaluation)[PASSAGES]
            context, _ = text_streams.passage_sizes(recipe)
            signature = f"passages of the {split} text, each after {context} words of context"
            metrics[PASSAGES] = result(PASSAGES, value, len(stream), signature)
        rows = recipe.language_model.evaluation_batch_size
        signature = (
            f"the eval text as {'one stream' if rows == 1 else f'{rows} streams'}, states "
            "and window carried"
        )
        name = "validation_perplexity"
        metrics[name] = result(name, history[name], counts["words_by_split"]["eval"], signature)
        systems.append(
            {
                "name": history["head"],
                "metrics": {name: metric.to_dict() for name, metric in metrics.items()},
                "curves": history["curve"],
                "parameters": history["parameters"],
                "seconds": history["seconds"],
                "updates": history["updates"],
                "log_perplexity_by_frequency": perplexity_of_text.by_frequency(
                    stream, gave, training_counts
                ),
            }
        )
    blessed, reason = gate.read_blessing(artifacts.evaluation, recipe)
    if split == "eval" and blessed:
        reason = reason.replace(
            "on the test split", "on the eval text (the recipe names no test text)"
        )
    found = trainer_outputs.read_history(artifacts.systems[0].model_run).get("tuning", {})
    return {
        "title": recipe.description or recipe.name,
        "recipe": results.as_trained(recipe, found),
        "tuning": found,
        "versions": results.versions(),
        "counts": counts,
        "systems": systems,
        "comparison": comparison,
        "slices": [],
        "samples": [],
        "sentences": perplexity_of_text.extremes(stream, scored, results.EXTREMES)
        if len(scored) == 2
        else {},
        "heat_maps": _heat_maps(recipe, artifacts, stream, scored, training_counts),
        "blessed": blessed,
        "blessing_reason": reason,
    }


def _score_once(model_uri, words, cache_directory, progress):
    """Returns what `ServedLanguageModel.score_stream` gives, from the cache where it is there."""
    from pipeline.export.served_language_model import ServedLanguageModel
    from pipeline.reporting import results

    def score():
        model = ServedLanguageModel(os.path.join(model_uri, "Format-Serving"))
        name = model.facts.get("head", "model")
        scored = model.score_stream(
            words, lambda done: progress(f"{name}: scored {done} of {len(words)} words")
        )
        return {key: values.tolist() for key, values in scored.items()}

    return results.once(cache_directory, "stream", [model_uri, words], score)


def _heat_maps(recipe, artifacts, words, scored, training_counts):
    """Where the pointer looked, at the words that it gained most on:
    against the baseline, or against their mere frequency.
    """
    if recipe.model.head != "pointer_sentinel":
        return []
    import keras

    from pipeline.features import language_model_preprocessing
    from pipeline.text import tokenization
    from pipeline.training import heat_maps, trainer_outputs

    own = np.asarray(scored[0]["log_probability"])
    if len(scored) == 2:
        gain = own - np.asarray(scored[1]["log_probability"])
    else:
        gain = own - np.log([training_counts.get(word, 0) + 1 for word in words])
    path = os.path.join(artifacts.vocabulary, language_model_preprocessing.VOCABULARY_FILE)
    with open(path, encoding="utf-8") as file:
        vocabulary = file.read().splitlines()
    numbers = {
        word: number
        for number, word in enumerate(vocabulary)
        if word not in tokenization.SPECIAL_TOKENS
    }
    unknown = numbers.get(recipe.language_model.unknown_word, tokenization.UNK_ID)
    ids = [tokenization.END_ID if word == "\n" else numbers.get(word, unknown) for word in words]
    model = keras.models.load_model(
        trainer_outputs.model_path(
            os.path.join(artifacts.systems[0].trained_model, "Format-Serving")
        ),
        compile=False,
    )
    shown = ["¶" if word == "\n" else word for word in words]
    ends, maps = [], []
    for end in np.argsort(-gain).tolist():
        if end > _BETWEEN_MAPS and all(abs(end - other) >= _BETWEEN_MAPS for other in ends):
            ends.append(end)
            found = heat_maps.pointer_map(model, ids, shown, end, rows=_BETWEEN_MAPS)
            maps.append({"system": recipe.model.head, **found})
        if len(maps) == HEAT_MAPS:
            break
    return maps
