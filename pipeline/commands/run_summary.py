"""The summary of a finished run: a table, the gate's decision, and paths."""

from collections.abc import Iterator

from pipeline.metrics import segmentation_scores
from pipeline.reporting import score_tables
from pipeline.reporting.facts import Counts, RunFacts, metric_results


def lines_of(facts: RunFacts) -> Iterator[str]:
    """Yields the lines; some are tables of several lines."""
    results = {system["name"]: metric_results(system) for system in facts["systems"]}
    yield ""
    # The first system was tested against the second, its baseline.
    model, *baseline = results
    p_values = {model: facts["comparison"]} if baseline else {}
    yield score_tables.format_table(results, p_values, *baseline[:1])
    if breakdowns := score_tables.format_breakdowns(results):
        yield breakdowns
    for system in facts["systems"]:
        segmentation = system.get("segmentation")
        if segmentation and "word_f1" in segmentation:
            yield f"Words found by {system['name']}: {segmentation_scores.describe(segmentation)}"
    yield ""
    yield from _lines_of_data(facts["counts"], facts["paths"])
    yield facts["blessing_reason"]
    paths = facts["paths"]
    if facts["blessed"]:
        yield f"Model:   {paths['models']}"
        if "model_card" in paths:
            yield f"Card:    {paths['model_card']}"
    yield f"Metrics: {paths['metrics']}"
    yield f"Report:  {paths['report']}"


def _lines_of_data(counts: Counts, paths: dict[str, str]) -> Iterator[str]:
    if "words_by_split" in counts:
        words = ", ".join(
            f"{number} words of {split}" for split, number in counts["words_by_split"].items()
        )
        yield f"{counts['read']} lines read: {words}, line ends included"
    else:
        yield (
            f"{counts['read']} records read, {counts['kept']} kept, {counts['rejected']} rejected: "
            f"{paths['rejects']}"
        )
    if new := counts.get("recombined"):
        yield f"{new} new training pairs made of those kept (data.recombinations)"
    for split, number in (counts.get("rejected_by_given_split") or {}).items():
        if split != "train":
            yield (
                f"{number} of the rejected records are in the files given as {split}, so these "
                "files were not used whole."
            )
