"""The results of a run, as facts for `metrics.json`, the table and the report."""

import json
import os
import pathlib
import platform
from collections.abc import Mapping, Sequence
from typing import Any, cast

from pipeline.common import progress, shards
from pipeline.export.served_model import Answer
from pipeline.metrics import all_references, registry, scoring, segmentation_scores
from pipeline.metrics.scored_texts import Score, ScoredTexts, TrainingWords
from pipeline.metrics.scoring_options import ScoringOptions
from pipeline.recipes import views
from pipeline.recipes.recipe import Recipe
from pipeline.reporting import attention
from pipeline.reporting.cached_results import ExportedModel, decode_once, score_once
from pipeline.reporting.facts import MetricFacts, RunFacts, Sample, SystemFacts
from pipeline.reporting.outputs import OUTPUTS_FOLDER, OutputRecord, write_outputs
from pipeline.reporting.run_artifacts import RunArtifacts, SystemArtifacts

# Wins, and as many losses.
EXTREMES = 10
_MOST_SAMPLES = 40
# The length of the clearest examples, in words.
_CLEAR_LENGTH = 8


def read_pairs(examples_uri: str, split: str, columns: Sequence[str] = ()) -> list[list[str]]:
    """Returns the sources, the targets, and the texts of each named column of a split.

    They are ordered by source.
    """
    import tensorflow as tf

    files = shards.of_split(examples_uri, split)
    names = ("source", "target", *columns)
    pairs: list[tuple[str, ...]] = []
    for record in tf.data.TFRecordDataset(files, compression_type="GZIP"):
        feature = tf.train.Example.FromString(record.numpy()).features.feature
        pairs.append(tuple(feature[name].bytes_list.value[0].decode("utf-8") for name in names))
    pairs.sort()
    return [[pair[index] for pair in pairs] for index in range(len(names))]


def collect(
    recipe: Recipe,
    artifacts: RunArtifacts,
    directory: str | os.PathLike[str],
    cache_directory: str | os.PathLike[str],
) -> RunFacts:
    """Measures every model of a run on its test split and gathers what the report shows.

    Args:
        recipe: the run's recipe.
        artifacts: folders of the run.
        directory: folder for `outputs/NAME.jsonl`.
        cache_directory: folder for decoded answers.
    """
    from pipeline.evaluation import gate
    from pipeline.features.vocabulary_files import read_training_counts
    from pipeline.training import trainer_outputs

    columns = recipe.data.source_features
    sources, references, *tags = read_pairs(artifacts.examples, "test", columns)
    features = dict(zip(columns, tags))
    training_words = read_training_counts(artifacts.vocabulary)
    systems: list[SystemFacts] = []
    scored: list[ScoredTexts] = []
    answers: dict[str, list[Answer]] = {}
    needs_scores = any(
        registry.metric_class(name).needs_scores for name in recipe.evaluation.metrics
    )
    explained: list[Answer] = []
    for number, of_system in enumerate(artifacts.systems):
        # Loaded once for all that it is asked, and gone before the next one.
        model = ExportedModel(of_system.model)
        of_texts = decode_once(model, sources, cache_directory, features)
        scores: list[Score] | None = None
        if needs_scores:
            scores = score_once(model, sources, references, cache_directory, features)
        if number == 0:
            explained = attention.explain(model.served, sources, features)
        texts = [answer["text"] for answer in of_texts]
        scored.append(ScoredTexts(texts, references, sources, training_words, scores))
        systems.append(_system_facts(recipe, of_system, sources, of_texts))
        systems[-1].update(_breakdowns(recipe, texts, references, training_words))
        answers[systems[-1]["name"]] = of_texts
    progress.say(f"measuring, {recipe.evaluation.bootstrap_samples} bootstrap samples")
    comparison = _measure(recipe, systems, scored)
    write_outputs(pathlib.Path(directory) / OUTPUTS_FOLDER, sources, references, answers)
    blessed, reason = gate.read_blessing(artifacts.evaluation, recipe)
    with open(os.path.join(artifacts.counts, "counts.json"), encoding="utf-8") as file:
        counts = json.load(file)
    found = trainer_outputs.read_history(artifacts.systems[0].model_run).get("tuning", {})
    systems[0]["metrics"].update(attention.attention_entropy(explained))
    facts: RunFacts = {
        "title": recipe.description or recipe.name,
        "recipe": as_trained(recipe, found),
        "tuning": found,
        "versions": versions(),
        "counts": counts,
        "systems": systems,
        "comparison": comparison,
        "samples": _samples(sources, references, answers),
        "heat_maps": attention.heat_maps(systems[0]["name"], explained),
        "blessed": blessed,
        "blessing_reason": reason,
        "slices": gate.read_slices(artifacts.evaluation),
    }
    if len(systems) == 2:
        options = ScoringOptions.of(recipe)
        facts["wins"], facts["losses"] = extreme_samples(sources, references, answers, options)
    return facts


