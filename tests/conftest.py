"""Settings that every test shares. They must be made before Keras or TensorFlow is imported."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
# oneDNN sums in an order of its own; without it, compiled and uncompiled code agree to the last digits.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
if os.environ["KERAS_BACKEND"] == "jax":
    # JAX compiles nearly every operation of these tests for its own shapes, and runs it once.
    os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true")

import hypothesis

# The same examples in every run, so that a failure is never a matter of luck; `--hypothesis-profile=explore` looks for new ones.
hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None, database=None, print_blob=True)
hypothesis.settings.register_profile("explore", deadline=None, max_examples=1000)
hypothesis.settings.load_profile("repeatable")


# What takes longest begins first, so that no process is left alone with it at the end.
LONG_FOLDERS = ("end_to_end", "serving")


def pytest_collection_modifyitems(items):
    """Puts whole pipelines and exports before everything else."""
    items.sort(key=lambda item: item.path.parent.name not in LONG_FOLDERS)
