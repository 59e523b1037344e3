"""How fast we decode and train on an accelerator, by JAX, beside PyTorch and beside what the device
allows.

    python -m benchmarks.accelerator.measure --output DIR [--minutes 9] [--rounds 5] [--peer PYTHON]
    [--small]

Needs JAX and Keras in this environment, and for the peer PyTorch and Hugging Face's Transformers in
it or in that of `--peer`; no TensorFlow, no data. Networks are untrained and read random words,
which changes no speed: outputs have a forced length, which is checked.

Decoding, beam 5, 20 tokens, of batches of 1, 32 and 256: our GRU with copying and our Transformer
of six layers a side, compiled by XLA, in float32 and in bfloat16; the same code without compilation
(`eager`: a loop of Python, one operation after the other); and Hugging Face's Transformer of the
same sizes. Programs stay loaded and take turns. Training: language models of 2 x 650, with a
softmax and with a pointer sentinel, and the Transformer.

It needs nobody: what fails is reported and the rest goes on; what does not fit into `--minutes` is
left out, and the report says what. `--small` takes tiny sizes, to try the program itself on a CPU.
Writes DIR/accelerator.json and accelerator.md, anew after each part.
"""

import argparse
import contextlib
import dataclasses
import functools
import json
import pathlib
import sys
import time

from benchmarks.peers import floors, machine, processes, rounds
from benchmarks.peers.decoding import WrongLength, check_lengths
from benchmarks.peers.job import Job

SOURCE_LENGTH = 16
PACKAGE = __package__


@dataclasses.dataclass(frozen=True)
class Sizes:
    """What is measured, in its full size."""

    matrix: int = 8192
    megabytes: int = 4000
    jobs: tuple = (
        Job(batches=(1, 32, 256)),
        Job(body="transformer", embedding=Job.hidden, batches=(1, 32, 256)),
    )
    # Batches that run without compilation, too: thousands of operations a token take their time.
    eager_batches: tuple = (1, 32)
    language_model: dict = dataclasses.field(
        # The paper's medium model, on WikiText-2's vocabulary.
        default_factory=lambda: dict(
            vocabulary_size=33286, window=100, embedding_size=650, hidden_size=650
        )
    )
    rows: int = 32
    updates: int = 100
    training_batch: int = 256
    training_length: int = 32
    epochs: int = 3


SMALL = Sizes(
    matrix=64,
    megabytes=1,
    jobs=(
        Job(vocabulary=50, embedding=16, hidden=16, beam=2, length=3, batches=(2,)),
        Job(
            vocabulary=50, embedding=16, hidden=16, body="transformer", layers=1, heads=2, feed_forward=32, beam=2, length=3,
            batches=(2,),
        ),
    ),
    eager_batches=(2,),
    language_model=dict(vocabulary_size=50, window=5, embedding_size=8, hidden_size=8),
    rows=2,
    updates=2,
    training_batch=2,
    training_length=4,
    epochs=2,
)  # fmt: skip

#: Who decodes each body: name to (program, dtype, how). The peer names its types as PyTorch does.
DECODERS = {
    "rnn": {
        "ours": ("ours", "float32", "compiled"),
        "ours, bfloat16": ("ours", "mixed_bfloat16", "compiled"),
        "ours, eager": ("ours", "float32", "eager"),
    },
    "transformer": {
        "ours": ("ours", "float32", "compiled"),
        "ours, bfloat16": ("ours", "mixed_bfloat16", "compiled"),
        "ours, eager": ("ours", "float32", "eager"),
        "hugging_face": ("hugging_face", "float32", None),
        "hugging_face, bfloat16": ("hugging_face", "bfloat16", None),
    },
}


class Report:
    """What was found so far, written after each part; what was left out, and why."""

    def __init__(self, output, seconds, facts):
        self.output = output
        self.ends = time.monotonic() + seconds
        self.found = {
            "machine": facts,
            "device": {},
            "rates": {},
            "programs": {},
            "decoding": [],
            "training": [],
        }
        self.found["left_out"] = []

    def attempt(self, label, part):
        """Does a part, unless the time is over; a failure is noted, and nothing else ends by it."""
        print(f"  {label}", file=sys.stderr, flush=True)
        if time.monotonic() > self.ends:
            self.found["left_out"].append(f"{label}: the time was over")
        else:
            try:
                part()
            except (processes.ProgramError, WrongLength) as error:
                self.found["left_out"].append(f"{label}: {error}")
        self.write()

    def write(self):
        text = json.dumps(self.found, indent=1)
        (self.output / "accelerator.json").write_text(text + "\n", encoding="utf-8")
        (self.output / "accelerator.md").write_text(as_markdown(self.found), encoding="utf-8")


