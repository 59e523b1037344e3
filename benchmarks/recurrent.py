"""Encoders of our recurrent layers beside Keras' own:
milliseconds of a call, and of a call with its gradients.

    python -m benchmarks.recurrent [--rounds 7]

Both directions of 256 units each over inputs of 300, without an accelerator. XLA for calls alone,
as in a served model; training runs without. Prints a Markdown table.
"""

import argparse
import time

import keras
import tensorflow as tf

from benchmarks.peers import machine, rounds
from keras_models.layers import recurrent

UNITS, INPUTS = 256, 300
# Rows and steps of a call alone, and of one with gradients.
CALLS = ((1, 12), (32, 12))
TRAININGS = ((64, 12), (64, 24), (32, 50))


def make_step(kind, rows, steps, with_gradients):
    """Returns a compiled function that runs an encoder once, its first call done."""
    layer = keras.layers.Bidirectional(kind(UNITS, return_sequences=True))
    inputs, mask = tf.random.normal((rows, steps, INPUTS)), tf.ones((rows, steps), tf.bool)
    layer(inputs, mask=mask)

    def run():
        if not with_gradients:
            return layer(inputs, mask=mask)
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            outputs = tf.reduce_sum(layer(inputs, mask=mask, training=True) ** 2)
        return tape.gradient(outputs, [inputs, *layer.trainable_weights])

    step = tf.function(run, jit_compile=not with_gradients)
    step()
    return step


def milliseconds(step, calls=5):
    """Returns the mean time of a call."""
    start = time.perf_counter()
    for _ in range(calls):
        outputs = step()
    for value in tf.nest.flatten(outputs):
        tf.convert_to_tensor(value).numpy()
    return (time.perf_counter() - start) / calls * 1e3


def row(name, with_gradients, shape, count):
    """Measures Keras' layer of a name and ours in so many rounds; returns a line of the table."""
    kinds = {"keras": getattr(keras.layers, name), "ours": getattr(recurrent, name)}
    steps = {label: make_step(kind, *shape, with_gradients) for label, kind in kinds.items()}
    found = rounds.interleave(steps, count, lambda label: {"ms": milliseconds(steps[label])})
    figures = rounds.figure(found, "ms", "keras")
    cells = [name, "with gradients" if with_gradients else "alone", f"{shape[0]} x {shape[1]}"]
    cells += [rounds.with_spread(figures[label], 1) for label in kinds]
    return "| " + " | ".join([*cells, rounds.with_spread(figures["ours"]["ratio"], 2)]) + " |"


def main():
    """Measures in turn and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    facts = machine.describe()
    lines = ["| layer | | rows x steps | Keras, ms | ours, ms | times Keras |", "|" + "---|" * 6]
    for name in ("GRU", "LSTM"):
        for with_gradients, shapes in ((False, CALLS), (True, TRAININGS)):
            lines += [row(name, with_gradients, shape, options.rounds) for shape in shapes]
    print(machine.sentence(facts, facts["cores"]))
    print("\n".join(["", *lines]))


if __name__ == "__main__":
    main()
