"""Runs one recipe with several copy mechanisms and seeds, and writes the table that compares them.

    python -m benchmarks.heads geo880 --data PATH --output DIR --variants none,attention,joint_copy
    --seeds 1,2,3

Every cell is a run of `verbatim run`; a run that is already in DIR is not repeated. All variants
share DIR, so that common work (ingestion, vocabularies, features) is not repeated either. The table
goes to standard output and to DIR/results.md, its facts to DIR/results.json, and the learning
curves of the first seed to DIR/results.svg. The p-values are those of a bootstrap of the first
metric against the first variant, over sentences and over the seeds of both. The commands in the
table have a folder for each variant, so that one who runs them by hand overwrites nothing.
"""

import argparse
import dataclasses
import json
import pathlib
import shlex
import shutil
import statistics
import subprocess
import sys
from collections.abc import Sequence
from typing import Any, TypedDict

from benchmarks import learning_curves
from pipeline.common import whole_files
from pipeline.metrics import seed_test
from pipeline.metrics.scored_texts import ScoredTexts
from pipeline.metrics.scoring_options import ScoringOptions
from pipeline.recipes import choices, loading
from pipeline.recipes.recipe import Recipe
from pipeline.reporting.facts import MetricFacts, RunFacts, SystemFacts
from pipeline.training.trainer_outputs import CurvePoint

#: The metrics of a language model, whose recipe names none.
LANGUAGE_MODEL_METRICS = ("validation_perplexity", "perplexity")
#: What distinguishes each variant, as `--set` takes it.
VARIANTS: dict[str, tuple[str, ...]] = {
    "none": ("model.head=softmax", "model.attention=none", "model.coverage=false"),
    "attention": ("model.head=softmax",),
    "unknown_replacement": ("model.head=softmax", "decoding.replace_unknown=copy"),
    "pointer_generator": ("model.head=pointer_generator",),
    "pointer_softmax": ("model.head=pointer_softmax",),
    "pointer_sentinel": ("model.head=pointer_sentinel",),
    "pointer_network": ("model.head=pointer_network",),
    "joint_copy": ("model.head=joint_copy",),
    "selective_read": ("model.head=joint_copy", "model.selective_read=true"),
    "span_copy": ("model.head=span_copy",),
    "span_copy_start": ("model.head=span_copy", "model.copying_context=start"),
    "lexicon_bias": ("model.head=lexicon_bias", "lexicon.kind=learned"),
    "lexicon_bias_manual": ("model.head=lexicon_bias", "lexicon.kind=manual"),
    "lexicon_bias_hybrid": ("model.head=lexicon_bias", "lexicon.kind=hybrid"),
    "lexicon_linear": ("model.head=lexicon_linear", "lexicon.kind=learned"),
    "lexicon_linear_manual": ("model.head=lexicon_linear", "lexicon.kind=manual"),
    "lexicon_linear_hybrid": ("model.head=lexicon_linear", "lexicon.kind=hybrid"),
    "lexicon_linear_state": (
        "model.head=lexicon_linear",
        "model.lexicon_gate=state",
        "lexicon.kind=learned",
    ),
    "lexicon_copy": ("model.head=lexicon_copy", "lexicon.kind=learned"),
    # What a source word's vector is made of.
    **{composition: (f"model.composition={composition}",) for composition in choices.COMPOSITIONS},
    # Decoding among some words; the first, with more than there are, among all. All have the same
    # trained model.
    **{
        f"shortlist_{size or 'all'}": (
            *("model.head=pointer_generator", "lexicon.kind=learned"),
            f"decoding.shortlist_size={size or 1_000_000}",
        )
        for size in (0, 128, 256, 512, 1024)
    },
    "shortlist_256_or_all": (
        *("model.head=pointer_generator", "lexicon.kind=learned"),
        *("decoding.shortlist_size=256", "decoding.shortlist_confidence=0.4"),
    ),
    # A source without spaces: its true words, its characters, words that are found; and the last
    # with one trick less each.
    "words": ("model.encoder=rnn", "data.source_tokenization="),
    "characters": ("model.encoder=rnn",),
    "segments": (),
    # The heuristic of the warm-up throughout: nothing is drawn, so one segmentation is enough, and
    # no baseline is needed.
    "segments_imitating": (
        "segmentation.warm_up_updates=1000000",
        "segmentation.samples=1",
        "segmentation.baseline=linear",
    ),
    "segments_without_short_ways": ("segmentation.residual=false",),
    "segments_without_word_vectors": ("segmentation.word_buckets=0",),
    "segments_without_detachment": ("segmentation.detached=false",),
    "segments_without_warm_up": ("segmentation.warm_up=none",),
    "segments_without_reinforce": ("segmentation.reinforce_weight=0",),
    "segments_without_length_prior": ("segmentation.length_prior_weight=0",),
    "segments_without_normalization": ("segmentation.normalize_rewards=false",),
    "segments_without_novelty": ("segmentation.novelty_weight=0",),
    "segments_without_confidence_penalty": ("segmentation.confidence_penalty=0",),
    "segments_linear_baseline": ("segmentation.baseline=linear",),
}


