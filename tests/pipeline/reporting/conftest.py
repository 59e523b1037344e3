"""Invented facts of a run, and their page."""

import pytest

from pipeline.reporting import report
from tests.pipeline.reporting.example_facts import example_facts


@pytest.fixture(scope="package")
def facts():
    return example_facts()


@pytest.fixture(scope="package")
def page_path(facts, tmp_path_factory):
    return report.write_report(tmp_path_factory.mktemp("run"), facts)
