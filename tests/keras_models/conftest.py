"""The memory that JAX's programs take, kept within bounds."""

import pathlib

import pytest

from tests.keras_models.backends import TENSORFLOW, forget_programs

# Each program keeps some pages mapped, and beyond 65,530 maps (`vm.max_map_count`) JAX's compiler
# crashes.
MOST_MAPS = 15_000


def maps():
    """Returns how many memory maps this process has; where none can be read, too many."""
    path = pathlib.Path("/proc/self/maps")
    return path.read_bytes().count(b"\n") if path.exists() else MOST_MAPS


@pytest.fixture(scope="module", autouse=True)
def forget_what_was_compiled():
    """Frees what JAX has compiled before it is too much; files share it until then."""
    yield
    if not TENSORFLOW and maps() >= MOST_MAPS:
        forget_programs()
