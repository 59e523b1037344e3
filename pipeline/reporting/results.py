"""What a run found, as one dict of facts: for `metrics.json`, for the table, for the report."""

import glob
import hashlib
import json
import os
import pathlib
import platform

import numpy as np

from pipeline.metrics import registry, scoring, segmentation_scores
from pipeline.metrics.base import MetricResult
from pipeline.recipes import views

HEAT_MAPS = 4
EXPLAINED = 200  # test strings whose attention is looked at
OUTPUTS_FOLDER = "outputs"
EXTREMES = 10  # wins, and losses
#: What `write_outputs` says of an answer.
OUTPUT_KEYS = ("text", "tokens", "copied_from", "copy_probability", "source_tokens", "score")


def read_pairs(examples_uri, split, columns=()):
    """Returns the sources, the targets, and the texts of each named column of a split:
    lists of strings, ordered by source.
    """
    import tensorflow as tf

    files = sorted(glob.glob(os.path.join(examples_uri, f"Split-{split}", "*")))
    pairs, names = [], ("source", "target", *columns)
    for record in tf.data.TFRecordDataset(files, compression_type="GZIP"):
        feature = tf.train.Example.FromString(record.numpy()).features.feature
        pairs.append(tuple(feature[name].bytes_list.value[0].decode("utf-8") for name in names))
    pairs.sort()
    return [[pair[index] for pair in pairs] for index in range(len(names))]


def decode_once(model_uri, sources, cache_directory, progress, features=None):
    """Decodes texts with an exported model, or reads what an earlier run decoded with the very same
    model and texts.

    Args:
        model_uri: Exporter's `model` artifact.
        sources: list of strings.
        cache_directory: folder for the answers.
        progress: function of one string.
        features: see `ServedModel.predict`.

    Returns:
        What `ServedModel.predict` returned.
    """
    from pipeline.export.served_model import ServedModel

    def decode():
        model = ServedModel(os.path.join(model_uri, "Format-Serving"))
        name = model.facts.get("head", "model")
        return model.predict(
            sources,
            progress=lambda done: progress(
                f"{name}: decoded {done} of {len(sources)} test strings"
            ),
            features=features,
        )

    return once(
        cache_directory, "answers", [model_uri, sources, *([features] if features else [])], decode
    )


def _score_once(model_uri, sources, targets, cache_directory, features):
    """Returns (log-probability, number of tokens) of each target by an exported model, from the
    cache where they are there.
    """
    from pipeline.export.served_model import ServedModel

    def score():
        model = ServedModel(os.path.join(model_uri, "Format-Serving"))
        log_probability, tokens = model.score(sources, targets, features)
        return list(zip(log_probability.tolist(), tokens.tolist()))

    key = ["score", model_uri, sources, targets, *([features] if features else [])]
    return once(cache_directory, "scores", key, score)


def once(cache_directory, kind, key, make):
    """Returns what `make` makes, which JSON can hold;
    what an earlier run made under the same key, if there is such.
    """
    digest = hashlib.sha256(json.dumps(key).encode()).hexdigest()[:16]
    path = pathlib.Path(cache_directory) / f"{kind}-{digest}.json"
    if path.is_file():
        return json.loads(path.read_text(encoding="utf-8"))
    made = make()
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(made, ensure_ascii=False), encoding="utf-8")
    temporary.replace(path)
    return made


