"""The page in a real browser, which shows it without a complaint."""

import re

import pytest

from pipeline.reporting.rows import metric_rows
from tests import browser
from tests.pipeline.reporting.html_tags import Tags

pytestmark = browser.needs_chromium


@pytest.mark.parametrize("width, height", [(1200, 2600), (390, 4200)])
def test_browser_shows_the_page_without_complaint(page_path, tmp_path, width, height):
    picture = tmp_path / "page.png"
    run = browser.run(
        tmp_path / "profile",
        *("--enable-logging=stderr", "--v=0", "--virtual-time-budget=2000"),
        *(f"--window-size={width},{height}", f"--screenshot={picture}", page_path.as_uri()),
    )
    assert run.returncode == 0, run.stderr
    assert picture.stat().st_size > 20_000
    assert not re.search(r"CONSOLE", run.stderr), run.stderr


def test_browser_builds_the_drawings_and_runs_no_injected_script(facts, page_path, tmp_path):
    run = browser.run(
        tmp_path / "profile",
        "--virtual-time-budget=2000",
        "--dump-dom",
        page_path.as_uri(),
        check=True,
    )
    # Intervals, two learning curves, quality by frequency and by length, a heat map.
    intervals = [row for row in metric_rows(facts["systems"], {}) if row.whiskers]
    assert len(intervals) >= 4 and run.stdout.count("<svg") == len(intervals) + 5
    lines = re.findall(r'<polyline class="line" points="([^"]*)"', run.stdout)
    assert len(lines) == 8 and all(len(points.split()) >= 1 for points in lines)
    assert 'id="words"' in run.stdout and 'id="slices"' in run.stdout and 'id="wins"' in run.stdout
    assert "<title>localization_en_fr" in run.stdout
    # The browser writes attributes with bare "<", so tags are counted by a parser, not by their
    # text.
    tags = Tags()
    tags.feed(run.stdout)
    assert not {tag for tag, _ in tags.tags} & {"script", "img"}


def test_a_keyboard_and_a_phone_reach_everything(page_path, tmp_path):
    """What is wider than its box scrolls, and so it can be focused;
    the page itself does not scroll sideways.
    """
    with browser.Browser(tmp_path) as page:
        for width in (1200, 390):
            page.resize(width, 800)
            page.open(page_path.as_uri())
            page.run("document.querySelectorAll('details').forEach(one => { one.open = true; })")
            assert page.run("document.documentElement.scrollWidth") <= width
            hidden = page.run(
                "[...document.querySelectorAll('body *')].filter(one => one.scrollWidth > "
                "one.clientWidth + 1 && one.clientWidth > 0"
                " && ['auto', 'scroll', 'hidden'].includes(getComputedStyle(one).overflowX) && "
                "one.tabIndex < 0).length"
            )
            assert hidden == 0
        reached = 0
        expected = page.run(
            "document.querySelectorAll('a[href], summary, [tabindex=\"0\"]').length"
        )
        page.run(
            "document.querySelectorAll('a[href], summary, [tabindex]').forEach(one => { "
            "one.reached = false; })"
        )
        for _ in range(expected):
            page.press("Tab", 9)
            reached += page.run(
                "(one => { const first = !one.reached && getComputedStyle(one).outlineStyle !== "
                "'none'; one.reached = true; return first; })"
                "(document.activeElement)"
            )
        assert reached == expected > 20 and not page.complaints
