"""The report of the measurements on an accelerator, as JSON and as Markdown."""

import pathlib
import sys
import time
from collections.abc import Callable
from typing import TypedDict

from benchmarks.peers import machine, processes, rounds
from benchmarks.peers.lengths import WrongLength
from benchmarks.records import measuring
from benchmarks.records.record import MeasuredRow
from pipeline.common import whole_files


class DecodingFigure(TypedDict, total=False):
    """One program at one batch size.

    Attributes:
        ms: milliseconds of a call.
        tokens: tokens a second.
        eager, hugging_face: how many times as fast as these it is.
        share: of the device's memory rate, which the products need at least.
    """

    ms: rounds.Figure
    tokens: float
    eager: rounds.Spread
    hugging_face: rounds.Spread
    share: float


class DecodingFigures(TypedDict):
    """All programs at one batch size."""

    body: str
    batch: int
    figures: dict[str, DecodingFigure]


class Measurements(TypedDict):
    """What `accelerator.json` holds.

    Attributes:
        machine: with the device.
        device, rates: what `ours.describe` and `ours.rates` answer; empty until then.
        programs: versions by the name of the program.
        decoding: in the order of measurement.
        training: what `ours` answers to a training, with `network`, `dtype` and `share`.
        left_out: what was not measured, and why.
    """

    machine: machine.Machine
    device: dict[str, str]
    rates: dict[str, float]
    programs: dict[str, str | None]
    decoding: list[DecodingFigures]
    training: list[processes.Answer]
    left_out: list[str]


class Report:
    """The measurements so far, written after each part, and what was left out."""

    def __init__(self, output: pathlib.Path, seconds: float, facts: machine.Machine) -> None:
        self.output = output
        self.ends = time.monotonic() + seconds
        self.found: Measurements = {
            "machine": facts,
            "device": {},
            "rates": {},
            "programs": {},
            "decoding": [],
            "training": [],
            "left_out": [],
        }

    def attempt(self, label: str, part: Callable[[], None]) -> None:
        """Does a part, unless the time is over; a failure is noted, and the program goes on."""
        print(f"  {label}", file=sys.stderr, flush=True)
        if time.monotonic() > self.ends:
            self.found["left_out"].append(f"{label}: the time was over")
        else:
            try:
                part()
            except (processes.ProgramError, WrongLength) as error:
                self.found["left_out"].append(f"{label}: {error}")
        self.write()

    def write(self) -> None:
        """Writes the measurements as JSON and as Markdown."""
        whole_files.write_json(self.output / "accelerator.json", self.found)
        whole_files.write_text(self.output / "accelerator.md", as_markdown(self.found))


def rows(found: Measurements) -> list[MeasuredRow]:
    """Returns the rows of the result file: what was decoded, then what was trained."""
    made = []
    for one in found["decoding"]:
        for name, figure in one["figures"].items():
            eager, peer = figure.get("eager"), figure.get("hugging_face")
            made.append(
                measuring.row(
                    {"work": f"decoding, {one['body']}, batch {one['batch']}", "program": name},
                    {
                        "tokens": measuring.one(figure["tokens"]),
                        "ms": measuring.spread(figure["ms"]),
                        "times_eager": measuring.spread(eager) if eager else None,
                        "times_hugging_face": measuring.spread(peer) if peer else None,
                        "share": measuring.one(figure.get("share")),
                    },
                )
            )
    for trained in found["training"]:
        made.append(
            measuring.row(
                {"work": f"training, {trained['network']}", "program": trained["dtype"]},
                {
                    "tokens": measuring.one(trained["rate"]),
                    "share": measuring.one(trained.get("share")),
                },
            )
        )
    return made


def as_markdown(found: Measurements) -> str:
    """Returns the tables of the measurements."""
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
                rounds.with_spread(ratio, 1) if ratio else ""
                for ratio in (figure.get("eager"), figure.get("hugging_face"))
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
    for trained in found["training"]:
        cells = [
            trained["network"],
            trained["dtype"],
            f"{trained['rate']:,.0f}",
            f"{trained['parameters']:,}",
            f"{trained['operations'] / 1e12:.1f}",
            f"{trained['share']:.1%}" if "share" in trained else "",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", *(f"- {name}: {version}" for name, version in found["programs"].items())]
    if found["left_out"]:
        lines += ["", "Left out:", "", *(f"- {label}" for label in found["left_out"])]
    return "\n".join(lines) + "\n"