def collect(recipe, artifacts, directory, cache_directory, progress=print):
    """Measures every model of a run on its test split and gathers what the report shows.

    Args:
        recipe: the run's `Recipe`.
        artifacts: the run's `RunArtifacts`.
        directory: folder for `outputs/NAME.jsonl`, see `write_outputs`.
        cache_directory: folder for decoded answers.
        progress: function of one string.

    Returns:
        The facts as `pipeline.reporting.report.write_report` takes them.
    """
    from pipeline.evaluation import gate
    from pipeline.features.vocabulary_files import read_training_counts
    from pipeline.training import trainer_outputs

    columns = recipe.data.source_features
    sources, references, *tags = read_pairs(artifacts.examples, "test", columns)
    features = dict(zip(columns, tags))
    training_words = read_training_counts(artifacts.vocabulary)
    systems, texts, answers, models = [], [], {}, {}
    for of_system in artifacts.systems:
        history = trainer_outputs.read_history(of_system.model_run)
        name = history["head"]
        models[name] = of_system.model
        answers[name] = decode_once(models[name], sources, cache_directory, progress, features)
        texts.append([answer["text"] for answer in answers[name]])
        systems.append(
            {
                "name": name,
                "curves": history["curve"],
                "parameters": history["parameters"],
                "seconds": history["seconds"],
                "updates": history["updates"],
                "segmentation": segmentation_scores.of_answers(sources, answers[name])
                if views.segments(recipe)
                else None,
                **_breakdowns(recipe, texts[-1], references, training_words),
            }
        )
    metrics = recipe.evaluation.metrics
    scores = [None] * len(systems)
    if any(registry.metric_class(name).needs_scores for name in metrics):
        scores = [
            _score_once(uri, sources, references, cache_directory, features)
            for uri in models.values()
        ]
    progress(f"measuring, {recipe.evaluation.bootstrap_samples} bootstrap samples")
    settings = {
        "sources": sources,
        "training_words": training_words,
        "bootstrap_samples": recipe.evaluation.bootstrap_samples,
        **registry.options_of(recipe),
    }
    comparison, extremes = {}, {}
    if len(systems) == 2:
        *measured, compared = scoring.score_pair(
            metrics, *texts, references, scores=scores, **settings
        )
        comparison = {name: result.p_value for name, result in compared.items()}
        extremes = extreme_samples(sources, references, answers, **registry.options_of(recipe))
    else:
        measured = [scoring.score(metrics, *texts, references, scores=scores[0], **settings)]
    for system, results in zip(systems, measured):
        system["metrics"] = scoring.results_to_dict(results)
    write_outputs(pathlib.Path(directory) / OUTPUTS_FOLDER, sources, references, answers)
    blessed, reason = gate.read_blessing(artifacts.evaluation, recipe)
    with open(os.path.join(artifacts.counts, "counts.json"), encoding="utf-8") as file:
        counts = json.load(file)
    main = systems[0]["name"]
    found = trainer_outputs.read_history(artifacts.systems[0].model_run).get("tuning", {})
    explained = _explain(models[main], sources, features)
    systems[0]["metrics"].update(attention_entropy(explained))
    return {
        "title": recipe.description or recipe.name,
        "recipe": as_trained(recipe, found),
        "tuning": found,
        "versions": versions(),
        "counts": counts,
        "systems": systems,
        "comparison": comparison,
        "samples": _samples(sources, references, answers),
        **extremes,
        "heat_maps": _heat_maps(main, explained),
        "blessed": blessed,
        "blessing_reason": reason,
        "slices": gate.read_slices(artifacts.evaluation),
    }


def write_outputs(directory, sources, references, answers):
    """Writes what each system said to the test split, `NAME.jsonl`:
    `source`, `reference` and `OUTPUT_KEYS`.
    """
    directory.mkdir(parents=True, exist_ok=True)
    for name, given in answers.items():
        partial = directory / f"{name}.partial"
        with open(partial, "w", encoding="utf-8") as file:
            for source, reference, answer in zip(sources, references, given, strict=True):
                record = {"source": source, "reference": reference}
                record.update({key: answer[key] for key in OUTPUT_KEYS})
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
        partial.replace(directory / f"{name}.jsonl")


def as_trained(recipe, found):
    """Returns a run's recipe as a dict, with the values that a search found,
    `search_space.read_found`, or with its own.
    """
    # The search itself, which `with_values` leaves out, stays.
    return {**recipe.to_dict(), **views.with_values(recipe, found.get("values", {})).to_dict()}


def versions():
    """Returns the versions of what makes a model, for its report and its card."""
    import keras
    import tensorflow as tf
    import tfx.v1 as tfx

    from pipeline.export.seq2seq_export import own_version

    return {
        "verbatim-text": own_version(),
        "python": platform.python_version(),
        "tfx": tfx.__version__,
        "tensorflow": tf.__version__,
        "keras": keras.__version__,
    }


