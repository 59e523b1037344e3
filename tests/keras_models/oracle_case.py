"""A source that the tests of the heads' oracles share."""

import numpy as np

V = 6


def case(seed, length=5, padding=1, memory_size=4, state_size=3):
    """A source with a known word twice, an unknown one twice, and padding."""
    rng = np.random.default_rng(seed)
    ids = [5, V + 1, 4, V + 1, 5, V + 5, V + 6][: length - padding] + [0] * padding
    return {
        "rng": rng,
        "memory": rng.normal(size=(length, memory_size)),
        "mask": [j < length - padding for j in range(length)],
        "ids": ids,
        "state": rng.normal(size=state_size),
        "context": rng.normal(size=memory_size),
        "p_vocabulary": rng.dirichlet(np.ones(V)),
    }


def assert_distribution(p, copies, mask):
    assert np.all(p >= 0)
    np.testing.assert_allclose(p.sum(), 1, atol=1e-12)
    assert np.all(copies[~np.array(mask)] == 0)
