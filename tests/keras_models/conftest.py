"""What the tests of layers and models share on JAX."""

import gc

import pytest

from tests.keras_models.backends import TENSORFLOW


@pytest.fixture(scope="module", autouse=True)
def forget_what_was_compiled():
    """Frees what JAX compiled for a file:
    each program keeps some pages mapped, and beyond 65,530 of them (`vm.max_map_count`) its
    compiler crashes.
    """
    yield
    if not TENSORFLOW:
        import jax

        jax.clear_caches()
        gc.collect()
