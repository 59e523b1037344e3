"""How good OpenNMT-py becomes on the corpus of our recipe `translation_en_ja`, with its network.

    python -m benchmarks.peers.converged --data PATH --output DIR [--seeds 1,2,3] [--passes 14]

The network, the dropout and the number of passes are those of the recipe. The program has one
thread, as runs of a campaign have one core. Of its checkpoints the one with the lowest loss of the
held-out pairs counts. The strength of the length normalisation is the one with the highest BLEU of
these pairs. The development text decides nothing; it is scored as our own runs are. A training that
has ended is not repeated. --record writes the table as a result file.
"""

import argparse
import functools
import json
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict

from benchmarks.peers import arguments, corpus, environments, opennmt_py, processes, rounds, scores
from benchmarks.peers.job import Job
from benchmarks.records import measuring
from benchmarks.records.record import MeasuredRow, Spread
from benchmarks.tables import measured as tables
from pipeline.common import whole_files

JOB = Job(embedding=192, hidden=256, attention="additive", beam=4, longest=40, threads=1)
#: Strengths of the length normalisation.
ALPHAS = (0.0, 0.5, 1.0, 1.5)
#: Sentences of a batch of the search, which has no effect on its outputs.
BATCH = 32
METRICS = ("bleu", "chrf")
#: Translates texts with a strength of the length normalisation.
Translate = Callable[[float, Sequence[str]], list[str]]


class Quality(TypedDict):
    """The quality of a checkpoint on the development text.

    Attributes:
        alpha: how strongly scores are normalised by length.
        words: of an output on average.
        bleu, chrf: the metrics.
    """

    alpha: float
    words: float
    bleu: float
    chrf: float


def score(outputs: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    """Returns the metrics of texts that are words separated by spaces."""
    measured = scores.of_words(METRICS, outputs, references)
    return {name: value or 0.0 for name, value in measured.items()}


def translations(
    program: processes.Asked, model: str, folder: pathlib.Path, alpha: float, texts: Sequence[str]
) -> list[str]:
    """Returns a checkpoint's translations, in the order of the texts."""
    program.ask(
        "load", model=model, job=JOB.to_json(), folder=str(folder), forced=False, alpha=alpha
    )
    order = corpus.sentences([(text, "") for text in texts], len(texts))
    answer = program.ask("decode", texts=[texts[number] for number in order], batch=BATCH)
    outputs = dict(zip(order, answer["outputs"], strict=True))
    return [outputs[number] for number in range(len(texts))]


def scores_of(
    translate: Translate, held: Sequence[corpus.Pair], development: Sequence[corpus.Pair]
) -> Quality:
    """Chooses the length normalisation by held-out pairs, and scores the development text."""

    def measure(alpha: float, pairs: Sequence[corpus.Pair]) -> tuple[list[str], dict[str, float]]:
        sources, references = map(list, zip(*pairs))
        outputs = translate(alpha, sources)
        return outputs, score(outputs, references)

    alpha = max(ALPHAS, key=lambda alpha: measure(alpha, held)[1]["bleu"])
    outputs, measured = measure(alpha, development)
    words = sum(len(text.split()) for text in outputs) / len(outputs)
    return {"alpha": alpha, "words": words, "bleu": measured["bleu"], "chrf": measured["chrf"]}


def trained(
    program: processes.Asked, folder: pathlib.Path, settings: Mapping[str, Any]
) -> processes.Answer:
    """Returns what the program answered to a training with these settings, perhaps long ago."""
    done = folder.with_name(f"{folder.name}.json")
    if done.exists():
        answer: processes.Answer = json.loads(done.read_text(encoding="utf-8"))
        if answer["settings"] == settings:
            return answer
    answer = program.ask("converge", job=JOB.to_json(), folder=str(folder), **settings)
    answer["settings"] = dict(settings)
    whole_files.write_json(done, answer)
    return answer


def row(
    trainings: Sequence[tuple[processes.Answer, Quality]], copying: bool, passes: int
) -> MeasuredRow:
    """Returns the row of all seeds: medians, with the smallest and the largest value."""

    def spread(values: Sequence[float]) -> Spread:
        return measuring.spread(rounds.spread(values))

    program = "copying" if copying else "label smoothing, no copying"
    return measuring.row(
        {"program": f"OpenNMT-py 3.5.1, {program}", "seeds": len(trainings), "passes": passes},
        {
            "bleu": spread([quality["bleu"] for _, quality in trainings]),
            "chrf": spread([quality["chrf"] for _, quality in trainings]),
            "words": spread([quality["words"] for _, quality in trainings]),
            "alpha": spread([quality["alpha"] for _, quality in trainings]),
            "best_pass": spread([float(answer["best_pass"]) for answer, _ in trainings]),
            "minutes": spread([answer["seconds"] / 60 for answer, _ in trainings]),
        },
    )


def main() -> None:
    """Trains with each seed and writes the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add(parser)
    parser.add_argument("--seeds", default="1", help="their numbers, with commas")
    parser.add_argument("--passes", type=int, default=14)
    parser.add_argument("--copying", action="store_true", help="its copy attention, unsmoothed")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    measured_on = measuring.machine(JOB.threads)
    python = environments.interpreter("opennmt_py", options.environments)
    held, _ = corpus.held_out(corpus.read(options.data, "train"), opennmt_py.HELD_OUT)
    development = corpus.read(options.data, "dev")
    trainings: list[tuple[processes.Answer, Quality]] = []
    for seed in map(int, options.seeds.split(",")):
        folder = options.output / f"seed-{seed}"
        settings = {
            "data": str(options.data),
            "passes": options.passes,
            "seed": seed,
            "copying": options.copying,
        }
        log = options.output / f"seed-{seed}.log"
        with processes.Program(python, "opennmt_py", JOB.threads, log) as program:
            answer = trained(program, folder, settings)
            translate = functools.partial(translations, program, answer["model"], folder)
            trainings.append((answer, scores_of(translate, held, development)))
    notes = [f"{trainings[0][0]['version']}."]
    made = row(trainings, options.copying, options.passes)
    table = measuring.table_of([made], len(trainings), measured_on, packages=(), notes=notes)
    print(tables.plain(table))
    measuring.write(options.record, table)


if __name__ == "__main__":
    try:
        main()
    except processes.ProgramError as error:
        raise SystemExit(str(error)) from None
