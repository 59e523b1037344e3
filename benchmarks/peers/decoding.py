"""How fast we decode beside OpenNMT-py 3.5.1, beam 5, 20 forced tokens, sentences one by one and in
batches of 32.

    python -m benchmarks.peers.environments --peers opennmt_py      # once
    python -m benchmarks.peers.decoding --data PATH --output DIR [--trained DIR] [--free] [--rounds
    11] [--threads 2]

PATH is small_parallel_enja. Programs are loaded in processes of their own and take turns, round by
round; each gets the same sentences in the same batches, text in and text out. Both sides decode
with untrained weights of the same sizes (`job.py`), which changes nothing: every output has as many
tokens, which is checked. Of ours there are the signatures with XLA (`ours`) and without
(`ours_no_xla`), and both with a shortlist of 256 words (`ours_shortlist`, `ours_shortlist_no_xla`),
or of 128 (`ours_small_shortlist`).

Batches, though not single sentences, whose latency counts, can also be decoded side by side, each
by one thread: `ours_side_by_side`, `ours_shortlist_side_by_side` in one process, as `verbatim serve
--threads-per-batch 1` does and `verbatim evaluate`; peers by as many processes of one thread as
there are threads (`opennmt_py_side_by_side`, `ctranslate2_side_by_side`).

With --trained they decode with what `benchmarks.peers.training` left in its output: the same pairs,
as many updates, the same rate. With --free, too, lengths are left to both models, and the outputs'
BLEU stands beside the seconds, so that equal quality can be seen; choose `--sentences 500`, the
whole development set, for that. Forced, OpenNMT-py's own maximum of 20 takes 20 steps; ours takes a
21st, in which all hypotheses end.

`--body transformer` compares Transformers of six layers a side without copying, with CTranslate2
and Hugging Face's; `--programs` chooses, for instance OpenNMT-tf 2.32 too, whose GRU does not copy.
How quality would compare is known of OpenNMT-py alone: it alone is trained.

Writes DIR/decoding.json, decoding.md, decoding.svg, and each program's outputs and log; --record
writes the table as a result file.
"""

import argparse
import contextlib
import dataclasses
import pathlib
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from benchmarks.peers import (
    arguments,
    corpus,
    environments,
    floors,
    machine,
    picture,
    processes,
    rounds,
    scores,
)
from benchmarks.peers.decoders import DEFAULTS, LABELS, PROGRAMS
from benchmarks.peers.job import Job
from benchmarks.peers.lengths import WrongLength, check_lengths
from benchmarks.records import measuring
from benchmarks.records.record import MeasuredRow, TableRecord
from benchmarks.tables import measured as tables
from pipeline.common import whole_files

# Enough for about three seconds of a turn at either batch.
SENTENCES = {1: 32, 32: 256}


class DecoderFigure(rounds.Figure, total=False):
    """Milliseconds of a sentence by one program.

    Attributes:
        cpu_ms: milliseconds that its threads worked.
        share_of_floor: the floor divided by the median.
        peak_bytes: the most memory in any round.
    """

    cpu_ms: rounds.Spread
    share_of_floor: float
    peak_bytes: int


class _BatchFigures(TypedDict):
    batch: int
    floor_ms: float
    figures: dict[str, DecoderFigure]


class BatchFigures(_BatchFigures, total=False):
    """The figures of one batch size.

    Attributes:
        batch: sentences of a batch.
        floor_ms: milliseconds of a sentence that the machine needs at least.
        figures: by the name of the program.
        bleu: by the name of the program, where outputs are compared.
        words: of an output on average, likewise: what is shorter has less BLEU, and less work.
    """

    bleu: dict[str, float | None]
    words: dict[str, float]


class Report(TypedDict):
    """What `decoding.json` holds."""

    job: dict[str, Any]
    machine: machine.Machine
    rates: floors.Rates
    source_length: int
    against: str
    programs: dict[str, processes.Answer]
    batches: list[BatchFigures]


def start(
    name: str, job: Job, options: argparse.Namespace, made: dict[str, processes.Answer]
) -> tuple[processes.Program | processes.Copies, processes.Answer]:
    """Starts a program and loads its model; returns it and the facts of its model.

    Args:
        name: one of `PROGRAMS`.
        job: the sizes.
        options: of the command line.
        made: facts by the name of the model, which programs share; added to here.
    """
    side = PROGRAMS[name]
    threads = 1 if side.side_by_side else job.threads
    python = (
        environments.interpreter(side.environment, options.environments)
        if side.environment
        else sys.executable
    )
    program = side.start(python, job.threads, options.output / f"{name}.log")
    folder = options.output / "work" / side.model
    shared = {"job": dataclasses.replace(job, threads=threads).to_json(), "folder": str(folder)}
    if side.model not in made:
        # An earlier comparison may have left a model of other sizes.
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        trained = options.trained / "work" / side.module if options.trained else None
        if trained and side.module == "opennmt_py":
            made[side.model] = {"model": str(last_checkpoint(trained))}
        else:
            further: dict[str, Any] = {"forced": not options.free} if side.module == "ours" else {}
            further |= {"trained": str(trained / "model")} if trained else {}
            print(
                f"  {name}: makes {'a' if trained else 'an untrained'} model",
                file=sys.stderr,
                flush=True,
            )
            made[side.model] = program.ask(
                "make", data=str(options.data), **shared, **side.make, **further
            )
    facts = made[side.model]
    loaded = program.ask(
        "load", model=facts["model"], forced=not options.free, **shared, **side.load
    )
    return program, {**facts, **loaded}


