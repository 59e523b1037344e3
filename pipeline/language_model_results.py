"""What a language model's run found, as the facts that the table and the report show."""

import json
import os

from pipeline.scoring import MetricResult

NAME = "perplexity"


def result(value, words, signature):
    """Returns a perplexity as a `MetricResult`."""
    return MetricResult(
        NAME, value, signature=signature, details={"words": int(words)}, unit="points", lower_is_better=True
    )


def collect(recipe, outputs, stages, cache_directory, progress=print):
    """Gathers what the Evaluator and the Trainers found.

    Args:
        recipe: the run's `Recipe`.
        outputs: what `lineage.latest_outputs` returned.
        stages: list of {"name", "seconds"}.
        cache_directory: unused; nothing is decoded.
        progress: function of one string.

    Returns:
        The facts as `pipeline.report.write_report` takes them. `perplexity` is that of the stream's passages; where the model is
        measured on the validation text itself, `validation_perplexity` is that of the whole stream, as training saw it.
    """
    from pipeline import evaluation, results, text_streams, trainer
    from pipeline.pipeline import BASELINE

    with open(os.path.join(outputs["TextExampleGen"]["counts"], "counts.json"), encoding="utf-8") as file:
        counts = json.load(file)
    split = text_streams.evaluated_split(recipe.data)
    words = counts["words_by_split"]
    context, _ = text_streams.passage_sizes(recipe)
    systems = []
    for component in ("Trainer", f"Trainer.{BASELINE}") if recipe.baseline.head else ("Trainer",):
        run_directory = outputs[component]["model_run"]
        with open(os.path.join(run_directory, trainer.HISTORY_FILE), encoding="utf-8") as file:
            history = json.load(file)
        measured = {}
        if component == "Trainer":
            value = evaluation.read_metrics(outputs["Evaluator"]["evaluation"])[NAME]
            signature = f"passages of the {split} text, each after {context} words of context"
            measured[NAME] = result(value, words[split], signature).to_dict()
        rows = recipe.language_model.evaluation_batch_size
        signature = f"the eval text as {'one stream' if rows == 1 else f'{rows} streams'}, states and window carried"
        measured["validation_perplexity"] = result(history["validation_perplexity"], words["eval"], signature).to_dict()
        systems.append(
            {
                "name": history["head"],
                "metrics": measured,
                "curves": history["curve"],
                "parameters": history["parameters"],
                "seconds": history["seconds"],
                "updates": history["updates"],
            }
        )
    blessed, reason = evaluation.read_blessing(outputs["Evaluator"]["evaluation"], recipe)
    if split == "eval" and blessed:
        reason = reason.replace("on the test split", "on the eval text (the recipe names no test text)")
    return {
        "title": recipe.description or recipe.name,
        "recipe": recipe.to_dict(),
        "versions": results.versions(),
        "counts": counts,
        "systems": systems,
        "comparison": {},
        "slices": [],
        "samples": [],
        "heat_maps": [],
        "blessed": blessed,
        "blessing_reason": reason,
        "stages": stages,
    }
