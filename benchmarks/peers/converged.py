"""How good OpenNMT-py becomes on the corpus of our recipe `translation_en_ja`, with its network.

    python -m benchmarks.peers.converged --data PATH --output DIR [--seeds 1,2,3] [--passes 14]

The network, the dropout, the first weights and the number of passes are those of the recipe; the
program has one thread, as runs of a campaign have one core. Its checkpoint is the one with the
lowest loss of held-out pairs, by which the strength of its length normalisation is chosen, too. The
development text decides nothing. It is scored as our own runs are. A training that has ended is not
repeated. Writes DIR/converged.json; --record writes the table as a result file.
"""

import argparse
import json
import pathlib
import statistics
from collections.abc import Sequence
from typing import Any, TypedDict

from benchmarks.peers import corpus, environments, opennmt_py, processes
from benchmarks.peers.job import Job
from benchmarks.records import measuring
from benchmarks.records.record import MeasuredRow
from benchmarks.tables import measured as tables
from pipeline.common import whole_files
from pipeline.metrics import scoring
from pipeline.metrics.scored_texts import ScoredTexts
from pipeline.metrics.scoring_options import ScoringOptions

JOB = Job(embedding=192, hidden=256, attention="additive", longest=40, threads=1)
#: Strengths of the length normalisation.
ALPHAS = (0.0, 0.5, 1.0, 1.5)
#: Sentences of a batch of the search, which has no effect on its outputs.
BATCH = 32
METRICS = ("bleu", "chrf")


class Trained(TypedDict):
    """A training and the quality of its best checkpoint.

    Attributes:
        seed: that of the training.
        minutes: of the training.
        best_pass: the pass behind which the checkpoint was written.
        alpha: how strongly scores are normalised by length.
        words: of an output on average.
        bleu, chrf: on the development text.
        version: those of the program and its framework.
    """

    seed: int
    minutes: float
    best_pass: int
    alpha: float
    words: float
    bleu: float
    chrf: float
    version: str


def score(outputs: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    """Returns the metrics of texts that are words separated by spaces."""
    options = ScoringOptions(
        language=corpus.LANGUAGES[1], tokenization="whitespace", bootstrap_samples=0
    )
    results = scoring.score(METRICS, ScoredTexts(outputs, references), options)
    return {name: result.value or 0.0 for name, result in results.items()}


def outputs_of(
    program: processes.Asked, model: str, folder: pathlib.Path, alpha: float, texts: list[str]
) -> list[str]:
    """Returns a checkpoint's translations."""
    program.ask(
        "load", model=model, job=JOB.to_json(), folder=str(folder), forced=False, alpha=alpha
    )
    order = sorted(range(len(texts)), key=lambda number: len(texts[number].split()))
    answer = program.ask("decode", texts=[texts[number] for number in order], batch=BATCH)
    outputs = dict(zip(order, answer["outputs"], strict=True))
    return [outputs[number] for number in range(len(texts))]


def train_and_score(seed: int, options: argparse.Namespace) -> Trained:
    """Trains with a seed, chooses the normalisation, and scores the development text."""
    folder = options.output / f"seed-{seed}"
    folder.mkdir(parents=True, exist_ok=True)
    python = environments.interpreter("opennmt_py", options.environments)
    log = options.output / f"seed-{seed}.log"
    with processes.Program(python, "opennmt_py", JOB.threads, log) as program:
        made = program.ask(
            "converge",
            job=JOB.to_json(),
            data=str(options.data),
            folder=str(folder),
            passes=options.passes,
            seed=seed,
            copying=options.copying,
        )
        held, _ = corpus.held_out(corpus.read(options.data, "train"), opennmt_py.HELD_OUT)
        sources, references = map(list, zip(*held))
        of_alpha = {
            alpha: score(outputs_of(program, made["model"], folder, alpha, sources), references)
            for alpha in ALPHAS
        }
        alpha = max(ALPHAS, key=lambda alpha: of_alpha[alpha]["bleu"])
        sources, references = map(list, zip(*corpus.read(options.data, "dev")))
        outputs = outputs_of(program, made["model"], folder, alpha, sources)
    whole_files.write_text(folder / "dev.txt", "".join(f"{text}\n" for text in outputs))
    scores = score(outputs, references)
    return {
        "seed": seed,
        "minutes": made["seconds"] / 60,
        "best_pass": made["best_pass"],
        "alpha": alpha,
        "words": sum(len(text.split()) for text in outputs) / len(outputs),
        "bleu": scores["bleu"],
        "chrf": scores["chrf"],
        "version": made["version"],
    }


def row(of_seeds: Sequence[Trained], options: argparse.Namespace) -> MeasuredRow:
    """Returns the row of all seeds: medians, with the smallest and the largest value."""
    labels = {
        "program": "OpenNMT-py 3.5.1, "
        + ("copying" if options.copying else "label smoothing, no copying"),
        "seeds": len(of_seeds),
        "passes": options.passes,
    }

    def of(name: str) -> Any:
        values = [float(trained[name]) for trained in of_seeds]  # type: ignore[literal-required]
        return measuring.spread(
            {"median": statistics.median(values), "low": min(values), "high": max(values)}
        )

    names = ("bleu", "chrf", "words", "best_pass", "alpha", "minutes")
    return measuring.row(labels, {name: of(name) for name in names})


def main() -> None:
    """Trains with each seed and writes the report."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--data", required=True, type=pathlib.Path, help="folder of small_parallel_enja"
    )
    parser.add_argument("--output", required=True, type=pathlib.Path)
    parser.add_argument("--environments", type=pathlib.Path, default=environments.FOLDER)
    parser.add_argument("--seeds", default="1", help="their numbers, with commas")
    parser.add_argument("--passes", type=int, default=14)
    parser.add_argument("--copying", action="store_true", help="its copy attention, unsmoothed")
    measuring.add_argument(parser)
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    measured_on = measuring.machine(JOB.threads)
    finished = options.output / "converged.json"
    done: dict[str, Trained] = json.loads(finished.read_text()) if finished.exists() else {}
    for seed in map(int, options.seeds.split(",")):
        if str(seed) not in done:
            done[str(seed)] = train_and_score(seed, options)
            whole_files.write_json(finished, done)
    table = measuring.table_of([row(list(done.values()), options)], 1, measured_on)
    print(tables.plain(table))
    measuring.write(options.record, table)


if __name__ == "__main__":
    try:
        main()
    except processes.ProgramError as error:
        raise SystemExit(str(error)) from None