def _system_facts(
    recipe: Recipe, artifacts: SystemArtifacts, sources: Sequence[str], answers: Sequence[Answer]
) -> SystemFacts:
    """Returns the facts of a system's training, and the words that it found."""
    from pipeline.training import trainer_outputs

    history = trainer_outputs.read_history(artifacts.model_run)
    segmentation = None
    if views.segments(recipe):
        segmentation = segmentation_scores.of_answers(sources, answers)
    return {
        "name": history["head"],
        "curves": history["curve"],
        "parameters": history["parameters"],
        "seconds": history["seconds"],
        "updates": history["updates"],
        "segmentation": segmentation,
    }


def _measure(
    recipe: Recipe, systems: Sequence[SystemFacts], scored: Sequence[ScoredTexts]
) -> dict[str, float | None]:
    """Gives the systems their metrics.

    Returns:
        The p-values of the first system against the second; empty for one system.
    """
    metrics = recipe.evaluation.metrics
    options = ScoringOptions.of(recipe, recipe.evaluation.bootstrap_samples)
    p_values: dict[str, float | None] = {}
    if len(systems) == 2:
        *measured, compared = scoring.score_pair(metrics, scored[0], scored[1], options)
        p_values = {name: result.p_value for name, result in compared.items()}
    else:
        measured = [scoring.score(metrics, scored[0], options)]
    # Tags beside a source decide its output, too.
    has_tags = bool(recipe.data.source_features)
    if not has_tags and (by_source := all_references.score(metrics, scored, options)):
        for of_system, result in zip(measured, by_source[0], strict=True):
            of_system[all_references.NAME] = result
        if len(systems) == 2:
            p_values[all_references.NAME] = by_source[1]
    for system, results in zip(systems, measured):
        system["metrics"] = cast(dict[str, MetricFacts], scoring.results_to_dict(results))
    return p_values


def as_trained(recipe: Recipe, found: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a run's recipe as a dict, with the values that a search found, or with its own.

    Args:
        recipe: the run's recipe.
        found: what `pipeline.recipes.search_space.read_found` returned; empty without a search.
    """
    # The search itself, which `with_values` leaves out, stays.
    return {**recipe.to_dict(), **views.with_values(recipe, found.get("values", {})).to_dict()}


def versions() -> dict[str, str]:
    """Returns the versions of what makes a model, for its report and its card."""
    import keras
    import tensorflow as tf
    import tfx.v1 as tfx

    from serving.own_version import own_version

    return {
        "verbatim-text": own_version(),
        "python": platform.python_version(),
        "tfx": tfx.__version__,
        "tensorflow": tf.__version__,
        "keras": keras.__version__,
    }


def extreme_samples(
    sources: Sequence[str],
    references: Sequence[str],
    answers: Mapping[str, Sequence[Answer | OutputRecord]],
    options: ScoringOptions,
) -> tuple[list[Sample], list[Sample]]:
    """Returns the largest gains and losses of the first of two systems, by chrF of single outputs.

    Args:
        sources, references: the pairs.
        answers: of the two systems, by name.
        options: how outputs are scored.

    Returns:
        (wins, losses), the largest first, each sample with its `gain`; at most `EXTREMES` each.
    """
    first, second = (
        scoring.segment_values(
            "chrf", ScoredTexts([answer["text"] for answer in of_system], references), options
        )
        for of_system in answers.values()
    )
    gains = [(one or 0.0) - (other or 0.0) for one, other in zip(first, second, strict=True)]

    def samples(sign: int) -> list[Sample]:
        order = sorted(range(len(gains)), key=lambda index: (-sign * gains[index], index))
        return [
            {
                "source": sources[index],
                "reference": references[index],
                "gain": gains[index],
                "outputs": {
                    name: cast(Answer, of_system[index]) for name, of_system in answers.items()
                },
            }
            for index in order[:EXTREMES]
            if sign * gains[index] > 0
        ]

    return samples(1), samples(-1)


def _breakdowns(
    recipe: Recipe,
    texts: Sequence[str],
    references: Sequence[str],
    training_words: TrainingWords,
) -> SystemFacts:
    """Returns a system's quality by length and by how often training saw a word."""
    measured = scoring.score(
        ("bleu_by_length", "word_f1_by_length", "word_f1_by_frequency"),
        ScoredTexts(texts, references, training_words=training_words),
        ScoringOptions.of(recipe, bootstrap_samples=0),
    )
    return {
        "by_length": measured["bleu_by_length"].details["by_length"],
        "f1_by_length": measured["word_f1_by_length"].details["f1_by_length"],
        "by_frequency": measured["word_f1_by_frequency"].details["by_frequency"],
    }


def _samples(
    sources: Sequence[str], references: Sequence[str], answers: Mapping[str, Sequence[Answer]]
) -> list[Sample]:
    """Returns texts of the test split, those on which systems differ and copy something first."""
    names = list(answers)

    def rank(index: int) -> tuple[bool, bool, int, int]:
        differ = len({answers[name][index]["text"] for name in names}) > 1
        copied = sum(position >= 0 for position in answers[names[0]][index]["copied_from"])
        length = len(sources[index].split())
        return not differ, copied == 0, abs(length - _CLEAR_LENGTH), index

    return [
        {
            "source": sources[index],
            "reference": references[index],
            "outputs": {name: answers[name][index] for name in names},
        }
        for index in sorted(range(len(sources)), key=rank)[:_MOST_SAMPLES]
    ]
