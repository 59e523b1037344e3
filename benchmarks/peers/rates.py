"""Measures the machine's rates, in a process of its own: see `floors`."""

import statistics
import time

from benchmarks.peers import processes
from benchmarks.peers.floors import Product, ProductRate

# The job's own vocabulary product at batch 32, a square one, and a matrix far larger than any cache
# times a vector.
_SHAPES = {"job": (160, 512, 8000), "square": (1024, 1024, 1024), "memory": (1, 8192, 8192)}


def measure(repeats: int = 15) -> processes.Answer:
    """Measures the matrix products of NumPy's library and of TensorFlow's, in this process.

    Returns:
        `floors.Rates`.
    """
    import numpy as np
    import tensorflow as tf

    measured: list[ProductRate] = []
    best = {"operations": 0.0, "bytes": 0.0}
    for name, (rows, inner, columns) in _SHAPES.items():
        product = Product(name, rows, inner, columns)
        rng = np.random.default_rng(1)
        left, right = (
            rng.random(shape, dtype=np.float32) for shape in ((rows, inner), (inner, columns))
        )
        factors = tf.constant(left), tf.constant(right)
        libraries = {
            "numpy": lambda: np.matmul(left, right),  # noqa: B023 (called within this turn)
            "tensorflow": lambda: tf.matmul(*factors).numpy(),  # noqa: B023
        }
        for library, multiply in libraries.items():
            multiply()
            times = []
            for _ in range(repeats):
                started = time.perf_counter()
                multiply()
                times.append(time.perf_counter() - started)
            kind = "bytes" if name == "memory" else "operations"
            amount = getattr(product, kind)
            best[kind] = max(best[kind], amount / min(times))
            measured.append(
                {
                    "library": library,
                    "shape": [rows, inner, columns],
                    "kind": kind,
                    "median": amount / statistics.median(times),
                    "best": amount / min(times),
                }
            )
    return {**best, "measured": measured}


if __name__ == "__main__":
    processes.serve({"measure": measure})
