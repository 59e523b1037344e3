"""How fast we decode and train on an accelerator, by JAX, beside PyTorch and the device's limits.

    python -m benchmarks.accelerator.measure --output DIR
        [--minutes 9] [--rounds 5] [--peer PYTHON] [--small]

Needs JAX and Keras in this environment, and for the peer PyTorch and Hugging Face's Transformers in
it or in that of `--peer`; no TensorFlow, no data. Networks are untrained and read random words,
which changes no speed: outputs have a forced length, which is checked.

Decoding, beam 5, 20 tokens, is of batches of 1, 32 and 256. Programs stay loaded and take turns:

- our GRU with copying and our Transformer of six layers a side, compiled by XLA, in float32 and in
  bfloat16;
- the same code without compilation (`eager`: a loop of Python, one operation after the other);
- Hugging Face's Transformer of the same sizes.

Training is of language models of 2 x 650, with a softmax and with a pointer sentinel, and of the
Transformer.

The program needs no attention: a part that fails is reported, and the others run. A part for which
`--minutes` are too few is left out, and the report names it. `--small` takes tiny sizes, to try the
program itself on a CPU. Writes DIR/accelerator.json and accelerator.md after each part; --record
writes a result file at the end.
"""

import argparse
import contextlib
import dataclasses
import functools
import pathlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from benchmarks.accelerator.report import DecodingFigure, Report, as_markdown, rows
from benchmarks.accelerator.sizes import SMALL, Sizes
from benchmarks.peers import floors, machine, processes, rounds
from benchmarks.peers.job import Job
from benchmarks.peers.lengths import check_lengths
from benchmarks.records import measuring

SOURCE_LENGTH = 16
PACKAGE = __package__


class Decoder(NamedTuple):
    """A program that decodes, the type it computes in, by its own name, and how (ours alone)."""

    program: str
    dtype: str
    how: str | None = None


_OURS = {
    "ours": Decoder("ours", "float32", "compiled"),
    "ours, bfloat16": Decoder("ours", "mixed_bfloat16", "compiled"),
    "ours, eager": Decoder("ours", "float32", "eager"),
}
#: The programs that decode each body, by name.
DECODERS: dict[str, dict[str, Decoder]] = {
    "rnn": _OURS,
    "transformer": {
        **_OURS,
        "hugging_face": Decoder("hugging_face", "float32"),
        "hugging_face, bfloat16": Decoder("hugging_face", "bfloat16"),
    },
}


class Training(NamedTuple):
    """A network to train: its name in the report, the task of the program, and its arguments."""

    network: str
    task: str
    arguments: Mapping[str, Any]


def measure_device(report: Report, program: processes.Asked, sizes: Sizes) -> None:
    """Notes what the device is, and its best rates."""
    report.found["device"] = program.ask("describe")
    report.found["programs"]["ours"] = report.found["device"]["version"]
    report.found["rates"] = program.ask("rates", size=sizes.matrix, megabytes=sizes.megabytes)


def load(report: Report, programs: Mapping[str, processes.Asked], job: Job) -> list[str]:
    """Loads the programs that decode a job's body; returns the names that can take part."""
    able: list[str] = []

    def part(name: str, decoder: Decoder) -> None:
        facts = programs[decoder.program].ask(
            "load", name=f"{job.body} {decoder.dtype}", job=job.to_json(), dtype=decoder.dtype
        )
        report.found["programs"].setdefault(decoder.program, facts.get("version"))
        able.append(name)

    for name, decoder in DECODERS[job.body].items():
        report.attempt(f"{job.body}: {name} is loaded", functools.partial(part, name, decoder))
    return able


