"""How a machine's cores are shared between batches."""

import importlib.metadata
import os

import pytest

from serving import processors

NAMES = ("TF_NUM_INTRAOP_THREADS", "VERBATIM_THREADS_PER_BATCH")


@pytest.fixture(autouse=True)
def eight_cores(monkeypatch):
    """A machine of eight cores, to which nothing was said."""
    monkeypatch.setattr(processors, "cores", lambda: 8)
    # Set first, so that what a test says is taken back after it even where the variable was not
    # there.
    for name in NAMES:
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)


def test_a_process_has_the_cores_that_it_may_use(monkeypatch):
    monkeypatch.undo()
    assert 1 <= processors.cores() <= os.cpu_count()
    if hasattr(os, "sched_getaffinity"):
        assert processors.cores() == len(os.sched_getaffinity(0))


def test_a_batch_has_all_cores_where_nothing_was_said():
    assert processors.batches_at_once() == 1
    assert not os.environ.keys() & set(NAMES)


@pytest.mark.parametrize("version", ["2.16.2", "2.21.0"])
@pytest.mark.parametrize("number, at_once", [(1, 8), (2, 4), (3, 2), (5, 1), (8, 1)])
def test_as_many_batches_as_there_are_cores_for(monkeypatch, number, at_once, version):
    monkeypatch.setattr(importlib.metadata, "version", {"tensorflow": version}.__getitem__)
    processors.compute_each_batch_on(number)
    # What newer versions compile runs in these threads alone.
    threads = number if version == "2.16.2" else 8
    assert os.environ["TF_NUM_INTRAOP_THREADS"] == str(threads)
    assert processors.batches_at_once() == at_once


@pytest.mark.parametrize("number", [-1, 0, 9])
def test_cores_that_a_machine_has_not(number):
    with pytest.raises(ValueError, match=f"1 to 8 cores of this machine; got {number}"):
        processors.compute_each_batch_on(number)
    assert not os.environ.keys() & set(NAMES)


@pytest.mark.parametrize("given, at_once", [("", 1), ("0", 1), ("many", 1), ("4", 2), ("16", 1)])
def test_what_a_user_has_set_stands(monkeypatch, given, at_once):
    monkeypatch.setenv("TF_NUM_INTRAOP_THREADS", given)
    processors.prefer_batches_side_by_side()
    assert os.environ["TF_NUM_INTRAOP_THREADS"] == given
    assert processors.batches_at_once() == at_once


def test_many_batches_have_a_core_each():
    processors.prefer_batches_side_by_side()
    assert processors.batches_at_once() == 8
