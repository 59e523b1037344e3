"""What the machine allows: its rates, and what decoding and training need at least.

    python -m benchmarks.peers.floors [--threads 2] [--json FILE]

A floor is the time of the network's matrix products alone, each at the slower of two limits: its
multiplications and additions at the best rate that a large product reached here, or the bytes of
its factors and result, each moved once, at the best rate that memory gave. It knows no caches
between products, no gates, no softmax, no search: a program near it wastes nothing that counts.
"""

import argparse
import dataclasses
import json
import pathlib
import sys
from collections.abc import Iterable
from typing import TypedDict, cast

from benchmarks.peers import processes
from benchmarks.peers.job import Job

FLOAT_BYTES = 4


class Needs(TypedDict):
    """Multiplications and additions, and bytes that are moved; or how many of each a second."""

    operations: float
    bytes: float


class ProductRate(TypedDict):
    """What one library reached with one product.

    Attributes:
        library: `numpy` or `tensorflow`.
        shape: rows, inner size and columns.
        kind: `operations` or `bytes`, of which the rates are.
        median, best: rates a second.
    """

    library: str
    shape: list[int]
    kind: str
    median: float
    best: float


class Rates(Needs):
    """The best rates of the machine, and the measurements that they are taken from."""

    measured: list[ProductRate]


@dataclasses.dataclass(frozen=True)
class Product:
    """A `[rows, inner]` matrix times an `[inner, columns]` one in float32, a number of times."""

    name: str
    rows: int
    inner: int
    columns: int
    times: int = 1

    @property
    def operations(self) -> int:
        """How many multiplications and additions."""
        return 2 * self.rows * self.inner * self.columns * self.times

    @property
    def bytes(self) -> int:
        """How many bytes the factors and the result have."""
        elements = self.rows * self.inner + self.inner * self.columns + self.rows * self.columns
        return FLOAT_BYTES * elements * self.times


def encoder_products(job: Job, batch: int, source_length: int) -> list[Product]:
    """Returns the products of reading a batch.

    The encoder is a bidirectional GRU, half the hidden size each way, with a first state; or a
    Transformer.
    """
    rows, hidden = batch * source_length, job.hidden
    if job.body == "transformer":
        return [
            *_self_attention(job, batch, source_length, source_length, job.layers),
            *_feed_forward(job, rows),
            Product("keys and values of the source", rows, hidden, 2 * hidden, job.layers),
        ]
    half = hidden // 2
    # Products with the states of the source are computed one time, not at each step.
    keys = [] if job.attention == "dot" else [Product("attention's keys", rows, hidden, hidden)]
    return [
        *keys,
        Product("encoder's inputs", rows, job.embedding, 3 * half, 2),
        Product("encoder's recurrence", batch, half, 3 * half, 2 * source_length),
        Product("first state", batch, hidden, hidden),
    ]


def _self_attention(
    job: Job, sources: int, rows_each: int, positions: int, layers: int
) -> list[Product]:
    hidden, rows = job.hidden, sources * rows_each
    return [
        Product("queries, keys, values", rows, hidden, 3 * hidden, layers),
        *_attention(job, sources, rows_each, positions, layers),
        Product("attention's output", rows, hidden, hidden, layers),
    ]


def _attention(
    job: Job, sources: int, rows_each: int, positions: int, layers: int
) -> list[Product]:
    each = job.hidden // job.heads
    return [
        Product("attention's scores", rows_each, each, positions, sources * job.heads * layers),
        Product("attention's context", rows_each, positions, each, sources * job.heads * layers),
    ]


def _feed_forward(job: Job, rows: int) -> list[Product]:
    return [
        Product("feed-forward, in", rows, job.hidden, job.feed_forward, job.layers),
        Product("feed-forward, out", rows, job.feed_forward, job.hidden, job.layers),
    ]