def measure_decoding(
    report: Report,
    programs: Mapping[str, processes.Asked],
    job: Job,
    names: Sequence[str],
    batch: int,
    count: int,
) -> None:
    """Measures programs in turn, in `count` rounds at one batch size."""

    def measure(name: str) -> rounds.Facts:
        program, dtype, how = DECODERS[job.body][name]
        options = {"how": how} if how else {}
        # Several calls where one is short.
        calls = 1 if how == "eager" else 5
        answer = programs[program].ask(
            "decode",
            name=f"{job.body} {dtype}",
            batch=batch,
            source_length=SOURCE_LENGTH,
            calls=calls,
            **options,
        )
        check_lengths(name, answer["lengths"], job.length)
        return {"ms": 1e3 * answer["seconds"]}

    measured = rounds.interleave(names, count, measure)
    figures: dict[str, DecodingFigure] = {
        name: {"ms": figure} for name, figure in rounds.figure(measured, "ms").items()
    }
    if "ours, eager" in names:
        for name, compared in rounds.figure(measured, "ms", "ours, eager").items():
            figures[name]["eager"] = compared["ratio"]
    if "hugging_face" in names:
        for name, compared in rounds.figure(measured, "ms", "hugging_face").items():
            figures[name]["hugging_face"] = compared["ratio"]
    needed = floors.needs(floors.decoding_products(job, batch, SOURCE_LENGTH))["bytes"]
    for name, figure in figures.items():
        seconds = figure["ms"]["median"] / 1e3
        figure["tokens"] = batch * job.length / seconds
        if report.found["rates"]:
            halved = 2 if "bfloat16" in name else 1
            figure["share"] = needed / halved / seconds / report.found["rates"]["bytes"]
    report.found["decoding"].append({"body": job.body, "batch": batch, "figures": figures})


def trainings(sizes: Sizes) -> Iterator[Training]:
    """Yields the networks to train."""
    often = {"updates": sizes.updates, "epochs": sizes.epochs}
    for head in ("softmax", "pointer_sentinel"):
        arguments = {"head": head, "sizes": dict(sizes.language_model), "rows": sizes.rows, **often}
        yield Training(f"language model, {head}", "train_language_model", arguments)
    pairs = {"batch": sizes.training_batch, "length": sizes.training_length, **often}
    for job in sizes.jobs:
        yield Training(job.body, "train_pairs", {"job": job.to_json(), **pairs})


def measure_training(
    report: Report,
    program: processes.Asked,
    network: str,
    dtype: str,
    task: str,
    **arguments: Any,
) -> None:
    """Trains a network; notes the rate, and the share of the device's rate of matrix products."""
    facts = program.ask(task, dtype=dtype, **arguments) | {"network": network, "dtype": dtype}
    if report.found["rates"]:
        facts["share"] = (
            facts["operations"]
            / report.found["rates"]["bfloat16" if "bfloat16" in dtype else "float32"]
        )
    report.found["training"].append(facts)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures everything that there is time for, and writes the report."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--output", required=True, type=pathlib.Path)
    parser.add_argument("--minutes", type=float, default=9)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--small", action="store_true", help="tiny sizes, to try the program itself"
    )
    parser.add_argument(
        "--peer", default=sys.executable, help="the Python that has PyTorch; by default this one"
    )
    measuring.add_argument(parser)
    options = parser.parse_args(arguments)
    measured_on = measuring.machine()
    sizes = SMALL if options.small else Sizes()
    options.output.mkdir(parents=True, exist_ok=True)
    facts = machine.describe()
    report = Report(options.output, 60 * options.minutes, facts)
    variables: dict[str, str | None] = {
        "KERAS_BACKEND": "jax",
        # Two programs share the device: neither may allocate its memory in advance.
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        "CUDA_VISIBLE_DEVICES": None,
    }
    with contextlib.ExitStack() as stack:
        programs: dict[str, processes.Asked] = {}
        for name, python in {"ours": sys.executable, "hugging_face": options.peer}.items():
            log = options.output / f"{name}.log"
            programs[name] = stack.enter_context(
                processes.Program(
                    python, name, facts["cores"], log, package=PACKAGE, variables=variables
                )
            )
        report.attempt("the device", lambda: measure_device(report, programs["ours"], sizes))
        for dtype in ("float32", "mixed_bfloat16"):
            for network, task, own in trainings(sizes):
                part = functools.partial(
                    measure_training, report, programs["ours"], network, dtype, task, **own
                )
                report.attempt(f"training: {network}, {dtype}", part)
        for job in sizes.jobs:
            able = load(report, programs, job)
            for batch in job.batches:
                names = [
                    name for name in able if batch in sizes.eager_batches or "eager" not in name
                ]
                part = functools.partial(
                    measure_decoding, report, programs, job, names, batch, options.rounds
                )
                report.attempt(f"decoding: {job.body}, batch {batch}", part)
    print(as_markdown(report.found))
    if report.found["device"]:
        kind = report.found["device"]["kind"]
        measured_on = dataclasses.replace(measured_on, accelerator=kind)
    table = measuring.table_of(
        rows(report.found), options.rounds, measured_on, packages=("jax", "keras", "transformers")
    )
    measuring.write(options.record, table)


if __name__ == "__main__":
    main()
