"""Several finished runs side by side:
the facts of one page, out of what each run left in its folder.

Only the models of the runs are compared, not their baselines. Where the test sets agree, each run
is compared with the first by paired bootstrap over `outputs/*.jsonl`; nothing is decoded anew.
"""

import json
import os
import pathlib

from pipeline.common.errors import VerbatimError
from pipeline.metrics import registry, scoring
from pipeline.reporting import report, results


class ComparisonError(VerbatimError, ValueError):
    """Runs that cannot be compared; its message is one sentence for the user."""


def compare(run_directories, bootstrap_samples=1000, progress=print):
    """Gathers the facts of several runs.

    Args:
        run_directories: folders that `verbatim run --output` wrote, two at least.
        bootstrap_samples: resampled test sets behind each p-value; 0 for no p-values.
        progress: function of one string.

    Returns:
        The facts as `pipeline.reporting.report.write_report` takes them: a system for each run,
        named after its folder.

    Raises:
        ComparisonError: fewer than two runs, a run without a model, or outputs that cannot be read.
        pipeline.reporting.report.ReportError: a folder holds no run.
    """
    if len(run_directories) < 2:
        raise ComparisonError("A comparison needs two runs or more.")
    if bootstrap_samples < 0:
        raise ComparisonError(
            f"The number of resampled test sets must be 0 or more; got {bootstrap_samples}."
        )
    runs = [report.load_facts(directory) for directory in run_directories]
    for directory, run in zip(run_directories, runs):
        if not run.get("systems"):
            raise ComparisonError(f"The run {directory} has no model: it cannot be compared.")
    names = _names(run_directories)
    systems = [{**run["systems"][0], "name": name} for name, run in zip(names, runs)]
    outputs = [_read_outputs(directory, run) for directory, run in zip(run_directories, runs)]
    facts = {
        "title": f"{', '.join(names[:-1])} and {names[-1]}",
        "systems": systems,
        "versions": runs[0].get("versions", {}),
        "recipe_differences": _recipe_differences([run.get("recipe", {}) for run in runs]),
    }
    if any(records is None for records in outputs):
        note = "Not every run has kept what it said to its test split, so no difference was tested."
    elif any(_test_set(records) != _test_set(outputs[0]) for records in outputs[1:]):
        note = (
            "The runs were measured on different test sets: their numbers do not compare, and "
            "no difference was tested."
        )
    else:
        note = f"The runs were measured on the same {len(outputs[0])} pairs."
        facts.update(_tested(names, runs, outputs, bootstrap_samples, progress))
    return {**facts, "note": note}


def _names(directories):
    """Returns a name for each run:
    its folder's, with as many of the folders above as tell them apart.
    """
    parts = [pathlib.Path(os.path.abspath(directory)).parts for directory in directories]
    if len(set(parts)) < len(parts):
        raise ComparisonError("A run is named twice: give different folders.")
    depth = 1
    while len({part[-depth:] for part in parts}) < len(parts):
        depth += 1
    return ["/".join(part[-depth:]) for part in parts]


def _read_outputs(directory, run):
    """Returns what a run's model said to the test split, a list of dicts;
    None where the run kept nothing.
    """
    path = pathlib.Path(directory) / results.OUTPUTS_FOLDER / f"{run['systems'][0]['name']}.jsonl"
    try:
        with open(path, encoding="utf-8") as file:
            records = [json.loads(line) for line in file]
        if not all(
            isinstance(record[key], str)
            for record in records
            for key in ("source", "reference", "text")
        ):
            raise ValueError("a text is missing")
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise ComparisonError(f"The outputs {path} cannot be understood: {error}.") from None
    return records or None


def _test_set(records):
    return [(record["source"], record["reference"]) for record in records]


def _tested(names, runs, outputs, samples, progress):
    """Returns p-values against the first run, and where it gains and loses most against the second."""
    recipe = runs[0].get("recipe", {})
    data, evaluation = recipe.get("data", {}), recipe.get("evaluation", {})
    options = {
        "language": data.get("target_language", "en"),
        "tokenization": data.get("tokenization", "text"),
        "database": evaluation.get("database") or None,
    }
    first = outputs[0]
    sources, references = ([record[key] for record in first] for key in ("source", "reference"))
    comparisons = {}
    metrics = (
        [name for name in runs[0]["systems"][0]["metrics"] if _testable(name, options)]
        if samples
        else []
    )
    for name, run, records in zip(names[1:], runs[1:], outputs[1:]):
        shared = [metric for metric in metrics if metric in run["systems"][0]["metrics"]]
        if not shared:
            continue
        progress(f"Testing {name} against {names[0]}, {samples} bootstrap samples")
        compared = scoring.paired_bootstrap(
            shared,
            [record["text"] for record in records],
            [record["text"] for record in first],
            references,
            sources=sources,
            bootstrap_samples=samples,
            **options,
        )
        comparisons[name] = {metric: result.p_value for metric, result in compared.items()}
    return {
        "comparisons": comparisons,
        **results.extreme_samples(
            sources, references, dict(zip(names[:2], outputs[:2])), **options
        ),
    }


def _testable(name, options):
    """Whether a metric can be measured on the outputs alone:
    not with training text, a model's scores, or a lost database.
    """
    metric = registry.metric_class(name)
    if name not in registry.METRICS or metric.needs_training_words or metric.needs_scores:
        return False
    return name != "execution_accuracy" or os.path.isfile(options["database"] or "")


def _recipe_differences(recipes):
    """Returns the keys in which recipes differ, with the values of each;
    `name` and `description` say nothing.
    """
    flat = [dict(report.flatten(recipe)) for recipe in recipes]
    keys = [
        key
        for key in dict.fromkeys(key for recipe in flat for key in recipe)
        if key not in ("name", "description")
    ]
    rows = [{"key": key, "values": [recipe.get(key, "–") for recipe in flat]} for key in keys]
    return [row for row in rows if len(set(row["values"])) > 1]
