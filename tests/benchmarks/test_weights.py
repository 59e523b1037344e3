"""The benchmark of smaller weights measures products that give the same, up to the bits that are
left away.
"""

import numpy as np
import pytest

from benchmarks import weights


def test_all_types_give_the_product():
    import tensorflow as tf

    rng = np.random.default_rng(1)
    left, right = (rng.normal(size=shape).astype("float32") for shape in ((3, 40), (40, 5)))
    found = {
        name: one(tf.constant(left)).numpy()
        for name, one in weights.products(tf.constant(right)).items()
    }
    assert list(found) == ["float32", "bfloat16", "int8", "int8 by int8"]
    np.testing.assert_allclose(found["float32"], left @ right, rtol=1e-5, atol=1e-5)
    # 8 bits of a bfloat16's 40 products, and 1/127 of the largest weight and activation, add up to
    # this.
    for name, tolerance in (("bfloat16", 0.05), ("int8", 0.1), ("int8 by int8", 0.2)):
        np.testing.assert_allclose(found[name], left @ right, atol=tolerance)
        assert np.any(found[name] != found["float32"]), name


def test_the_table_has_a_row_for_each_type_and_shape(monkeypatch, capsys):
    monkeypatch.setattr(weights, "SHAPES", {"small": (2, 3, 4), "other": (1, 3, 4)})
    monkeypatch.setattr("sys.argv", ["weights", "--rounds", "1"])
    weights.main()
    rows = [
        line.split(" | ")
        for line in capsys.readouterr().out.splitlines()
        if line.startswith(("| small", "| other"))
    ]
    assert [(row[0][2:], row[1]) for row in rows[::4]] == [
        ("small", "2 x 3 x 4"),
        ("other", "1 x 3 x 4"),
    ]
    assert float(rows[0][-1].split()[0]) == pytest.approx(1) and len(rows) == 8