def step_products(job: Job, sources: int, rows_each: int, source_length: int) -> list[Product]:
    """Returns the products of one step of the decoder.

    Args:
        sources: how many sources.
        rows_each: hypotheses of each, or its target tokens where all are known.
        source_length: tokens of a source.
    """
    rows, hidden = sources * rows_each, job.hidden
    if job.body == "transformer":
        return [
            # Each hypothesis has its own past, on average half of the output.
            *_self_attention(job, rows, 1, job.length // 2, job.layers),
            Product("source attention's query", rows, hidden, hidden, job.layers),
            *_attention(job, sources, rows_each, source_length, job.layers),
            Product("source attention's output", rows, hidden, hidden, job.layers),
            *_feed_forward(job, rows),
            Product("vocabulary", rows, hidden, job.vocabulary),
        ]
    query = (
        [Product("attention's query", rows, hidden, hidden)] if job.attention == "additive" else []
    )
    return [
        *query,
        # Input feeding: the output of the last step is an input, beside the last word.
        Product("GRU, inputs", rows, job.embedding + hidden, 3 * hidden),
        Product("GRU, state", rows, hidden, 3 * hidden),
        Product("attention's scores", rows_each, hidden, source_length, sources),
        Product("attention's context", rows_each, source_length, hidden, sources),
        Product("output", rows, 2 * hidden, hidden),
        Product("vocabulary", rows, hidden, job.vocabulary),
    ]


def decoding_products(job: Job, batch: int, source_length: int) -> list[Product]:
    """Returns the products of decoding a batch with a beam.

    The end after the last token is forced and needs none.
    """
    steps = step_products(job, batch, job.beam, source_length)
    repeated = [dataclasses.replace(product, times=product.times * job.length) for product in steps]
    return [*encoder_products(job, batch, source_length), *repeated]


def training_products(
    job: Job, batch: int, source_length: int, target_length: int
) -> list[Product]:
    """Returns the products of one update.

    There are twice as many backward as forward, for the gradients of both factors. Steps of a GRU,
    which depend on each other, have a product of `batch` rows each. The vocabulary's product
    depends on no other step, so all steps share one; all steps of a Transformer share each.
    """
    forward = encoder_products(job, batch, source_length)
    if job.body == "transformer":
        forward += step_products(job, batch, target_length, source_length)
        return [dataclasses.replace(product, times=3 * product.times) for product in forward]
    for product in step_products(job, batch, 1, source_length):
        if product.name == "vocabulary":
            forward.append(dataclasses.replace(product, rows=batch * target_length))
        else:
            forward.append(dataclasses.replace(product, times=product.times * target_length))
    return [dataclasses.replace(product, times=3 * product.times) for product in forward]


def seconds(products: Iterable[Product], rates: Needs) -> float:
    """Returns the floor of some products, by rates a second."""
    return sum(
        max(one.operations / rates["operations"], one.bytes / rates["bytes"]) for one in products
    )


def needs(products: Iterable[Product]) -> Needs:
    """Returns what some products need together."""
    products = list(products)
    return {
        "operations": sum(product.operations for product in products),
        "bytes": sum(product.bytes for product in products),
    }


def measured_rates(threads: int, log: str | pathlib.Path) -> Rates:
    """Returns the rates that `rates.measure` finds in a process with `threads` threads."""
    with processes.Program(sys.executable, "rates", threads, log) as program:
        return cast(Rates, program.ask("measure"))


def table(rates: Rates, job: Job, source_length: int) -> str:
    """Returns Markdown tables of measured rates and of the job's needs."""
    lines = ["| library | product | G operations/s or GB/s: median (best) |", "|---|---|---|"]
    for one in rates["measured"]:
        unit = "GB/s" if one["kind"] == "bytes" else "G operations/s"
        shape = " × ".join(map(str, one["shape"]))
        lines.append(
            f"| {one['library']} | {shape} | {one['median'] / 1e9:.1f} ({one['best'] / 1e9:.1f}) "
            f"{unit} |"
        )
    lines += [
        "",
        "| decoding, batch | G operations a sentence | GB a sentence | floor, ms a sentence |",
        "|---|---|---|---|",
    ]
    for batch in job.batches:
        products = decoding_products(job, batch, source_length)
        amounts = needs(products)
        cells = [
            f"{amount / batch / 1e9:.3f}" for amount in (amounts["operations"], amounts["bytes"])
        ]
        lines.append(
            f"| {batch} | {' | '.join(cells)} | {1000 * seconds(products, rates) / batch:.2f} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    rates = measured_rates(options.threads, "/dev/stderr")
    # The mean source of the corpus has 8 words.
    print(table(rates, Job(threads=options.threads), 8))
    if options.json:
        options.json.write_text(json.dumps(rates, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
