"""The benchmark of recurrent layers measures two layers that do the same."""

import numpy as np
import pytest

from benchmarks import recurrent


@pytest.mark.parametrize("with_gradients", [False, True])
def test_both_layers_do_the_same_work(monkeypatch, with_gradients):
    import keras
    import tensorflow as tf

    monkeypatch.setattr(recurrent, "UNITS", 3)
    monkeypatch.setattr(recurrent, "INPUTS", 2)
    shapes = {}
    for kind in (keras.layers.GRU, recurrent.recurrent.GRU):
        outputs = recurrent.make_step(kind, 4, 5, with_gradients)()
        shapes[kind.__module__] = [tuple(value.shape) for value in tf.nest.flatten(outputs)]
    first, second = shapes.values()
    assert first == second
    # Outputs alone, or the gradients of the inputs and of three weights in each direction.
    assert first == ([(4, 5, 2), *2 * [(2, 9), (3, 9), (2, 9)]] if with_gradients else [(4, 5, 6)])


def test_the_table_has_a_row_for_each_shape(monkeypatch, capsys):
    monkeypatch.setattr(recurrent, "UNITS", 3)
    monkeypatch.setattr(recurrent, "INPUTS", 2)
    # The test above compiles; here the layers run step by step, and few times.
    milliseconds = recurrent.milliseconds
    monkeypatch.setattr(recurrent, "milliseconds", lambda step: milliseconds(step, calls=1))
    monkeypatch.setattr(recurrent.tf, "function", lambda run, **_: run)
    monkeypatch.setattr(recurrent, "CALLS", ((1, 2),))
    monkeypatch.setattr(recurrent, "TRAININGS", ((2, 3),))
    monkeypatch.setattr("sys.argv", ["recurrent", "--rounds", "1"])
    recurrent.main()
    rows = [
        line.split(" | ")
        for line in capsys.readouterr().out.splitlines()
        if line.startswith(("| GRU", "| LSTM"))
    ]
    assert [(row[0][2:], *row[1:3]) for row in rows] == [
        (name, *case)
        for name in ("GRU", "LSTM")
        for case in (("alone", "1 x 2"), ("with gradients", "2 x 3"))
    ]
    assert np.all([float(row[-1].split()[0]) > 0 for row in rows])
