"""How decoding's time and memory grow with source length, beam, batch and vocabulary.

    python -m benchmarks.growth.decoding --data PATH --output DIR
        [--axes source,beam,batch,vocabulary] [--repeats 5]

The network is that of `benchmarks.peers`, untrained, exported and run through its own signature
(XLA). One size changes at a time; the others are a source of 16 tokens, beam 5, one sentence, 8,000
words; outputs have 20 tokens, forced. Each point is a process of its own, so that its peak of
resident memory is its own; the time is the median of the calls after the first. Writes
DIR/decoding.json, decoding.md and decoding.svg; --record writes a result file.
"""

import argparse
import dataclasses
import itertools
import pathlib
import shutil
import statistics
import sys
from collections.abc import Mapping, Sequence
from typing import TypedDict

from benchmarks.growth import exponents
from benchmarks.peers import corpus, machine, processes
from benchmarks.peers.job import Job
from benchmarks.peers.lengths import check_lengths
from benchmarks.records import measuring
from benchmarks.records.record import MeasuredRow, Spread
from pipeline.common import whole_files


class Point(TypedDict):
    """What one point took.

    Attributes:
        first_seconds: of the first call.
        seconds, low, high: median, smallest and largest of the calls after it.
        peak_bytes: the most memory that was resident.
    """

    first_seconds: float
    seconds: float
    low: float
    high: float
    peak_bytes: int


@dataclasses.dataclass(frozen=True)
class Axis:
    """One size that changes: its name in a sentence, its values."""

    label: str
    sizes: tuple[int, ...]


AXES = {
    "source": Axis("tokens of the source", (16, 32, 64, 128, 256, 512, 1024)),
    "beam": Axis("beam", (1, 2, 4, 8, 16)),
    "batch": Axis("sentences of a batch", (1, 2, 4, 8, 16, 32, 64, 128, 256)),
    "vocabulary": Axis("words of the vocabulary", (2000, 4000, 8000, 16000, 32000, 64000, 128000)),
}
BASE = {"source": 16, "beam": 5, "batch": 1, "vocabulary": 8000}


def texts_of(pairs: Sequence[corpus.Pair], length: int, count: int) -> list[str]:
    """Returns `count` texts of exactly `length` tokens each, cut from the sources in turn."""
    words = itertools.cycle(word for source, _ in pairs for word in source.split())
    return [" ".join(itertools.islice(words, length)) for _ in range(count)]


def job_of(sizes: Mapping[str, int], threads: int) -> Job:
    """Returns the `Job` of some sizes; one model serves all sources and batches."""
    return Job(
        vocabulary=sizes["vocabulary"],
        beam=sizes["beam"],
        batches=AXES["batch"].sizes,
        source_buckets=AXES["source"].sizes,
        threads=threads,
    )


def measure(sizes: Mapping[str, int], options: argparse.Namespace) -> Point:
    """Measures one point, in a process of its own."""
    job = job_of(sizes, options.threads)
    folder = options.output / "work" / f"{job.vocabulary}_{job.beam}"
    shared = {"job": job.to_json(), "folder": str(folder)}
    texts = texts_of(corpus.read(options.data, "dev"), sizes["source"], sizes["batch"])
    log = options.output / "decoding.log"
    if not (folder / "model" / "1").exists():
        folder.mkdir(parents=True, exist_ok=True)
        with processes.Program(sys.executable, "ours", job.threads, log) as program:
            program.ask("make", data=str(options.data), **shared)
    with processes.Program(sys.executable, "ours", job.threads, log) as program:
        program.ask("load", model=str(folder / "model"), forced=True, **shared)
        answers = [
            program.ask("decode", texts=texts, batch=len(texts)) for _ in range(1 + options.repeats)
        ]
    check_lengths("ours", answers[-1]["lengths"], job.length)
    seconds = [answer["seconds"] for answer in answers[1:]]
    return {
        "first_seconds": answers[0]["seconds"],
        "seconds": statistics.median(seconds),
        "low": min(seconds),
        "high": max(seconds),
        "peak_bytes": answers[-1]["peak_bytes"],
    }


