"""A report in its folder: facts that come back, whole or not at all."""

import json

import pytest

from pipeline.reporting import report
from pipeline.reporting.facts import DEFAULTS
from pipeline.reporting.page import ReportError, render_report
from tests.pipeline.reporting.html_tags import parse


def test_facts_are_stored_and_render_the_same_page(page_path):
    facts = report.load_facts(page_path.parents[1])
    json.dumps(facts, allow_nan=False)
    assert render_report(facts) == page_path.read_text(encoding="utf-8")


@pytest.mark.parametrize("key", [None, *DEFAULTS])
def test_parts_may_be_missing(facts, tmp_path, key):
    partial = {} if key is None else {name: value for name, value in facts.items() if name != key}
    parse(report.write_report(tmp_path, partial).read_text(encoding="utf-8"))


def test_errors_are_one_sentence(tmp_path):
    with pytest.raises(ReportError, match="There is no report in .* does not exist"):
        report.load_facts(tmp_path)
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / "facts.json").write_text("{")
    with pytest.raises(ReportError, match="not valid JSON"):
        report.load_facts(tmp_path)
    (tmp_path / "report" / "facts.json").write_text("[" * 100_000)
    with pytest.raises(ReportError, match="not valid JSON"):
        report.load_facts(tmp_path)
    (tmp_path / "report" / "facts.json").write_text("[]")
    with pytest.raises(ReportError, match="one JSON object"):
        report.load_facts(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(ReportError, match="cannot be written"):
        report.write_report(tmp_path / "file", {})
    with pytest.raises(ReportError, match="expected form"):
        report.write_report(tmp_path, {"systems": [{"name": "without metrics"}]})
