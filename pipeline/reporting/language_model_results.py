"""The results of a language model's run, as facts for table and report."""

import json
import os
from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np

from pipeline.common import progress, shards
from pipeline.export.served_language_model import ServedLanguageModel, StreamScores
from pipeline.metrics.base import MetricResult
from pipeline.recipes.recipe import Recipe
from pipeline.reporting import results
from pipeline.reporting.cached_results import compute_once
from pipeline.reporting.facts import Counts, HeatMap, MetricFacts, RunFacts, SystemFacts
from pipeline.reporting.run_artifacts import RunArtifacts, SystemArtifacts

PASSAGES = "passage_perplexity"
VALIDATION = "validation_perplexity"
HEAT_MAPS = 4
# Words that a heat map predicts: no two show the same ones.
_BETWEEN_MAPS = 8


def perplexity_result(name: str, value: float | None, words: int, signature: str) -> MetricResult:
    """Returns a perplexity of so many words."""
    return MetricResult(
        name, value, signature=signature, details={"words": int(words)}, lower_is_better=True
    )


def read_words(examples_uri: str, split: str) -> list[str]:
    """Returns the words of a split's stream: its passages joined, without what they repeat."""
    import tensorflow as tf

    from pipeline.readers import text_streams

    passages: list[tuple[int, list[str]]] = []
    files = shards.of_split(examples_uri, split)
    for record in tf.data.TFRecordDataset(files, compression_type="GZIP"):
        feature = tf.train.Example.FromString(record.numpy()).features.feature
        context, order = (feature[name].int64_list.value[0] for name in ("context", "order"))
        text = feature["text"].bytes_list.value[0].decode("utf-8")
        passages.append((order, text_streams.words_of(text)[context:]))
    # Beam keeps no order.
    return [word for _, words in sorted(passages, key=lambda passage: passage[0]) for word in words]


def collect(
    recipe: Recipe,
    artifacts: RunArtifacts,
    directory: str | os.PathLike[str],
    cache_directory: str | os.PathLike[str],
) -> RunFacts:
    """Measures the models of a run on the stream of the evaluated split.

    Args:
        recipe: the run's recipe.
        artifacts: folders of the run.
        directory: folder for what the report leaves out; of a language model there is nothing.
        cache_directory: folder for what the models gave each word.

    Returns:
        The facts. `passage_perplexity` is the Evaluator's, of passages, each after a window of
        context; `validation_perplexity` that of the eval text, as training saw it.
    """
    from pipeline.evaluation import gate, perplexity_of_text
    from pipeline.features.vocabulary_files import STREAM_SIDES, read_counts
    from pipeline.readers import text_streams
    from pipeline.training import trainer_outputs

    with open(os.path.join(artifacts.counts, "counts.json"), encoding="utf-8") as file:
        counts: Counts = json.load(file)
    split = text_streams.evaluated_split(recipe.data)
    stream = read_words(artifacts.examples, split)
    training_counts = read_counts(artifacts.vocabulary, STREAM_SIDES[0])
    scored = [
        _score_once(of_system.model, stream, cache_directory) for of_system in artifacts.systems
    ]
    progress.say(f"measuring, {recipe.evaluation.bootstrap_samples} bootstrap samples")
    measured, comparison = perplexity_of_text.metrics_of(
        stream, scored, recipe.evaluation.bootstrap_samples
    )
    context, _ = text_streams.passage_sizes(recipe)
    measured[0][PASSAGES] = perplexity_result(
        PASSAGES,
        gate.read_metrics(artifacts.evaluation)[PASSAGES],
        len(stream),
        f"passages of the {split} text, each after {context} words of context",
    )
    systems = []
    for of_system, metrics, of_words in zip(artifacts.systems, measured, scored, strict=True):
        systems.append(_system_facts(recipe, of_system, metrics, counts["words_by_split"]["eval"]))
        systems[-1]["log_perplexity_by_frequency"] = perplexity_of_text.by_frequency(
            stream, of_words, training_counts
        )
    blessed, reason = gate.read_blessing(artifacts.evaluation, recipe)
    if split == "eval" and blessed:
        reason = reason.replace(
            "on the test split", "on the eval text (the recipe names no test text)"
        )
    found = trainer_outputs.read_history(artifacts.systems[0].model_run).get("tuning", {})
    facts: RunFacts = {
        "title": recipe.description or recipe.name,
        "recipe": results.as_trained(recipe, found),
        "tuning": found,
        "versions": results.versions(),
        "counts": counts,
        "systems": systems,
        "comparison": comparison,
        "slices": [],
        "samples": [],
        "heat_maps": _heat_maps(recipe, artifacts, stream, scored, training_counts),
        "blessed": blessed,
        "blessing_reason": reason,
    }
    if len(scored) == 2:
        facts["sentences"] = perplexity_of_text.extremes(stream, scored, results.EXTREMES)
    return facts


