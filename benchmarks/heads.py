"""Runs one recipe with several copy mechanisms and seeds, and writes the table that compares them.

    python -m benchmarks.heads geo880 --data PATH --output DIR --variants none,attention,joint_copy
    --seeds 1,2,3

Every cell is a run of `verbatim run`; a run that is already in DIR is not repeated. All variants
share DIR, so what they have in common (ingestion, vocabularies, features) is made once. The table
goes to standard output and to DIR/results.md, its facts to DIR/results.json, and the learning
curves of the first seed to DIR/results.svg. The p-values are those of a paired bootstrap of the
first metric against the first variant, both with the first seed.
"""

import argparse
import json
import pathlib
import shlex
import shutil
import statistics
import subprocess
import sys

from benchmarks import learning_curves
from pipeline.metrics import scoring
from pipeline.metrics.scored_texts import ScoredTexts
from pipeline.metrics.scoring_options import ScoringOptions
from pipeline.recipes import choices, loading

#: What distinguishes each variant, as `--set` takes it.
VARIANTS = {
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
    # Decoding among so many words; the first, with more than there are, among all. All are the same
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
    # A source without spaces: words that are given, its characters, words that are found; and what
    # finds them, a trick less each.
    "words": ("model.encoder=rnn", "data.source_tokenization="),
    "characters": ("model.encoder=rnn",),
    "segments": (),
    # The heuristic of the warm-up throughout: nothing is drawn, and so one segmentation and no
    # baseline are enough.
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


def command(recipe, data, output, overrides, seed):
    """Returns the command line of one run, a list of strings."""
    words = ["verbatim", "run", recipe, "--output", str(output)]
    words += ["--data", str(data)] if data else []
    for override in (*overrides, f"training.seed={seed}", "baseline.head="):
        words += ["--set", override]
    return words


def run(recipe, data, output, name, overrides, seed):
    """Runs one cell unless its results are there; returns its facts and its outputs.

    Raises:
        SystemExit: the run failed; its own message has been printed.
    """
    results = output / "results"
    results.mkdir(parents=True, exist_ok=True)
    facts_path = results / f"{name}-{seed}.json"
    outputs_path = results / f"{name}-{seed}.outputs.jsonl"
    words = command(recipe, data, output, overrides, seed)
    if not facts_path.is_file():
        print(f"$ {shlex.join(words)}", flush=True)
        temporary = results / "run.json"
        arguments = [
            sys.executable,
            "-m",
            "pipeline.commands.main",
            *words[1:],
            "--json",
            str(temporary),
        ]
        status = subprocess.run(arguments).returncode
        if status not in (0, 3):  # 3: trained and measured, but not blessed
            raise SystemExit(f"The run ended with status {status}.")
        for outputs in (output / "outputs").glob("*.jsonl"):  # one; none of a language model
            shutil.copyfile(outputs, outputs_path)
        temporary.replace(facts_path)
    facts = json.loads(facts_path.read_text(encoding="utf-8"))
    lines = outputs_path.read_text(encoding="utf-8").splitlines() if outputs_path.is_file() else []
    records = [json.loads(line) for line in lines]
    return facts, records, shlex.join(words)


def measured(results):
    """Returns a metric's cell:
    of one seed its value and 95 % bootstrap interval, of several their mean, smallest and largest.
    """
    values = [result["value"] for result in results]
    if len(values) > 1:
        return f"{statistics.fmean(values):.3g} (seeds: {min(values):.3g} to {max(values):.3g})"
    low, high = results[0].get("low"), results[0].get("high")
    return f"{values[0]:.3g}" + ("" if low is None else f" [{low:.3g}, {high:.3g}]")


def table(metrics, rows):
    """Returns the Markdown table of the rows, which compares each with the first, and below it
    their commands.
    """
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
            "–".join(str(round(n)) for n in sorted({min(row[key]), max(row[key])}))
            for key in ("updates", "seconds")
        ]
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", *(f"- {row['variant']}: `{row['command']}`" for row in rows)]
    return "\n".join(lines) + "\n"


def main():
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
    metrics = [name for name in recipe.evaluation.metrics if name != "unseen_copies"]
    if recipe.task == "language_model":
        metrics = ["validation_perplexity", "perplexity"]
    seeds = [int(seed) for seed in options.seeds.split(",")]
    columns, rows, curves, first = list(metrics), [], {}, None
    for name in options.variants.split(","):
        overrides = (*options.set, *VARIANTS[name])
        cells = [
            run(options.recipe, options.data, options.output, name, overrides, seed)
            for seed in seeds
        ]
        systems = [facts["systems"][0] for facts, _, _ in cells]
        texts = [record["text"] for record in cells[0][1]]
        row = {
            "variant": name,
            "metrics": {
                metric: [system["metrics"][metric] for system in systems] for metric in metrics
            },
            "parameters": systems[0]["parameters"],
            "updates": [system["updates"] for system in systems],
            "seconds": [system["seconds"] for system in systems],
            "seeds": seeds,
            "versions": cells[0][0]["versions"],
            "command": cells[0][2],
            "p": None,
        }
        for measure in (
            "word_f1",
            "boundary_f1",
        ):  # of the words that the encoder found, against those of the text
            found = [(system.get("segmentation") or {}).get(measure) for system in systems]
            if None not in found:
                row["metrics"][measure] = [{"value": value} for value in found]
                columns += [measure] if measure not in columns else []
        if first is None:
            first = texts
        elif texts:
            references = [record["reference"] for record in cells[0][1]]
            sources = [record["source"] for record in cells[0][1]]
            compared = scoring.paired_bootstrap(
                metrics[:1],
                ScoredTexts(texts, references, sources),
                ScoredTexts(first, references, sources),
                ScoringOptions.of(recipe),
            )
            row["p"] = compared[metrics[0]].p_value
        rows.append(row)
        (options.output / "results.json").write_text(
            json.dumps(rows, indent=1) + "\n", encoding="utf-8"
        )
        (options.output / "results.md").write_text(table(columns, rows), encoding="utf-8")
        curves[name] = systems[0].get("curves") or []
        learning_curves.write(options.output / "results.svg", curves)
    print(table(columns, rows))


if __name__ == "__main__":
    main()