class Row(TypedDict):
    """A variant in the table, as `results.json` holds it.

    Attributes:
        variant: its name.
        metrics: of each seed, by the name of the metric.
        parameters: how many numbers the network has.
        updates, seconds: of each seed's training.
        seeds: of the runs.
        versions: of the libraries.
        command: of the first run, with a folder of its own.
        p: of a bootstrap over sentences and seeds against the first variant, or None.
    """

    variant: str
    metrics: dict[str, list[MetricFacts]]
    parameters: int
    updates: list[int]
    seconds: list[float]
    seeds: list[int]
    versions: dict[str, str]
    command: str
    p: float | None


@dataclasses.dataclass(frozen=True)
class Cell:
    """A run of one variant with one seed.

    Attributes:
        facts: of the run.
        records: its outputs: source, reference and text; none of a language model.
        command: its command line, with a folder of its own.
    """

    facts: RunFacts
    records: list[dict[str, Any]]
    command: str

    @property
    def system(self) -> SystemFacts:
        """The facts of its model."""
        return self.facts["systems"][0]

    def texts(self, key: str) -> list[str]:
        """Returns the `text`, `source` or `reference` of its records."""
        return [record[key] for record in self.records]


def command(
    options: argparse.Namespace,
    output: pathlib.Path,
    overrides: Sequence[str],
    seed: int,
    *more: str,
) -> list[str]:
    """Returns the command line of one run."""
    words = ["run", options.recipe, "--output", str(output)]
    words += ["--data", options.data] if options.data else []
    for override in (*overrides, f"training.seed={seed}", "baseline.head="):
        words += ["--set", override]
    return [*words, *more]


def run(options: argparse.Namespace, name: str, seed: int) -> Cell:
    """Runs one cell unless its results are there.

    Raises:
        SystemExit: the run failed; its own message has been printed.
    """
    results = options.output / "results"
    results.mkdir(parents=True, exist_ok=True)
    facts_path = results / f"{name}-{seed}.json"
    outputs_path = results / f"{name}-{seed}.outputs.jsonl"
    overrides = (*options.set, *VARIANTS[name])
    own_folder = options.output / f"{name}-{seed}"
    shown = shlex.join(["verbatim", *command(options, own_folder, overrides, seed)])
    if not facts_path.is_file():
        temporary = results / "run.json"
        words = command(options, options.output, overrides, seed, "--json", str(temporary))
        print(f"$ {shlex.join(['verbatim', *words])}", flush=True)
        status = subprocess.run([sys.executable, "-m", "pipeline.commands.main", *words]).returncode
        # 3: trained and measured, but not blessed.
        if status not in (0, 3):
            raise SystemExit(f"The run ended with status {status}.")
        # One file; none of a language model.
        for outputs in (options.output / "outputs").glob("*.jsonl"):
            shutil.copyfile(outputs, outputs_path)
        temporary.replace(facts_path)
    facts = json.loads(facts_path.read_text(encoding="utf-8"))
    lines = outputs_path.read_text(encoding="utf-8").splitlines() if outputs_path.is_file() else []
    return Cell(facts, [json.loads(line) for line in lines], shown)


def compared_metrics(recipe: Recipe, system: SystemFacts) -> list[str]:
    """Returns the metrics of the table: those of the recipe, or of a language model."""
    named = [
        name
        for name in recipe.evaluation.metrics
        if name in system["metrics"] and name != "unseen_copies"
    ]
    return named or list(LANGUAGE_MODEL_METRICS)


