"""Modules that are imported late."""

import importlib
import inspect
import subprocess
import sys

import pytest

from pipeline.common import late_imports


@pytest.fixture()
def package(tmp_path, monkeypatch):
    """A package `late_one`, imported late, that says when its code runs."""
    (tmp_path / "late_one").mkdir()
    (tmp_path / "late_one" / "__init__.py").write_text(
        "import late_log\nlate_log.ran.append(__name__)\nfrom late_one.part import value\n"
    )
    (tmp_path / "late_one" / "part.py").write_text("value = 7\n")
    (tmp_path / "late_log.py").write_text("ran = []\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    finder = late_imports._LateFinder(frozenset({"late_one"}))
    monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path])
    importlib.invalidate_caches()
    yield importlib.import_module("late_log").ran
    for name in ("late_one", "late_one.part", "late_log"):
        sys.modules.pop(name, None)


def test_a_module_runs_when_a_name_is_read_and_once(package):
    import late_one

    # Python reads such names of every module.
    assert late_one.__file__.endswith("__init__.py")
    assert not hasattr(late_one, "__wrapped__")
    inspect.getmodule(test_a_module_runs_when_a_name_is_read_and_once)
    assert package == []
    assert late_one.value == 7
    assert importlib.import_module("late_one") is late_one
    assert package == ["late_one"]
    with pytest.raises(AttributeError, match="nothing"):
        _ = late_one.nothing


def test_names_are_imported_from_a_late_module(package):
    from late_one import value

    assert value == 7
    assert package == ["late_one"]


def test_a_part_of_a_late_package_is_imported_without_it(package):
    from late_one.part import value

    assert value == 7
    assert package == []


def test_a_module_that_fails_says_why_each_time(package, tmp_path):
    (tmp_path / "late_one" / "__init__.py").write_text("raise ValueError('broken')\n")
    import late_one

    for _ in range(2):
        with pytest.raises(ValueError, match="broken"):
            _ = late_one.value


@pytest.mark.slow
def test_tfx_leaves_the_clients_of_clouds_aside_and_has_them_when_asked():
    pytest.importorskip("tfx")
    program = """
import sys
from pipeline.common import late_imports
late_imports.install()
import tfx.v1 as tfx
assert "google.cloud.aiplatform" not in sys.modules
assert tfx.extensions.google_cloud_ai_platform.Trainer.__module__.startswith("tfx.")
assert "google.cloud.aiplatform" in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
