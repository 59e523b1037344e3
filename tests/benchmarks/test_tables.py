"""Tables of pages: they are made of the result files, and the committed ones are up to date."""

import dataclasses

import pytest

from benchmarks.campaign import plan as plans
from benchmarks.campaign.plan import Column, Picture, Plan, Row, Table
from benchmarks.records import record
from benchmarks.records.record import (
    Machine,
    MeasuredRow,
    Origin,
    RowRecord,
    RunRecord,
    Spread,
    TableRecord,
    TestRecord,
    Value,
)
from benchmarks.tables import __main__ as command_line
from benchmarks.tables import cells, pages
from benchmarks.tables.tables import Tables

ORIGIN = Origin(
    "any",
    "abc123",
    "2026-11-26",
    Machine("AMD EPYC 7B13 64-Core Processor", 1, 8.0),
    {"python": "3.10", "keras": "3.12"},
)
PLAN = Table(
    "geo",
    source="Gu et al. 2016, table 3",
    split="development",
    paper_split="test",
    recipe="geo880",
    data="geo880",
    metrics=("exact_match",),
    against="none",
    rows=(
        Row("none", label="no copying", paper={"exact_match": 74.6}),
        Row("copy", paper={"exact_match": 85.0}),
        Row("spans", note="too slow"),
    ),
)


def row(name, *values, converged=True, tests=()):
    runs = [
        RunRecord(
            ORIGIN,
            seed,
            100,
            60,
            10,
            converged,
            4.4,
            9,
            {"exact_match": Value(value, value - 0.1, value + 0.1, "share")},
            [],
        )
        for seed, value in enumerate(values, 1)
    ]
    return RowRecord(name, runs, list(tests))


def tables(tmp_path, *records, summaries="", plan=PLAN):
    for one in records:
        record.write(one, tmp_path)
    (tmp_path / "summaries.toml").write_text(summaries)
    speed = Table("speed", command=("x",), columns=(Column("what"), Column("ms", spread=True)))
    return Tables([Plan("any", (plan, speed))], tmp_path, tmp_path / "summaries.toml")


def lines_of(text):
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("| ")
    ]


def test_a_table_shows_ours_beside_the_documents(tmp_path):
    test = TestRecord("exact_match", "none", 0.1, 0.0, 0.2, 0.0009, "bs")
    written = TableRecord("geo", [row("none", 0.5), row("copy", 0.6, 0.7, tests=[test])])
    text = tables(tmp_path, written).markdown("geo")
    head, none, copy, spans = lines_of(text)
    assert head[:4] == [
        "",
        "Exact match, %",
        "Exact match, %, published (test)",
        "p against no copying",
    ]
    assert none == ["no copying", "50.0 [40.0, 60.0]", "74.6", "–", "1", "60", "yes", "4", ""]
    assert copy == ["copy", "65.0 ± 7.1", "85.0", "< 0.002", "2", "60", "yes", "4", ""]
    assert spans[-1] == "too slow" and spans[1] == "–"
    assert "Split: development, 100 pairs. Document: Gu et al. 2016, table 3." in text
    assert "AMD EPYC 7B13, 1 core; Python 3.10, Keras 3.12. Commit abc123, 2026-11-26." in text
    assert "python -m benchmarks.campaign any --data data --only geo" in text


def test_what_is_not_measured_is_said(tmp_path):
    text = tables(tmp_path).markdown("geo")
    assert lines_of(text)[1] == ["no copying", "74.6", "not measured yet"]
    assert "Not measured yet." in text
    assert tables(tmp_path).markdown("speed").startswith("Not measured yet.")


@pytest.mark.parametrize(
    "answers, shown",
    [((True, True), "yes"), ((True, None), "not known"), ((None, False, True), "no")],
)
def test_a_row_has_converged_if_all_its_trainings_have(answers, shown):
    assert cells.converged([row("any", 0.5, converged=one).runs[0] for one in answers]) == shown


def test_a_transposed_table_has_a_row_for_each_metric(tmp_path):
    plan = dataclasses.replace(PLAN, transposed=True, rows=PLAN.rows[:2])
    written = TableRecord("geo", [row("none", 0.5), row("copy", 0.6)])
    head, line = lines_of(tables(tmp_path, written, plan=plan).markdown("geo"))
    assert head == ["", "no copying", "copy"]
    assert line == ["Exact match, %", "50.0 [40.0, 60.0]", "60.0 [50.0, 70.0]"]


def test_a_table_of_speed(tmp_path):
    written = TableRecord(
        "speed",
        measured=[
            MeasuredRow({"what": "ours"}, {"ms": Spread(2.0, 1.0, 3000.0)}),
            MeasuredRow({"what": "theirs"}, {"ms": None}),
        ],
        origin=ORIGIN,
        rounds=3,
    )
    text = tables(tmp_path, written).markdown("speed")
    assert lines_of(text) == [["what", "ms"], ["ours", "2.0 (1.0 to 3,000.0)"], ["theirs", ""]]
    assert "Median of 3 rounds (smallest to largest)." in text