def row_of(variant: str, cells: Sequence[Cell], seeds: list[int], metrics: Sequence[str]) -> Row:
    """Returns the row of a variant, without a comparison."""
    systems = [cell.system for cell in cells]
    row: Row = {
        "variant": variant,
        "metrics": {
            metric: [system["metrics"][metric] for system in systems] for metric in metrics
        },
        "parameters": systems[0]["parameters"],
        "updates": [system["updates"] for system in systems],
        "seconds": [system["seconds"] for system in systems],
        "seeds": seeds,
        "versions": cells[0].facts["versions"],
        "command": cells[0].command,
        "p": None,
    }
    # Of the words that the encoder found, compared with those of the text.
    scores = [scores for system in systems if (scores := system.get("segmentation"))]
    if len(scores) == len(systems) and all("word_f1" in one for one in scores):
        row["metrics"]["word_f1"] = [{"value": one["word_f1"]} for one in scores]
        row["metrics"]["boundary_f1"] = [{"value": one["boundary_f1"]} for one in scores]
    return row


def p_value(
    recipe: Recipe, metric: str, cells: Sequence[Cell], first: Sequence[Cell]
) -> float | None:
    """Returns the p-value of two variants' outputs, by a bootstrap over sentences and seeds.

    None where some run has other test data than the others.
    """
    references, sources = cells[0].texts("reference"), cells[0].texts("source")
    if any(
        (cell.texts("reference"), cell.texts("source")) != (references, sources)
        for cell in (*cells, *first)
    ):
        return None
    ours, theirs = (
        [ScoredTexts(cell.texts("text"), references, sources) for cell in variant]
        for variant in (cells, first)
    )
    options = ScoringOptions.of(recipe)
    return seed_test.compare_over_seeds([metric], ours, theirs, options)[metric].p_value


def measured(results: Sequence[MetricFacts]) -> str:
    """Returns a metric's cell.

    One seed has its value and 95 % bootstrap interval, several their mean and standard deviation,
    and the smallest and largest value.
    """
    values = [value for result in results if (value := result["value"]) is not None]
    if not values:
        return ""
    if len(values) > 1:
        mean, deviation = statistics.fmean(values), statistics.stdev(values)
        return f"{mean:.3g} ± {deviation:.2g} (seeds: {min(values):.3g} to {max(values):.3g})"
    low, high = results[0].get("low"), results[0].get("high")
    return f"{values[0]:.3g}" + ("" if low is None else f" [{low:.3g}, {high:.3g}]")


def table(metrics: Sequence[str], rows: Sequence[Row]) -> str:
    """Returns the Markdown table of the rows, and below it their commands."""
    head = [
        "variant",
        "seeds",
        *metrics,
        f"p, {metrics[0]}",
        "parameters",
        "updates",
        "training, s",
    ]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in rows:
        cells = [row["variant"], ", ".join(map(str, row["seeds"]))]
        cells += [
            measured(row["metrics"][metric]) if metric in row["metrics"] else ""
            for metric in metrics
        ]
        cells += ["" if row["p"] is None else f"{row['p']:.3f}", f"{row['parameters']:,}"]
        cells += [
            "–".join(str(round(n)) for n in sorted({min(numbers), max(numbers)}))
            for numbers in (row["updates"], row["seconds"])
        ]
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", *(f"- {row['variant']}: `{row['command']}`" for row in rows)]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Runs all cells and writes the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("recipe")
    parser.add_argument("--data")
    parser.add_argument("--output", required=True, type=pathlib.Path)
    parser.add_argument(
        "--variants", default="none,attention,joint_copy,pointer_generator,pointer_softmax"
    )
    parser.add_argument("--seeds", default="1")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="for every variant"
    )
    options = parser.parse_args()
    recipe = loading.load_recipe(options.recipe, options.set)
    recipe = loading.with_database_path(recipe, options.data or "")
    seeds = [int(seed) for seed in options.seeds.split(",")]
    rows: list[Row] = []
    curves: dict[str, list[CurvePoint]] = {}
    first: list[Cell] | None = None
    for name in options.variants.split(","):
        cells = [run(options, name, seed) for seed in seeds]
        metrics = compared_metrics(recipe, cells[0].system)
        row = row_of(name, cells, seeds, metrics)
        if first is None:
            first = cells
        elif cells[0].records:
            row["p"] = p_value(recipe, metrics[0], cells, first)
        rows.append(row)
        curves[name] = cells[0].system.get("curves") or []
        whole_files.write_json(options.output / "results.json", rows)
        columns = list(dict.fromkeys(metric for row in rows for metric in row["metrics"]))
        whole_files.write_text(options.output / "results.md", table(columns, rows))
        learning_curves.write(options.output / "results.svg", curves)
    print(table(columns, rows))


if __name__ == "__main__":
    main()