def _system_facts(
    recipe: Recipe,
    artifacts: SystemArtifacts,
    metrics: Mapping[str, MetricResult],
    eval_words: int,
) -> SystemFacts:
    """Returns the facts of a system's training, with its metrics and those of its training."""
    from pipeline.training import trainer_outputs

    history = trainer_outputs.read_history(artifacts.model_run)
    rows = recipe.language_model.evaluation_batch_size
    streams = "one stream" if rows == 1 else f"{rows} streams"
    validation = perplexity_result(
        VALIDATION,
        history["validation_perplexity"],
        eval_words,
        f"the eval text as {streams}, states and window carried",
    )
    return {
        "name": history["head"],
        "metrics": {
            name: cast(MetricFacts, metric.to_dict())
            for name, metric in {**metrics, VALIDATION: validation}.items()
        },
        "curves": history["curve"],
        "parameters": history["parameters"],
        "seconds": history["seconds"],
        "updates": history["updates"],
    }


def _score_once(
    model_uri: str, words: Sequence[str], cache_directory: str | os.PathLike[str]
) -> StreamScores:
    """Returns a model's scores of each word, from the cache if possible."""

    def score() -> dict[str, list[float]]:
        scored = ServedLanguageModel(os.path.join(model_uri, "Format-Serving")).score_stream(words)
        return {
            "log_probability": scored["log_probability"].tolist(),
            "log_probability_with_copies": scored["log_probability_with_copies"].tolist(),
            "unknown": scored["unknown"].tolist(),
        }

    stored = compute_once(cache_directory, "stream", [model_uri, words], score)
    return {
        "log_probability": np.asarray(stored["log_probability"], np.float32),
        "log_probability_with_copies": np.asarray(
            stored["log_probability_with_copies"], np.float32
        ),
        "unknown": np.asarray(stored["unknown"], bool),
    }


def _heat_maps(
    recipe: Recipe,
    artifacts: RunArtifacts,
    words: Sequence[str],
    scored: Sequence[StreamScores],
    training_counts: Mapping[str, int],
) -> list[HeatMap]:
    """Returns heat maps of the pointer at the words with its largest gains.

    It gains on the baseline's probability, or on the words' mere frequency.
    """
    if recipe.model.head != "pointer_sentinel":
        return []
    import keras

    # Registers the classes of a trained network; the Reporter may be alone in its process.
    import keras_models.models  # noqa: F401
    from pipeline.features import language_model_preprocessing
    from pipeline.text import tokenization
    from pipeline.training import heat_maps, trainer_outputs

    own = scored[0]["log_probability"].astype(np.float64)
    if len(scored) == 2:
        gain = own - scored[1]["log_probability"]
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
    ids = np.asarray(
        [tokenization.END_ID if word == "\n" else numbers.get(word, unknown) for word in words],
        np.int32,
    )
    model = keras.models.load_model(
        trainer_outputs.model_path(
            os.path.join(artifacts.systems[0].trained_model, "Format-Serving")
        ),
        compile=False,
    )
    shown = ["¶" if word == "\n" else word for word in words]
    ends: list[int] = []
    maps: list[HeatMap] = []
    for end in np.argsort(-gain).tolist():
        if end > _BETWEEN_MAPS and all(abs(end - other) >= _BETWEEN_MAPS for other in ends):
            ends.append(end)
            heat_map = heat_maps.pointer_map(model, ids, shown, end, rows=_BETWEEN_MAPS)
            maps.append({"system": recipe.model.head, **heat_map})
        if len(maps) == HEAT_MAPS:
            break
    return maps
