"""What each head and each rule of the search costs in decoding.

They are compared with the pointer-generator without rules:

    python -m benchmarks.mechanisms --data PATH --output DIR [--rounds 5] [--only NAME,NAME]

The network is that of `benchmarks.peers`, untrained, of 8,000 words, beam 5, 20 forced tokens,
exported and called through its own signature (XLA), in this process. All models take turns. Prints
a Markdown table of milliseconds a sentence; --record writes it as a result file.
"""

import argparse
import pathlib
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from benchmarks.peers import corpus, ours_model, rounds
from benchmarks.peers.job import Job
from benchmarks.records import measuring
from benchmarks.records.record import MeasuredRow
from benchmarks.tables import measured as tables
from pipeline.recipes.choices import HEADS, LEXICON_HEADS

if TYPE_CHECKING:
    from pipeline.export.served_model import ServedModel

_LEXICON = {"lexicon.kind": "learned"}
BASE = "pointer_generator"
#: What differs from the base, by its name in the table.
VARIANTS: dict[str, dict[str, object]] = {
    **{head: {"model.head": head, **(_LEXICON if head in LEXICON_HEADS else {})} for head in HEADS},
    "coverage": {"model.coverage": "true", "decoding.coverage_penalty": 0.2},
    "additive attention": {"model.attention": "additive"},
    "keep_protected": {"decoding.keep_protected": "true"},
    "no_repeat_ngram 3": {"decoding.no_repeat_ngram": 3},
    "replace_unknown": {"decoding.replace_unknown": "copy"},
    "n_best 5": {"decoding.n_best": 5},
    "beam 1": {"decoding.beam_size": 1},
}


def make(
    job: Job,
    overrides: Mapping[str, object],
    pairs: Sequence[corpus.Pair],
    folder: pathlib.Path,
) -> "ServedModel":
    """Exports a model, and loads it."""
    from pipeline.export.served_model import ServedModel

    recipe = ours_model.recipe(job, overrides=overrides)
    graph = ours_model.write_graph(recipe, pairs, folder / "graph")
    ours_model.export(recipe, graph, folder / "model" / "1")
    return ServedModel(folder / "model")


def milliseconds(model: "ServedModel", texts: list[str], batch: int) -> float:
    """Returns the time of one sentence, of texts answered in batches."""
    started = time.perf_counter()
    for start in range(0, len(texts), batch):
        model.predict(texts[start : start + batch])
    return (time.perf_counter() - started) / len(texts) * 1e3


def measure(
    models: Mapping[str, "ServedModel"], texts: list[str], batch: int, count: int
) -> list[MeasuredRow]:
    """Returns the table's rows of one batch size."""
    measured = rounds.interleave(
        models, count, lambda name: {"ms": milliseconds(models[name], texts, batch)}
    )
    figures = rounds.figure(measured, "ms", BASE if BASE in models else None, lower_is_better=False)
    return [
        measuring.row(
            {"batch": batch, "what": name},
            {
                "ms": measuring.spread(figure),
                "times": measuring.spread(figure["ratio"]) if "ratio" in figure else None,
            },
        )
        for name, figure in figures.items()
    ]


def main() -> None:
    """Measures in turn and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--data", required=True, type=pathlib.Path, help="folder of small_parallel_enja"
    )
    parser.add_argument("--output", required=True, type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--only", default=",".join(VARIANTS), help="names of the table, separated by commas"
    )
    measuring.add_argument(parser)
    options = parser.parse_args()
    names = options.only.split(",")
    if unknown := set(names) - set(VARIANTS):
        parser.error(f"--only {', '.join(sorted(unknown))}: choose of {', '.join(VARIANTS)}")
    machine, job = measuring.machine(), Job()
    pairs, dev = (corpus.read(options.data, part) for part in ("train", "dev"))
    texts = [dev[number][0] for number in corpus.sentences(dev, max(job.batches))]
    models = {
        name: make(job, VARIANTS[name], pairs, options.output / name.replace(" ", "_"))
        for name in names
    }
    rows = [
        row
        for batch in job.batches
        for row in measure(models, texts if batch > 1 else texts[::4], batch, options.rounds)
    ]
    table = measuring.table_of(rows, options.rounds, machine)
    measuring.write(options.record, table)
    print(tables.plain(table))


if __name__ == "__main__":
    main()