def extreme_samples(sources, references, answers, **options):
    """Returns where the first of two systems gains and loses most against the second, by chrF of
    single outputs.

    Args:
        sources, references: lists of strings.
        answers: dict from two systems to their answers, a list of dicts with at least `text`.
        **options: as for `pipeline.metrics.registry.create_metric`.

    Returns:
        {"wins": samples, "losses": samples}, the largest first, each sample with its `gain`; at
        most `EXTREMES` each.
    """
    first, second = (
        scoring.segment_values("chrf", [answer["text"] for answer in given], references, **options)
        for given in answers.values()
    )
    gains = [one - other for one, other in zip(first, second, strict=True)]

    def samples(sign):
        order = sorted(range(len(gains)), key=lambda index: (-sign * gains[index], index))
        return [
            {
                "source": sources[index],
                "reference": references[index],
                "gain": gains[index],
                "outputs": {name: given[index] for name, given in answers.items()},
            }
            for index in order[:EXTREMES]
            if sign * gains[index] > 0
        ]

    return {"wins": samples(1), "losses": samples(-1)}


def _breakdowns(recipe, texts, references, training_words):
    """Returns a system's quality by length and by how often training saw a word, for three
    pictures.
    """
    found = scoring.score(
        ("bleu_by_length", "word_f1_by_length", "word_f1_by_frequency"),
        texts,
        references,
        training_words=training_words,
        bootstrap_samples=0,
        **registry.options_of(recipe),
    )
    return {
        "by_length": found["bleu_by_length"].details["by_length"],
        "f1_by_length": found["word_f1_by_length"].details["f1_by_length"],
        "by_frequency": found["word_f1_by_frequency"].details["by_frequency"],
    }


def _samples(sources, references, answers):
    """All test strings, those where the systems differ and something was copied first."""
    names = list(answers)

    def interest(index):
        differ = len({answers[name][index]["text"] for name in names}) > 1
        copied = sum(position >= 0 for position in answers[names[0]][index]["copied_from"])
        # Half of the words copied and a medium length make the clearest examples.
        return (not differ, copied == 0, abs(len(sources[index].split()) - 8), index)

    return [
        {
            "source": sources[index],
            "reference": references[index],
            "outputs": {name: answers[name][index] for name in names},
        }
        for index in sorted(range(len(sources)), key=interest)[:40]
    ]


def _explain(model_uri, sources, features):
    """Answers of the signature `explain`, with where attention lay, for strings from the whole of
    the test split.
    """
    from pipeline.export.served_model import ServedModel

    chosen = range(0, len(sources), -(-len(sources) // EXPLAINED) or 1)
    model = ServedModel(os.path.join(model_uri, "Format-Serving"))
    return model.predict(
        [sources[index] for index in chosen],
        signature="explain",
        features={column: [tags[index] for index in chosen] for column, tags in features.items()},
    )


def attention_entropy(explained):
    """Returns how widely a model spreads its attention, as {"attention_entropy": a result's dict};
    empty where it has none.

        H = 1/N sum_t - sum_s a_ts log2 a_ts          bits for each of N output tokens (Arthur 2018,
        section 3.3.2)

    0 bits: it looks at one token alone; log2(source length) bits: at all alike. It says nothing of
    quality by itself.

    Args:
        explained: answers of the signature `explain`, whose rows of `attention` may be short of 1
            by what a gate took.
    """
    bits, tokens = 0.0, 0
    for answer in explained:
        if not answer["tokens"]:
            continue
        rows = np.asarray(answer["attention"], "float64")
        rows = rows[rows.sum(-1) > 0]
        rows = rows / rows.sum(-1, keepdims=True)
        bits -= float(np.sum(rows * np.log2(np.where(rows > 0, rows, 1.0))))
        tokens += len(rows)
    if not tokens:
        return {}
    details = {"tokens": tokens, "texts": len(explained)}
    signature = f"bits for each output token|{len(explained)} texts from the whole test split"
    result = MetricResult("attention_entropy", bits / tokens, signature=signature, details=details)
    return {result.name: result.to_dict()}


def _heat_maps(name, explained):
    """Attention of the main model on a few strings of which it copied several words."""

    def copied(answer):
        return sum(position >= 0 for position in answer["copied_from"])

    fitting = [answer for answer in explained if 5 <= len(answer["tokens"]) <= 14]
    keys = ("source_tokens", "tokens", "attention", "copy_probability", "copied_from")
    chosen = sorted(fitting, key=copied, reverse=True)[:HEAT_MAPS]
    return [{"system": name, **{key: answer[key] for key in keys}} for answer in chosen]