def last_checkpoint(folder: pathlib.Path) -> pathlib.Path:
    """Returns OpenNMT-py's checkpoint after the most updates.

    Raises:
        processes.ProgramError: there is none.
    """
    checkpoints = sorted(
        folder.glob("model_step_*.pt"), key=lambda path: int(path.stem.rpartition("_")[2])
    )
    if not checkpoints:
        raise processes.ProgramError(
            f"{folder} has no checkpoint: run benchmarks.peers.training first."
        )
    return checkpoints[-1]


def measure_batch(
    programs: Mapping[str, processes.Asked], batch: int, job: Job, options: argparse.Namespace
) -> tuple[list[rounds.Round], dict[str, list[str]], list[str]]:
    """Measures all programs at one batch size.

    Returns:
        The rounds, the outputs by the name of the program, and the references.
    """
    pairs = corpus.read(options.data, "dev")
    count = options.sentences or SENTENCES.get(batch, 8 * batch)
    # Whole batches, because ours pads the last one.
    chosen = corpus.sentences(pairs, -(-count // batch) * batch)
    texts = [pairs[number][0] for number in chosen]
    outputs: dict[str, list[str]] = {}

    names = [name for name in programs if batch > 1 or not PROGRAMS[name].side_by_side]

    def measure(name: str) -> rounds.Facts:
        answer = programs[name].ask("decode", texts=texts, batch=batch, **PROGRAMS[name].decode)
        if not options.free:
            check_lengths(name, answer["lengths"], job.length)
        outputs[name] = answer["outputs"]
        tokens = sum(answer["lengths"])
        return {
            "ms": 1000 * answer["seconds"] / len(texts),
            "cpu_ms": 1000 * answer["cpu_seconds"] / len(texts),
            "tokens_per_second": tokens / answer["seconds"],
            "peak_bytes": answer["peak_bytes"],
        }

    measured = rounds.interleave(names, options.rounds, measure)
    return measured, outputs, [pairs[number][1] for number in chosen]


def summarize(
    batch: int, measured: Sequence[rounds.Round], floor_ms: float, against: str
) -> BatchFigures:
    """Returns the figures of one batch size, for JSON and table."""
    worked = rounds.figure(measured, "cpu_ms")
    figures: dict[str, DecoderFigure] = {
        name: {
            **figure,
            "cpu_ms": worked[name],
            "share_of_floor": floor_ms / figure["median"],
            "peak_bytes": max(taken[name]["peak_bytes"] for taken in measured),
        }
        for name, figure in rounds.figure(measured, "ms", against).items()
    }
    return {"batch": batch, "floor_ms": floor_ms, "figures": figures}


def rows(batches: Sequence[BatchFigures]) -> list[MeasuredRow]:
    """Returns the rows of the result file."""
    made = []
    for one in batches:
        for name, figure in one["figures"].items():
            made.append(
                measuring.row(
                    {"batch": one["batch"], "program": LABELS.get(name, name)},
                    {
                        "ms": measuring.spread(figure),
                        "times": measuring.spread(figure["ratio"]) if "ratio" in figure else None,
                        "floor": measuring.one(figure["share_of_floor"]),
                        "cpu_ms": measuring.spread(figure["cpu_ms"]),
                        "bleu": measuring.one(one.get("bleu", {}).get(name)),
                        "words": measuring.one(one.get("words", {}).get(name)),
                        "peak_mb": measuring.one(figure["peak_bytes"] / 1e6),
                    },
                )
            )
    return made


def bleu(outputs: Mapping[str, list[str]], references: list[str]) -> dict[str, float | None]:
    """Returns the BLEU of each program's outputs, which are all words separated by spaces."""
    return {
        name: scores.of_words(["bleu"], texts, references)["bleu"]
        for name, texts in outputs.items()
    }


def write(output: pathlib.Path, report: Report, table: TableRecord) -> None:
    """Writes JSON, table and picture."""
    text = [
        "# Decoding beside peers",
        "",
        machine.sentence(report["machine"], report["job"]["threads"]),
        "",
    ]
    text += [f"Times {report['against']}:", "", tables.plain(table), ""]
    text += ["![Milliseconds a sentence](decoding.svg)", ""]
    text += [f"- {name}: {facts['version']}" for name, facts in report["programs"].items()]
    text += ["", floors.table(report["rates"], Job(**report["job"]), report["source_length"])]
    whole_files.write_json(output / "decoding.json", report)
    whole_files.write_text(output / "decoding.md", "\n".join(text))
    groups: list[picture.Group] = [
        {
            "title": f"Batch {one['batch']}: ms a sentence, median and range of the rounds",
            "figures": one["figures"],
        }
        for one in report["batches"]
    ]
    picture.write(output / "decoding.svg", "Milliseconds a sentence", groups)
    print("\n".join(text))


def parse() -> argparse.Namespace:
    """Returns the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add(parser)
    parser.add_argument(
        "--trained", type=pathlib.Path, help="what benchmarks.peers.training had as its --output"
    )
    parser.add_argument(
        "--free",
        action="store_true",
        help="leave lengths to trained models, and compare their BLEU",
    )
    parser.add_argument("--body", default=Job.body, choices=tuple(DEFAULTS))
    parser.add_argument(
        "--programs",
        help=f"some of {', '.join(PROGRAMS)}, with commas; by default those of the body",
    )
    parser.add_argument("--batches", default="1,32")
    parser.add_argument(
        "--sentences", type=int, help="of a turn; by default 32 one by one, 256 in batches of 32"
    )
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--attention", default=Job.attention, choices=("bilinear", "additive", "dot")
    )
    options = parser.parse_args()
    if options.free and not options.trained:
        parser.error("--free needs trained models: give --trained")
    if options.trained and options.trained.resolve() == options.output.resolve():
        parser.error(
            "--output must be another folder than --trained, whose models it would replace"
        )
    names = options.programs.split(",") if options.programs else DEFAULTS[options.body]
    if unknown := [name for name in names if name not in PROGRAMS]:
        parser.error(f"no program is called {unknown[0]}; there are {', '.join(PROGRAMS)}")
    if options.trained and (
        others := [name for name in names if PROGRAMS[name].module not in ("ours", "opennmt_py")]
    ):
        parser.error(f"benchmarks.peers.training does not train {others[0]}")
    options.programs = names
    return options


def main() -> None:
    """Measures all programs at all batch sizes and writes the report."""
    options = parse()
    batches = tuple(int(batch) for batch in options.batches.split(","))
    body = {"body": options.body, "embedding": Job.hidden} if options.body == "transformer" else {}
    job = Job(threads=options.threads, attention=options.attention, batches=batches, **body)
    names, notes = environments.taking_part(
        {name: PROGRAMS[name].environment for name in options.programs},
        LABELS,
        options.environments,
    )
    against = next((name for name in names if not name.startswith("ours")), names[0])
    options.output.mkdir(parents=True, exist_ok=True)
    facts, measured_on = machine.describe(), measuring.machine(job.threads)
    rates = floors.measured_rates(job.threads, options.output / "rates.log")
    sources = [source for source, _ in corpus.read(options.data, "dev")]
    source_length = round(sum(len(source.split()) for source in sources) / len(sources))
    report: Report = {
        "job": vars(job),
        "machine": facts,
        "rates": rates,
        "source_length": source_length,
        "against": against,
        "programs": {},
        "batches": [],
    }
    with contextlib.ExitStack() as stack:
        programs: dict[str, processes.Asked] = {}
        made: dict[str, processes.Answer] = {}
        for name in names:
            program, report["programs"][name] = start(name, job, options, made)
            stack.enter_context(program)
            programs[name] = program
        for batch in batches:
            measured, outputs, references = measure_batch(programs, batch, job, options)
            products = floors.decoding_products(job, batch, source_length)
            floor_ms = 1000 * floors.seconds(products, rates) / batch
            one = summarize(batch, measured, floor_ms, against)
            if options.free:
                one["bleu"] = bleu(outputs, references)
                one["words"] = {
                    name: sum(len(text.split()) for text in texts) / len(texts)
                    for name, texts in outputs.items()
                }
            report["batches"].append(one)
            for name, texts in outputs.items():
                path = options.output / f"{name}-{batch}.txt"
                whole_files.write_text(path, "".join(f"{text}\n" for text in texts))
    table = measuring.table_of(
        rows(report["batches"]),
        options.rounds,
        measured_on,
        notes=notes,
    )
    write(options.output, report, table)
    measuring.write(options.record, table)


if __name__ == "__main__":
    try:
        main()
    except (processes.ProgramError, WrongLength) as error:
        raise SystemExit(str(error)) from None