def as_markdown(found):
    """Returns the tables of what was found."""
    device = found["device"]
    lines = [
        "# On an accelerator",
        "",
        machine.sentence(found["machine"], found["machine"]["cores"]),
    ]
    if device:
        lines += [f"Device: {device['kind']}; {device['version']}."]
    if found["rates"]:
        rates = found["rates"]
        products = ", ".join(
            f"{rates[dtype] / 1e12:,.1f} T operations/s in {dtype}"
            for dtype in ("float32", "bfloat16")
        )
        lines += [f"Measured: matrix products {products}; memory {rates['bytes'] / 1e9:,.0f} GB/s."]
    head = [
        "body",
        "batch",
        "program",
        "ms a call",
        "tokens/s",
        "times eager",
        "times hugging_face",
        "share of memory's rate",
    ]
    lines += ["", "## Decoding", "", "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for one in found["decoding"]:
        for name, figure in one["figures"].items():
            cells = [
                one["body"],
                str(one["batch"]),
                name,
                rounds.with_spread(figure["ms"], 1),
                f"{figure['tokens']:,.0f}",
            ]
            cells += [
                rounds.with_spread(figure[key], 1) if key in figure else ""
                for key in ("eager", "hugging_face")
            ]
            cells += [f"{figure['share']:.1%}" if "share" in figure else ""]
            lines.append("| " + " | ".join(cells) + " |")
    head = [
        "network",
        "dtype",
        "tokens/s",
        "parameters",
        "T operations/s",
        "share of the product's rate",
    ]
    lines += ["", "## Training", "", "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for one in found["training"]:
        share = f"{one['share']:.1%}" if "share" in one else ""
        cells = [one["network"], one["dtype"], f"{one['rate']:,.0f}", f"{one['parameters']:,}"]
        lines.append("| " + " | ".join([*cells, f"{one['operations'] / 1e12:.1f}", share]) + " |")
    lines += ["", *(f"- {name}: {version}" for name, version in found["programs"].items())]
    if found["left_out"]:
        lines += ["", "Left out:", "", *(f"- {label}" for label in found["left_out"])]
    return "\n".join(lines) + "\n"


def measure_device(report, program, sizes):
    """Notes what the device is and what it allows at best."""
    report.found["device"] = program.ask("describe")
    report.found["programs"]["ours"] = report.found["device"]["version"]
    report.found["rates"] = program.ask("rates", size=sizes.matrix, megabytes=sizes.megabytes)


def load(report, programs, job):
    """Loads what decodes a job's body; returns the names that can take part."""
    able = []
    for name, (program, dtype, _) in DECODERS[job.body].items():

        def part(name=name, program=program, dtype=dtype):
            facts = programs[program].ask(
                "load", name=f"{job.body} {dtype}", job=job.to_json(), dtype=dtype
            )
            report.found["programs"].setdefault(program, facts.get("version"))
            able.append(name)

        report.attempt(f"{job.body}: {name} is loaded", part)
    return able


def measure_decoding(report, programs, job, names, batch, count):
    """Measures programs in turn at one batch size."""

    def measure(name):
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

    found = rounds.interleave(names, count, measure)
    figures = {name: {"ms": figure} for name, figure in rounds.figure(found, "ms").items()}
    for key, against in (("eager", "ours, eager"), ("hugging_face", "hugging_face")):
        if against in names:
            for name, figure in rounds.figure(found, "ms", against).items():
                figures[name][key] = figure["ratio"]
    needed = floors.needs(floors.decoding_products(job, batch, SOURCE_LENGTH))["bytes"]
    for name, figure in figures.items():
        seconds = figure["ms"]["median"] / 1e3
        figure["tokens"] = batch * job.length / seconds
        if report.found["rates"]:
            halved = 2 if "bfloat16" in name else 1
            figure["share"] = needed / halved / seconds / report.found["rates"]["bytes"]
    report.found["decoding"].append({"body": job.body, "batch": batch, "figures": figures})


def trainings(sizes):
    """Returns what is trained: list of (name, task of the program, its arguments)."""
    often = {"updates": sizes.updates, "epochs": sizes.epochs}
    models = [
        (
            f"language model, {head}",
            "train_language_model",
            {"head": head, "sizes": sizes.language_model, "rows": sizes.rows, **often},
        )
        for head in ("softmax", "pointer_sentinel")
    ]
    pairs = {"batch": sizes.training_batch, "length": sizes.training_length, **often}
    return [
        *models,
        *((job.body, "train_pairs", {"job": job.to_json(), **pairs}) for job in sizes.jobs),
    ]


def measure_training(report, program, network, dtype, task, **arguments):
    """Trains once; notes the rate, and its matrix products' share of what the device allows."""
    facts = program.ask(task, dtype=dtype, **arguments) | {"network": network, "dtype": dtype}
    if report.found["rates"]:
        facts["share"] = (
            facts["operations"]
            / report.found["rates"]["bfloat16" if "bfloat16" in dtype else "float32"]
        )
    report.found["training"].append(facts)


def main(arguments=None):
    """Measures everything that there is time for and writes the report."""
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
    options = parser.parse_args(arguments)
    sizes = SMALL if options.small else Sizes()
    options.output.mkdir(parents=True, exist_ok=True)
    facts = machine.describe()
    report = Report(options.output, 60 * options.minutes, facts)
    variables = {
        "KERAS_BACKEND": "jax",
        # Two programs share the device: neither may take its memory beforehand.
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        "CUDA_VISIBLE_DEVICES": None,
    }
    with contextlib.ExitStack() as stack:
        programs = {}
        for name, python in {"ours": sys.executable, "hugging_face": options.peer}.items():
            program = processes.Program(
                python, name, facts["cores"], options.output / f"{name}.log", PACKAGE, variables
            )
            programs[name] = stack.enter_context(program)
        report.attempt("the device", lambda: measure_device(report, programs["ours"], sizes))
        for dtype in ("float32", "mixed_bfloat16"):
            for network, task, given in trainings(sizes):
                part = functools.partial(
                    measure_training, report, programs["ours"], network, dtype, task, **given
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


if __name__ == "__main__":
    main()
