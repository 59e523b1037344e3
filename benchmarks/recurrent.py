"""Encoders of our recurrent layers beside Keras' own, in milliseconds of a call.

    python -m benchmarks.recurrent [--rounds 7]

Both directions have 256 units each and inputs of size 300; there is no accelerator. Calls alone use
XLA, as in a served model; calls with gradients do not, as in training. Prints a Markdown table;
--record writes it as a result file.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any, TypeAlias

import keras
import tensorflow as tf

from benchmarks.peers import rounds
from benchmarks.records import measuring
from benchmarks.records.record import MeasuredRow
from benchmarks.tables import measured as tables
from keras_models.layers import recurrent

UNITS, INPUTS = 256, 300
# Rows and steps of a call alone, and of one with gradients.
CALLS = ((1, 12), (32, 12))
TRAININGS = ((64, 12), (64, 24), (32, 50))

#: Runs an encoder, and returns its outputs or gradients.
Step: TypeAlias = Callable[[], Any]


def make_step(kind: type[keras.layers.Layer], rows: int, steps: int, with_gradients: bool) -> Step:
    """Returns a compiled function that runs an encoder; its first call is done."""
    layer = keras.layers.Bidirectional(kind(UNITS, return_sequences=True))
    inputs, mask = tf.random.normal((rows, steps, INPUTS)), tf.ones((rows, steps), tf.bool)
    layer(inputs, mask=mask)

    def run() -> Any:
        if not with_gradients:
            return layer(inputs, mask=mask)
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            outputs = tf.reduce_sum(layer(inputs, mask=mask, training=True) ** 2)
        return tape.gradient(outputs, [inputs, *layer.trainable_weights])

    step: Step = tf.function(run, jit_compile=not with_gradients)
    step()
    return step


def milliseconds(step: Step, calls: int = 5) -> float:
    """Returns the mean time of a call."""
    start = time.perf_counter()
    for _ in range(calls):
        outputs = step()
    for value in tf.nest.flatten(outputs):
        tf.convert_to_tensor(value).numpy()
    return (time.perf_counter() - start) / calls * 1e3


def row(name: str, with_gradients: bool, shape: tuple[int, int], count: int) -> MeasuredRow:
    """Measures Keras' layer of a name and ours in `count` rounds."""
    kinds = {"keras": getattr(keras.layers, name), "ours": getattr(recurrent, name)}
    steps = {
        label: make_step(kind, shape[0], shape[1], with_gradients) for label, kind in kinds.items()
    }
    measured = rounds.interleave(steps, count, lambda label: {"ms": milliseconds(steps[label])})
    figures = rounds.figure(measured, "ms", "keras")
    return measuring.row(
        {
            "layer": name,
            "call": "with gradients" if with_gradients else "alone",
            "rows x steps": f"{shape[0]} x {shape[1]}",
        },
        {
            **{f"{label}_ms": measuring.spread(figures[label]) for label in kinds},
            "times": measuring.spread(figures["ours"]["ratio"]),
        },
    )


def main() -> None:
    """Measures in turn and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    measuring.add_argument(parser)
    options = parser.parse_args()
    machine = measuring.machine()
    rows = [
        row(name, with_gradients, shape, options.rounds)
        for name in ("GRU", "LSTM")
        for with_gradients, shapes in ((False, CALLS), (True, TRAININGS))
        for shape in shapes
    ]
    table = measuring.table_of(rows, options.rounds, machine)
    measuring.write(options.record, table)
    print(tables.plain(table))


if __name__ == "__main__":
    main()
