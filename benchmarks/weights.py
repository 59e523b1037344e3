"""The matrix products of a step with weights in float32, bfloat16 and int8, compiled by XLA.

    python -m benchmarks.weights [--rounds 9]

It shows whether smaller weights are faster. The shapes are those of decoding with beam 5
(`benchmarks.peers`): the vocabulary's product and the cell's, of 1 and of 32 sentences. Weights of
fewer bits are converted to float32 where they are multiplied, which reads fewer bytes; or (`int8 by
int8`) multiplied as they are by rounded activations, and summed in int32. Prints a Markdown table
of microseconds, and how many times as fast as float32; --record writes it as a result file.
"""

import argparse
import time
from collections.abc import Callable
from typing import TypeAlias

import tensorflow as tf

from benchmarks.peers import rounds
from benchmarks.peers.job import Job
from benchmarks.records import measuring
from benchmarks.records.record import MeasuredRow
from benchmarks.tables import measured as tables

#: Rows, inner size and columns by name.
SHAPES = {
    f"{name}, batch {batch}": (batch * Job.beam, inner, columns)
    for batch in (1, 32)
    for name, inner, columns in (
        ("vocabulary", Job.hidden, Job.vocabulary),
        ("GRU", Job.embedding + 2 * Job.hidden, 3 * Job.hidden),
    )
}
_INT8 = 127.0

#: Multiplies activations `[rows, inner]` with weights.
Product: TypeAlias = Callable[[tf.Tensor], tf.Tensor]


def _rounded(values: tf.Tensor, axis: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns values as int8 and the scale that undoes it, one for each line along `axis`."""
    scale = tf.reduce_max(tf.abs(values), axis=axis, keepdims=True) / _INT8
    return tf.cast(tf.round(values / scale), tf.int8), scale


def products(weights: tf.Tensor) -> dict[str, Product]:
    """Returns the compiled product with weights of each type, by the name of the type."""
    rounded, scale = _rounded(weights, axis=0)
    typed = {"float32": weights, "bfloat16": tf.cast(weights, tf.bfloat16), "int8": rounded}
    # Variables, as in a served model: a compiler could convert a constant to another type.
    stored = {name: tf.Variable(value) for name, value in typed.items()}

    def by_int8(values: tf.Tensor) -> tf.Tensor:
        values, own_scale = _rounded(values, axis=1)
        sums = tf.matmul(values, stored["int8"], output_type=tf.int32)
        return tf.cast(sums, tf.float32) * own_scale * scale

    functions: dict[str, Product] = {
        "float32": lambda values: tf.matmul(values, stored["float32"]),
        "bfloat16": lambda values: tf.matmul(values, tf.cast(stored["bfloat16"], tf.float32)),
        "int8": lambda values: tf.matmul(values, tf.cast(stored["int8"], tf.float32)) * scale,
        "int8 by int8": by_int8,
    }
    return {name: tf.function(function, jit_compile=True) for name, function in functions.items()}


def microseconds(function: Product, values: tf.Tensor, calls: int) -> float:
    """Returns the mean time of a call."""
    started = time.perf_counter()
    for _ in range(calls):
        result = function(values)
    result.numpy()
    return (time.perf_counter() - started) / calls * 1e6


def rows_of(name: str, shape: tuple[int, int, int], count: int) -> list[MeasuredRow]:
    """Measures one shape in `count` rounds; returns the rows of the table."""
    size, inner, columns = shape
    tf.random.set_seed(1)
    functions, values = (
        products(tf.random.normal((inner, columns))),
        tf.random.normal((size, inner)),
    )
    calls = min(50, max(2, round(1e9 / (size * inner * columns))))
    measured = rounds.interleave(
        functions,
        count,
        lambda kind: {"microseconds": microseconds(functions[kind], values, calls)},
    )
    figures = rounds.figure(measured, "microseconds", "float32")
    return [
        measuring.row(
            {
                "product": name,
                "rows x inner x columns": " x ".join(map(str, shape)),
                "weights": kind,
            },
            {
                "microseconds": measuring.spread(figure),
                "times": measuring.spread(figure["ratio"]),
            },
        )
        for kind, figure in figures.items()
    ]


def main() -> None:
    """Measures in turn and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=9)
    measuring.add_argument(parser)
    options = parser.parse_args()
    machine = measuring.machine()
    rows = [row for name, shape in SHAPES.items() for row in rows_of(name, shape, options.rounds)]
    table = measuring.table_of(rows, options.rounds, machine, packages=("tensorflow",))
    measuring.write(options.record, table)
    print(tables.plain(table))


if __name__ == "__main__":
    main()
