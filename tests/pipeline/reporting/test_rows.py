"""The rows of the headline table: who wins, and against whom."""

from pipeline.reporting.page import render_report
from pipeline.reporting.rows import Versus, metric_rows


def test_winner_respects_direction_and_p_value(facts):
    rows = {
        row.label: row
        for row in metric_rows(facts["systems"], {"bleu": 0.2, "repetition_rate": 0.01})
    }
    assert rows["BLEU"].winner is None
    systems = [
        {"name": name, "metrics": {"ter": {"value": value}}}
        for name, value in (("first", 40.0), ("second", 60.0))
    ]
    row = metric_rows(systems, {"ter": 0.01})[0]
    assert row.winner == 0 and row.cells[0].best and not row.cells[1].best
    systems[1]["metrics"]["ter"]["value"] = 40.0
    row = metric_rows(systems, {"ter": 0.01})[0]
    assert row.winner is None and not row.cells[0].best


def test_several_systems_are_marked_against_the_first(facts):
    systems = [
        {"name": name, "metrics": {"ter": {"value": value}}}
        for name, value in (("a", 40.0), ("b", 60.0), ("c", 30.0))
    ]
    rows = metric_rows(systems, {}, {"b": {"ter": 0.01}, "c": {"ter": 0.0002}})
    assert [cell.versus for cell in rows[0].cells] == [
        None,
        Versus("= 0.010", "worse"),
        Versus("< 0.001", "better"),
    ]
    page = render_report(
        {"systems": systems, "comparisons": {"b": {"ter": 0.01}, "c": {"ter": 0.2}}}
    )
    assert page.count("▼ worse") == 1 and "▲ better" not in page
