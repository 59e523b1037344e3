"""Runs one recipe with several variants and seeds, and prints the table that compares them.

    python -m benchmarks.heads geo880 --data PATH --output DIR --variants none,attention,joint_copy
    --seeds 1,2,3

It is a campaign (`benchmarks.campaign`) whose list stands on the command line, for a look at
something that no committed list has: nothing goes into `benchmarks/results`. A run that is already
in DIR is not repeated, and all runs share a folder, so that common work (ingestion, vocabularies,
features) is not repeated either. The figures go to DIR/RECIPE.json, the table to standard output
and DIR/results.md, and the learning curves of the first seed to DIR/results.svg. Tests are against
the first variant, over sentences and seeds.
"""

import argparse
import os
import pathlib
import sys
from collections.abc import Sequence

from benchmarks import learning_curves
from benchmarks.campaign import plan as plans
from benchmarks.campaign.jobs import Folders, Job
from benchmarks.campaign.plan import Plan, Row, Table
from benchmarks.campaign.queue import Limits, Queue
from benchmarks.records import record
from benchmarks.tables import trained
from pipeline.common import whole_files
from pipeline.recipes import loading
from pipeline.recipes.recipe import Recipe

#: The metrics of a language model, whose recipe names none.
LANGUAGE_MODEL_METRICS = ("validation_perplexity", "perplexity")


def metrics_of(recipe: Recipe) -> tuple[str, ...]:
    """Returns the metrics of a recipe's table: those that it names."""
    if recipe.task == "language_model":
        return LANGUAGE_MODEL_METRICS
    return tuple(name for name in recipe.evaluation.metrics if name != "unseen_copies")


def plan_of(
    recipe: str, data: str, variants: Sequence[str], seeds: Sequence[int], overrides: Sequence[str]
) -> Plan:
    """Returns the campaign that the command line asks for.

    Raises:
        PlanError: it cannot be run.
    """
    table = Table(
        name=pathlib.Path(recipe).stem,
        recipe=recipe,
        data=data,
        split="test",
        seeds=tuple(seeds),
        set=tuple(overrides),
        metrics=metrics_of(loading.load_recipe(recipe, overrides)),
        against=variants[0],
        rows=tuple(Row(name, variant=name) for name in variants),
    )
    plans.check(table, "heads")
    return Plan(table.name, (table,))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs all cells and prints the table; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("recipe")
    parser.add_argument("--data", default="")
    parser.add_argument("--output", required=True, type=pathlib.Path)
    parser.add_argument(
        "--variants", default="none,attention,joint_copy,pointer_generator,pointer_softmax"
    )
    parser.add_argument("--seeds", default="1")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="for every variant"
    )
    options = parser.parse_args(arguments)
    seeds = [int(seed) for seed in options.seeds.split(",")]
    try:
        plan = plan_of(
            options.recipe, options.data, options.variants.split(","), seeds, options.set
        )
    except plans.PlanError as error:
        print(f"heads: {error}", file=sys.stderr)
        return 1
    [table] = plan.tables
    folders = Folders("", options.output.absolute(), options.output, shared=True)
    jobs = [Job(table, row, seed, folders) for row in table.rows for seed in seeds]
    cores = tuple(sorted(os.sched_getaffinity(0)))
    queue = Queue(jobs, Limits(1, cores, len(cores), nice=0), print)
    queue.work()
    written = record.read(table.name, options.output)
    if written:
        text = trained.table(table, written)
        whole_files.write_text(options.output / "results.md", text)
        print(text)
        curves = {row.name: row.runs[0].eval_losses for row in written.rows}
        learning_curves.write(options.output / "results.svg", curves)
    return 1 if queue.failed else 0


if __name__ == "__main__":
    sys.exit(main())