def test_the_newest_stack_comes_first_and_the_older_below_it(tmp_path):
    for tensorflow, ms in (("2.16.2", 2.0), ("2.21.0", 1.0)):
        rows = [MeasuredRow({"what": "ours"}, {"ms": Spread(ms, ms, ms)})]
        stack = {"python": "3", "tensorflow": tensorflow}
        origin = dataclasses.replace(ORIGIN, stack=stack)
        record.write_by_stack(
            TableRecord(
                "speed", measured=rows, origin=origin, notes=[f"Left out on {tensorflow}."]
            ),
            tmp_path,
        )
    speed = Table(
        "speed",
        command=("x",),
        by_stack=True,
        columns=(Column("what"), Column("ms", digits=1)),
        picture=Picture(figures=("ms",), label="what"),
    )
    (tmp_path / "summaries.toml").write_text("")
    known = Tables([Plan("any", (speed,))], tmp_path, tmp_path / "summaries.toml")
    text = known.markdown("speed")
    assert lines_of(text) == [["what", "ms"], ["ours", "1.0"], ["what", "ms"], ["ours", "2.0"]]
    newest, older = text.split("The same on TensorFlow 2.16:")
    for part, tensorflow in ((newest, "2.21"), (older, "2.16")):
        assert f"Left out on {tensorflow}." in part and f"TensorFlow {tensorflow}" in part
        assert f"`benchmarks/results/speed-tensorflow-{tensorflow}.json`" in part
        assert "AMD EPYC 7B13, 1 core" in part
    # The picture is of the newest, and beside it.
    assert "pictures/speed.svg" in newest and "pictures/speed.svg" not in older
    assert known.picture("speed") and ">2.00<" not in known.picture("speed")


SUMMARY = """
[[summaries]]
name = "short"
titles = ["corpus", "without", "with"]
[[summaries.lines]]
label = "GeoQuery"
table = "geo"
metric = "exact_match"
without = "none"
with = "copy"
[[summaries.lines]]
label = "Spans"
table = "geo"
metric = "exact_match"
without = "none"
with = "spans"
"""


def test_a_summary_shows_what_is_measured(tmp_path):
    written = TableRecord("geo", [row("none", 0.5), row("copy", 0.6, converged=False)])
    text = tables(tmp_path, written, summaries=SUMMARY).markdown("short")
    head, line = lines_of(text)
    shown = dict(zip(head, line))
    assert shown["without"] == "50.0 [40.0, 60.0]" and shown["with"] == "60.0 [50.0, 70.0]"
    assert shown["split"] == "development" and shown["published"] == "85 (test)"
    assert shown["converged"] == "no"
    assert "Not measured yet: Spans." in text
    wrong = tables(tmp_path, written, summaries=SUMMARY.replace('"spans"', '"nothing"'))
    with pytest.raises(plans.PlanError, match="a row nothing"):
        wrong.markdown("short")


def test_a_summary_shows_the_published_figure_without_copying_where_there_is_no_other(tmp_path):
    written = TableRecord("geo", [row("none", 0.5), row("spans", 0.6)])
    head, line = lines_of(tables(tmp_path, written, summaries=SUMMARY).markdown("short"))
    assert dict(zip(head, line))["published"] == "74.6 (without copying, test)"


def test_markers():
    page = "a\n<!-- table: x -->\nold\n<!-- /table -->\nb\n<!-- table: y -->\n<!-- /table -->\n"
    filled = pages.filled(page, lambda name: f"| {name} |\n")
    assert "old" not in filled and "| x |" in filled and "| y |" in filled and "\nb\n" in filled
    assert pages.filled(filled, lambda name: f"| {name} |\n") == filled
    with pytest.raises(pages.PageError, match="the table x has no"):
        pages.filled("<!-- table: x -->\nold\n", lambda name: name)
    with pytest.raises(pages.PageError, match="there is no table x"):
        pages.filled(page, {}.__getitem__)


def test_the_pages_are_up_to_date():
    """`python -m benchmarks.tables` writes them."""
    changed = command_line.changed_files(Tables(plans.load_all()))
    assert not changed, [str(path.relative_to(pages.ROOT)) for path in changed]


def test_every_result_file_is_of_a_table_and_every_table_is_on_a_page():
    known = Tables(plans.load_all())
    for path in record.RESULTS.glob("*.json"):
        one = record.read_file(path)
        assert one.name in known.plans, path
        by_stack = known.plans[one.name].by_stack
        assert path.stem == (record.stem_by_stack(one) if by_stack else one.name)
    shown = {
        name for page in pages.pages() for name in pages.tables_of(page.read_text(encoding="utf-8"))
    }
    missing = (set(known.plans) | set(known.summaries)) - shown
    assert not missing, missing
