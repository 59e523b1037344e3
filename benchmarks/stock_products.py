"""What stock kernels reach of the floor of a Transformer's decoding step.

    python -m benchmarks.stock_products [--rounds 9]

A step of the network that `benchmarks.peers.decoding` compares with CTranslate2 multiplies the
hypotheses with some forty weight matrices, one after another. Here the products stand alone: no
attention over the past, no norms, no softmax, no search. What a library takes for them is a lower
bound for every decoder that is made of its products. They are computed in one program compiled by
XLA, in one of TensorFlow's own kernels, and by NumPy's library; and for few rows by XLA with the
matrices in panels (`keras_models.layers.panels`), as a served model multiplies for one text. Prints
a Markdown table; --record writes it as a result file.
"""

import argparse
import math
import os
import time
import types
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from benchmarks.peers import floors, rounds
from benchmarks.peers.job import Job
from benchmarks.records import measuring
from benchmarks.records.record import MeasuredRow
from benchmarks.tables import measured as tables
from keras_models.layers import panels

#: Computes all products of all steps of an output.
Output: TypeAlias = Callable[[], object]
#: A matrix of NumPy or of TensorFlow.
Values: TypeAlias = Any
_SOURCE_LENGTH = 8
_PAUSE = 0.2
_STATES = ("attention's scores", "attention's context")


def weight_products(job: Job, batch: int) -> list[floors.Product]:
    """Returns the products of a step with weights, in their order; none is repeated."""
    products = [
        product
        for product in floors.step_products(job, batch, job.beam, _SOURCE_LENGTH)
        if product.name not in _STATES
    ]
    once = [floors.Product(one.name, one.rows, one.inner, one.columns) for one in products]
    of_a_layer = [one for one, product in zip(once, products) if product.times == job.layers]
    return of_a_layer * job.layers + [one for one in once if one not in of_a_layer]


def outputs(products: Sequence[floors.Product], length: int) -> dict[str, Output]:
    """Returns what computes the steps of an output, by the name of the library.

    Each product multiplies the result of the last one, and the first one of a step depends on the
    step before. As in a search, all steps are a loop of one program.
    """
    rng = np.random.default_rng(1)
    matrices = [
        (rng.standard_normal((one.inner, one.columns)) / math.sqrt(one.inner)).astype("float32")
        for one in products
    ]
    states = rng.standard_normal((products[0].rows, products[0].inner)).astype("float32")
    # Variables, as in a served model: a compiler lays out constants as it likes.
    variables, first = [tf.Variable(one) for one in matrices], tf.constant(states)

    def by_tensorflow(values: tf.Tensor) -> tf.Tensor:
        def step(time: tf.Tensor, values: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            for product, variable in zip(products, variables):
                values = panels.product(_narrowed(values, product.inner, tf), variable)
            return time + 1, first + tf.reduce_mean(values, axis=1, keepdims=True)

        return tf.while_loop(lambda time, _: time < length, step, (0, values))[1]

    def by_numpy() -> npt.NDArray[np.float32]:
        values = states
        for _ in range(length):
            for product, matrix in zip(products, matrices):
                values = np.matmul(_narrowed(values, product.inner, np), matrix)
            values = states + np.mean(values, axis=1, keepdims=True)
        return values

    compiled = tf.function(by_tensorflow, jit_compile=True, autograph=False)
    graph = tf.function(by_tensorflow, autograph=False)
    libraries: dict[str, Output] = {
        "XLA": lambda: compiled(first).numpy(),
        "TensorFlow's kernels": lambda: graph(first).numpy(),
        "NumPy": by_numpy,
    }
    if len(states) <= panels.MOST_ROWS:
        kernels = [(variable, variable) for variable in variables]
        laid_out = keras.tree.map_structure(tf.Variable, panels.tables_of(kernels, "float32"))
        in_panels = tf.function(by_tensorflow, jit_compile=True, autograph=False)

        def by_panels() -> npt.NDArray[np.float32]:
            with panels.in_use(kernels, laid_out):
                return in_panels(first).numpy()

        libraries["XLA, in panels"] = by_panels
    return libraries


def _narrowed(values: Values, inner: int, library: types.ModuleType) -> Values:
    """Returns the sum of blocks of `inner` columns, so that a product needs all columns before."""
    rows, columns = values.shape
    blocks = library.reshape(values, (rows, columns // inner, inner))
    return blocks[:, 0] if columns == inner else sum(blocks[:, i] for i in range(columns // inner))


def milliseconds(output: Output) -> float:
    """Returns the time of a call, after another one."""
    # Threads of the last library wait for more work for a while, and take a core.
    time.sleep(_PAUSE)
    output()
    started = time.perf_counter()
    output()
    return (time.perf_counter() - started) * 1e3


def rows_of(job: Job, batch: int, rates: floors.Needs, count: int) -> list[MeasuredRow]:
    """Measures the steps of a batch in `count` rounds; returns the rows of the table.

    Args:
        job: sizes of the network and of the output.
        batch: sources that are decoded at the same time.
        rates: of the machine.
        count: rounds.
    """
    products = weight_products(job, batch)
    floor_ms = 1e3 * floors.seconds(products, rates) * job.length
    functions = outputs(products, job.length)
    measured = rounds.interleave(
        functions, count, lambda library: {"ms": milliseconds(functions[library]) / batch}
    )
    return [
        measuring.row(
            {"batch": batch, "products by": library},
            {
                "ms": measuring.spread(figure),
                "times": measuring.spread(figure["ratio"]),
                "floor": measuring.one(floor_ms / batch / figure["median"]),
            },
        )
        for library, figure in rounds.figure(measured, "ms", "XLA").items()
    ]


def main() -> None:
    """Measures in turn and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=9)
    measuring.add_argument(parser)
    options = parser.parse_args()
    machine = measuring.machine()
    job = Job(body="transformer")
    rates = floors.measured_rates(os.cpu_count() or job.threads, "/dev/stderr")
    rows = [row for batch in job.batches for row in rows_of(job, batch, rates, options.rounds)]
    table = measuring.table_of(rows, options.rounds, machine, packages=("tensorflow", "numpy"))
    measuring.write(options.record, table)
    print(tables.plain(table))


if __name__ == "__main__":
    main()
