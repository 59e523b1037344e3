"""Settings that every test shares. They must be made before Keras or TensorFlow is imported."""

import contextlib
import ctypes
import gc
import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
# A test compiles what it runs, and leaves nothing with the user.
os.environ["VERBATIM_COMPILED_PROGRAMS"] = "off"
# oneDNN sums in an order of its own; without it, compiled and uncompiled code agree to the last
# digits.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
if os.environ["KERAS_BACKEND"] == "jax":
    # JAX compiles nearly every operation of these tests for its own shapes, and runs it once. Its
    # persistent cache would help, but on a CPU (0.4.34) models that train with what comes from it
    # learn nothing.
    os.environ.setdefault(
        "XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
    )

import hypothesis
import pytest

# The same examples in every run, so that a failure is never a matter of luck;
# `--hypothesis-profile=explore` looks for new ones.
hypothesis.settings.register_profile(
    "repeatable", derandomize=True, deadline=None, database=None, print_blob=True
)
hypothesis.settings.register_profile("explore", deadline=None, max_examples=1000)
hypothesis.settings.load_profile("repeatable")


# What takes longest begins first, so that no process is left alone with it at the end.
LONG_FOLDERS = ("end_to_end", "export", "serving")
LONG_FILES = ("test_tutorial.py",)
# Files that go to the process of another, whose finished pipeline they read too.
BESIDE = {"tests/end_to_end/test_kubeflow.py": "tests/end_to_end/test_walking_line.py"}


def pytest_collection_modifyitems(items):
    """Puts whole pipelines and exports before everything else."""

    def is_short(item):
        return item.path.parent.name not in LONG_FOLDERS and item.path.name not in LONG_FILES

    items.sort(key=is_short)


# All garbage is collected behind a file that took as many seconds, so that no large graph stays.
SECONDS_WORTH_A_COLLECTION = 20


@pytest.fixture(scope="module", autouse=True)
def quick_collections():
    """Spares the garbage collector what exists already, mostly modules and graphs.

    Keras collects garbage for each trial of a search, a server for each version that it retires.
    In a process with all of TFX and the graphs of other tests, one collection takes a second.
    """
    gc.freeze()
    begun = time.monotonic()
    yield
    gc.unfreeze()
    if time.monotonic() - begun > SECONDS_WORTH_A_COLLECTION:
        gc.collect()
        _return_memory()


def _return_memory():
    """Gives the system what compilers have freed, of which a process would keep gigabytes."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


@pytest.fixture(scope="module", autouse=True)
def graphs_as_they_are_written(request):
    """Runs graphs without TensorFlow's graph optimizer, but for the tests of whole pipelines.

    Most graphs of tests run once or twice, and the optimizer takes longer than they do.
    """
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow:
        whole = request.path.parent.name == "end_to_end"
        tensorflow.config.optimizer.set_experimental_options({"disable_meta_optimizer": not whole})


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Gives each process whole files, as `--dist loadfile` does, and files that share a pipeline to
    the same process.
    """
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid):
            file = super()._split_scope(nodeid)
            return BESIDE.get(file, file)

    return Scheduling(config, log)
