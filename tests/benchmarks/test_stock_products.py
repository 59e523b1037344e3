"""The benchmark of a step's products: those of the network, the same numbers by each library."""

import numpy as np
import pytest

from benchmarks import stock_products
from benchmarks.peers import floors
from benchmarks.peers.job import Job

JOB = Job(body="transformer", hidden=8, heads=2, layers=2, feed_forward=16, vocabulary=20)


def test_the_products_are_those_of_the_floor_without_the_states():
    products = stock_products.weight_products(JOB, batch=3)
    assert [one.name for one in products[:6]] == [one.name for one in products[6:12]]
    assert [one.name for one in products[12:]] == ["vocabulary"]
    assert all(one.rows == 3 * JOB.beam and one.times == 1 for one in products)
    floor = floors.step_products(JOB, 3, JOB.beam, 8)
    states = [one for one in floor if one.name.endswith(("scores", "context"))]
    assert floors.needs(products)["operations"] == (
        floors.needs(floor)["operations"] - floors.needs(states)["operations"]
    )


@pytest.mark.parametrize("batch", [3, 5])
def test_all_libraries_compute_the_same(batch, monkeypatch):
    monkeypatch.setattr(stock_products.panels, "SMALLEST", 0)
    products = stock_products.weight_products(JOB, batch)
    results = {name: one() for name, one in stock_products.outputs(products, 2).items()}
    stock = ["XLA", "TensorFlow's kernels", "NumPy"]
    assert list(results) == (stock if batch == 5 else [*stock, "XLA, in panels"])
    assert results["NumPy"].shape == (5 * batch, JOB.hidden) and np.any(results["NumPy"])
    for result in results.values():
        np.testing.assert_allclose(result, results["NumPy"], rtol=1e-4, atol=1e-5)


def test_a_row_has_the_share_of_the_floor():
    rates = {"operations": 1e9, "bytes": 1e9}
    products = stock_products.weight_products(JOB, batch=3)
    rows = stock_products.rows_of(JOB, 3, rates, count=1)
    for row in rows:
        assert row.labels["batch"] == "3"
        ms = row.figures["ms"].median
        floor_ms = 1e3 * floors.seconds(products, rates) * JOB.length / 3
        np.testing.assert_allclose(row.figures["floor"].median, floor_ms / ms)