def table(name: str, points: Sequence[tuple[int, Point]]) -> str:
    """Returns the Markdown table of one axis.

    Args:
        name: of the axis.
        points: of a size each.
    """
    label = AXES[name].label
    lines = [f"| {label} | ms a call | peak, MB | first call, s |", "|---|---|---|---|"]
    for size, facts in points:
        spread = (
            f"{1e3 * facts['seconds']:,.1f} ({1e3 * facts['low']:,.1f} to "
            f"{1e3 * facts['high']:,.1f})"
        )
        lines.append(
            f"| {size:,} | {spread} | {facts['peak_bytes'] / 1e6:,.0f} | "
            f"{facts['first_seconds']:.1f} |"
        )
    if len(points) > 1:
        sizes, times = [size for size, _ in points], [facts["seconds"] for _, facts in points]
        exponent, last = exponents.exponent(sizes, times), exponents.last_exponent(sizes, times)
        lines += [
            "",
            f"Time grows with the power {exponent:.2f} of the {label}; at the end {last:.2f}.",
        ]
    return "\n".join(lines) + "\n"


def rows(axes: Mapping[str, Sequence[tuple[int, Point]]]) -> list[MeasuredRow]:
    """Returns the rows of the result file."""
    return [
        measuring.row(
            {"what grows": AXES[name].label, "size": size},
            {
                "ms": Spread(1e3 * facts["seconds"], 1e3 * facts["low"], 1e3 * facts["high"]),
                "peak_mb": measuring.one(facts["peak_bytes"] / 1e6),
                "first_seconds": measuring.one(facts["first_seconds"]),
            },
        )
        for name, points in axes.items()
        for size, facts in points
    ]


def curves(axes: Mapping[str, Sequence[tuple[int, Point]]]) -> list[exponents.Curve]:
    """Returns the curves of time, then memory, of each axis."""
    made: list[exponents.Curve] = []
    for name, points in axes.items():
        if len(points) < 2:
            continue
        label = AXES[name].label
        made.append(
            {
                "title": "Milliseconds a call",
                "x_label": label,
                "points": [(size, 1e3 * facts["seconds"]) for size, facts in points],
            }
        )
        made.append(
            {
                "title": "Peak of memory, MB",
                "x_label": label,
                "points": [(size, facts["peak_bytes"] / 1e6) for size, facts in points],
            }
        )
    return made


def main() -> None:
    """Measures the axes, and writes the report."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--data", required=True, type=pathlib.Path, help="folder of small_parallel_enja"
    )
    parser.add_argument("--output", required=True, type=pathlib.Path)
    parser.add_argument("--axes", default=",".join(AXES))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    measuring.add_argument(parser)
    options = parser.parse_args()
    names = options.axes.split(",")
    if unknown := set(names) - set(AXES):
        parser.error(f"--axes {', '.join(sorted(unknown))}: choose of {', '.join(AXES)}")
    options.output.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(options.output / "work", ignore_errors=True)
    facts, measured_on = machine.describe(), measuring.machine(options.threads)
    axes: dict[str, list[tuple[int, Point]]] = {}
    # The axes meet in one point.
    known: dict[tuple[tuple[str, int], ...], Point] = {}
    for name in names:
        axes[name] = []
        for size in AXES[name].sizes:
            sizes = {**BASE, name: size}
            key = tuple(sizes.items())
            known[key] = known.get(key) or measure(sizes, options)
            axes[name].append((size, known[key]))
            print(
                f"  {name} {size:,}: {1e3 * known[key]['seconds']:,.1f} ms",
                file=sys.stderr,
                flush=True,
            )
        report = {"machine": facts, "base": BASE, "axes": axes}
        whole_files.write_json(options.output / "decoding.json", report)
    parts = ["# Growth of decoding", "", machine.sentence(facts, options.threads), ""]
    parts += [table(name, points) for name, points in axes.items()]
    exponents.write(options.output / "decoding.svg", "Growth of decoding", curves(axes))
    text = "\n".join([*parts, "![Growth of decoding](decoding.svg)", ""])
    whole_files.write_text(options.output / "decoding.md", text)
    print(text)
    measuring.write(options.record, measuring.table_of(rows(axes), options.repeats, measured_on))


if __name__ == "__main__":
    main()
