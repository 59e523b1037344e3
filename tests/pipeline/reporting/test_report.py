"""The report: complete, self-contained, escaped, and shown by a real browser without a complaint."""

import copy
import html.parser
import json
import math
import re

import numpy as np
import pytest

from pipeline.metrics import scoring
from pipeline.reporting import charts, report
from tests import browser

ATTACK = "<script>document.title='broken'</script><img src=x onerror=alert(1)>\"'&"


def _curves(start, end, gap, epochs=8):
    return [
        {
            "epoch": epoch,
            "seconds": 31.0 + epoch / 7,
            "loss": end + (start - end) * math.exp(-epoch / 2.2),
            "eval_loss": end
            + gap
            + (start - end) * math.exp(-epoch / 2.0)
            + 0.012 * max(0, epoch - 5) ** 2,
        }
        for epoch in range(1, epochs + 1)
    ]


def _output(text, tokens, copied_from, source_tokens):
    return {
        "text": text,
        "tokens": tokens + [""],
        "copied_from": copied_from + [-1],
        "copy_probability": [0.97 if origin >= 0 else 0.04 for origin in copied_from] + [0.0],
        "source_tokens": source_tokens,
    }


def example_facts():
    """Returns invented facts with everything that a run can have."""
    sources = ["Sign in to %s", "Delete the file %(name)s", "Open the menu"] * 20
    references = ["Se connecter à %s", "Supprimer le fichier %(name)s", "Ouvrir le menu"] * 20
    copying = [
        "Se connecter à %s",
        "Supprimer le fichier %(name)s",
        "Ouvrir menu",
    ] * 18 + references[:6]
    plain = ["Se connecter à %d", "Supprimer le fichier", "Ouvrir le menu"] * 15 + references[:15]
    names = [
        "bleu",
        "chrf",
        "placeholder_fidelity",
        "unseen_copies",
        "exact_match",
        "repetition_rate",
    ]
    keys = {"sources": sources, "training_words": {"Sign", "menu"}, "bootstrap_samples": 200}
    source_tokens = [
        "Hello",
        "￭,",
        "%(user_name)s",
        "￭!",
        "You",
        "have",
        "%d",
        "new",
        "messages",
        "￭.",
    ]
    tokens = [
        "Bonjour",
        "￭,",
        "%(user_name)s",
        "\u00a0!",
        "Vous",
        "avez",
        "%d",
        "nouveaux",
        "messages",
        "￭.",
    ]
    copied_from = [-1, -1, 2, -1, -1, -1, 6, -1, 8, -1]
    focus = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    attention = np.full((10, 10), 0.015)
    for row, column in enumerate(focus):
        attention[row, column] += 0.62
        attention[row, (column + 1) % 10] += 0.17
        attention[row, column - 1] += 0.06
    systems = []
    for name, outputs, curves, parameters in (
        ("pointer_generator", copying, _curves(6.1, 1.1, 0.22), 4_312_577),
        ("softmax", plain, _curves(6.4, 1.5, 0.41), 4_181_248),
    ):
        metrics = scoring.results_to_dict(scoring.score(names, outputs, references, **keys))
        found = scoring.score(
            ["bleu_by_length", "word_f1_by_frequency"],
            outputs,
            references,
            training_words={"Se": 3, "Supprimer": 70, "fichier": 1, "le": 4000},
            bootstrap_samples=0,
        )
        systems.append(
            {
                "name": name,
                "metrics": metrics,
                "curves": curves,
                "parameters": parameters,
                "seconds": 263.4,
                "by_length": found["bleu_by_length"].details["by_length"],
                "by_frequency": found["word_f1_by_frequency"].details["by_frequency"],
            }
        )
    comparison = scoring.paired_bootstrap(names, copying, plain, references, **keys)
    zanzibar = ["Import", "zanzibar.addon.theme", "into", "{{ site_title }}"]
    return {
        "title": "localization_en_fr: English to French, pointer_generator",
        "recipe": {
            "name": "localization_en_fr",
            "model": {"head": "pointer_generator", "hidden_size": 256},
        },
        "versions": {
            "verbatim-text": "0.1.0",
            "tfx": "1.16.0",
            "tensorflow": "2.16.2",
            "keras": "3.12.4",
        },
        "counts": {
            "read": 12873,
            "kept": 11904,
            "rejected": 969,
            "by_reason": {
                "duplicate pair": 640,
                "fuzzy entry": 301,
                "empty target": 25,
                "too long": 3,
            },
            "by_split": {"train": 10714, "eval": 596, "test": 594},
        },
        "systems": systems,
        "comparison": {name: result.p_value for name, result in comparison.items()},
        "samples": [
            {
                "source": "Open the menu",
                "reference": "Ouvrir le menu",
                "outputs": {
                    name: {"text": "Ouvrir le menu"} for name in ("pointer_generator", "softmax")
                },
            },
            {
                "source": "Import zanzibar.addon.theme into {{ site_title }}",
                "reference": "Importer zanzibar.addon.theme dans {{ site_title }}",
                "outputs": {
                    "pointer_generator": _output(
                        "Importer zanzibar.addon.theme dans {{ site_title }}",
                        ["Importer", "zanzibar.addon.theme", "dans", "{{ site_title }}"],
                        [-1, 1, -1, 3],
                        zanzibar,
                    ),
                    "softmax": _output(
                        "Importer dans [UNK]", ["Importer", "dans", "[UNK]"], [-1, -1, -1], zanzibar
                    ),
                },
            },
            {
                "source": ATTACK,
                "reference": "élève %s",
                "outputs": {
                    "pointer_generator": _output(
                        ATTACK, ATTACK.split(" "), [0] * len(ATTACK.split(" ")), [ATTACK]
                    ),
                    "softmax": {"text": "\u202eabc\ud800"},
                },
            },
        ],
        "slices": [
            {
                "slice": "domain = <b>law</b>",
                "n": 40,
                "metrics": {"bleu": 31.25},
                "last_blessed": {"bleu": 33.5},
            },
            {
                "slice": "domain = menu",
                "n": 9,
                "metrics": {"bleu": None},
                "last_blessed": {"bleu": None},
            },
        ],
        "wins": [
            {
                "source": "Import zanzibar.addon.theme",
                "reference": "Importer zanzibar.addon.theme",
                "gain": 61.24,
                "outputs": {
                    "pointer_generator": _output(
                        *(
                            "Importer zanzibar.addon.theme",
                            ["Importer", "zanzibar.addon.theme"],
                            [-1, 1],
                            zanzibar,
                        )
                    ),
                    "softmax": {"text": "Importer [UNK]"},
                },
            }
        ],
        "losses": [
            {
                "source": "Open the menu",
                "reference": "Ouvrir le menu",
                "gain": -20.5,
                "outputs": {
                    "pointer_generator": {"text": "Ouvrir menu"},
                    "softmax": {"text": "Ouvrir le menu"},
                },
            }
        ],
        "heat_maps": [
            {
                "source_tokens": source_tokens,
                "tokens": tokens,
                "attention": attention,
                "copy_probability": np.array(
                    [0.97 if origin >= 0 else 0.03 for origin in copied_from], np.float32
                ),
                "copied_from": np.array(copied_from),
            }
        ],
        "blessed": True,
        "blessing_reason": "BLEU reaches 20 and placeholder fidelity reaches 0.9 on the test "
        "split.",
        "stages": [
            {"name": "ParallelTextExampleGen", "seconds": 9.2},
            {"name": "Transform", "seconds": 31.8},
            {"name": "Trainer", "seconds": 263.4},
            {"name": "Evaluator", "seconds": 71.0},
        ],
    }


@pytest.fixture(scope="module")
def facts():
    return example_facts()


@pytest.fixture(scope="module")
def page_path(facts, tmp_path_factory):
    return report.write_report(tmp_path_factory.mktemp("run"), facts)


class _Tags(html.parser.HTMLParser):
    """Collects tags and attributes, and checks that tags close in order."""

    VOID = {"meta"}

    def __init__(self):
        super().__init__()
        self.tags, self.open = [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))


def _parse(page):
    parser = _Tags()
    parser.feed(page)
    parser.close()
    assert not parser.open
    return parser.tags


def test_page_is_self_contained_and_escaped(page_path):
    page = page_path.read_text(encoding="utf-8")
    tags = _parse(page)
    names = {tag for tag, _ in tags}
    assert not names & {"script", "img", "link", "iframe", "object"}
    for _, attributes in tags:
        assert "src" not in attributes
        assert not any(name.startswith("on") for name in attributes)
        assert attributes.get("href", "#").startswith(("#", "facts.json"))
    assert "url(" not in page and "@import" not in page
    assert page.count("&lt;script&gt;") >= 3  # source, output and its tooltip
    policy = next(attributes["content"] for tag, attributes in tags if attributes.get("http-equiv"))
    assert "default-src 'none'" in policy


def test_page_says_what_the_facts_say(facts, page_path):
    page = page_path.read_text(encoding="utf-8")
    assert "✓ Blessed" in page and facts["blessing_reason"] in page
    for system in facts["systems"]:
        assert system["name"] in page
    assert f"{facts['systems'][0]['metrics']['bleu']['value']:.2f}" in page
    assert "duplicate pair" in page and "12\u202f873" in page
    assert "model.hidden_size" in page and "1.16.0" in page
    assert "p &lt; 0.001" in page or "p = 0.0" in page
    assert "copied from source token 2, “zanzibar.addon.theme”, probability 0.97" in page
    assert "placeholder lost or invented" in page
    assert page.index("zanzibar") < page.index("Ouvrir le menu")  # differing outputs come first
    assert page.count('class="outlined"') == 3
    # Slices, with what the last blessed model reaches, and the largest wins and losses.
    assert "domain = &lt;b&gt;law&lt;/b&gt;" in page and "31.25" in page and "(33.50)" in page
    wins = page[page.index('id="wins"') : page.index('id="samples"')]
    assert (
        "+61.2" in wins
        and "-20.5" in wins
        and wins.index("Largest wins") < wins.index("Largest losses")
    )
    assert (
        'data-from="copied from source token 2, “zanzibar.addon.theme”, probability 0.97"' in wins
    )


def test_facts_are_stored_and_render_the_same_page(page_path):
    facts = report.load_facts(page_path.parents[1])
    json.dumps(facts, allow_nan=False)
    assert report.render_report(facts) == page_path.read_text(encoding="utf-8")


def test_winner_respects_direction_and_p_value(facts):
    rows = {
        row["label"]: row
        for row in report._metric_rows(facts["systems"], {"bleu": 0.2, "repetition_rate": 0.01})
    }
    assert rows["BLEU"]["winner"] is None
    systems = [
        {"name": name, "metrics": {"ter": {"value": value}}}
        for name, value in (("first", 40.0), ("second", 60.0))
    ]
    row = report._metric_rows(systems, {"ter": 0.01})[0]
    assert row["winner"] == 0 and row["cells"][0]["best"] and not row["cells"][1]["best"]
    systems[1]["metrics"]["ter"]["value"] = 40.0
    row = report._metric_rows(systems, {"ter": 0.01})[0]
    assert row["winner"] is None and not row["cells"][0]["best"]


def test_tokens_join_as_the_tokenizer_says():
    assert (
        report._join_tokens(["Hello", "￭,", "%s", "￭", "%d", "(￭", "a", "￭)", "d'￭", "un"])
        == "Hello, %s%d (a) d'un"
    )


@pytest.mark.parametrize("count, numbers", [(4, []), (6, ["1", "2", "3", "4", "5", "6"])])
def test_lines_of_many_systems_have_numbers(facts, count, numbers):
    """There are four colours, dashes and marks; lines of more systems would look alike."""
    systems = [{**facts["systems"][0], "name": f"run_{number}"} for number in range(count)]
    page = report.render_report({**facts, "systems": systems})
    chart = page[page.index("By word frequency") : page.index("By length")]
    assert re.findall(r'<text class="axis number"[^>]*>(\d+)<', chart) == numbers
    # Each of four has a mark of its own form, so that no colour is needed to tell them apart.
    groups = chart.split('<g class="lines ')[1:]
    forms = [
        set(re.findall(r'<path class="point" d="M[\d.]+ [\d.]+([^"]*)"', group)) for group in groups
    ]
    assert all(len(form) == 1 for form in forms) and len(set.union(*forms)) == min(count, 4)
    legend = re.findall(r'<span class="key k\d"></span>([^<]*)</span>', chart)
    assert legend == [
        f"{number + 1} run_{number}" if numbers else f"run_{number}" for number in range(count)
    ]


@pytest.mark.parametrize("key", [None, *report._DEFAULTS])
def test_parts_may_be_missing(facts, tmp_path, key):
    partial = {} if key is None else {name: value for name, value in facts.items() if name != key}
    _parse(report.write_report(tmp_path, partial).read_text(encoding="utf-8"))


def test_quality_by_frequency_and_length_has_a_line_for_each_system(facts):
    frequency, length = report._breakdowns(facts["systems"])
    assert [frequency["title"], length["title"]] == ["By word frequency", "By length"]
    chart = frequency["chart"]
    assert [series["name"] for series in chart["series"]] == ["pointer_generator", "softmax"]
    # Only the ranges that a reference word falls into, and a point for each that has a value.
    assert [tick["label"] for tick in chart["x_ticks"]] == ["0", "1", "3", "10-99", "1000+"]
    assert [row[0] for row in chart["rows"]] == ["0", "1", "3", "10-99", "1000+"]
    for series in chart["series"]:
        assert len(series["points"]) == 5
        assert all(
            chart["left"] < point["x"] < chart["plot_right"]
            and chart["top"] <= point["y"] <= chart["plot_bottom"]
            for point in series["points"]
        )
    by_frequency = {part["seen"]: part["f1"] for part in facts["systems"][1]["by_frequency"]}
    assert chart["rows"][1][3] == f"{by_frequency['1']:.4g}"
    assert (
        charts.category_chart([{"name": "x"}], "by_length", "words", "bleu", "reference_length")
        is None
    )


def test_several_systems_are_marked_against_the_first(facts):
    systems = [
        {"name": name, "metrics": {"ter": {"value": value}}}
        for name, value in (("a", 40.0), ("b", 60.0), ("c", 30.0))
    ]
    rows = report._metric_rows(systems, {}, {"b": {"ter": 0.01}, "c": {"ter": 0.0002}})
    assert [cell["versus"] for cell in rows[0]["cells"]] == [
        None,
        {"p_value": "= 0.010", "side": "worse"},
        {"p_value": "< 0.001", "side": "better"},
    ]
    page = report.render_report(
        {"systems": systems, "comparisons": {"b": {"ter": 0.01}, "c": {"ter": 0.2}}}
    )
    assert page.count("▼ worse") == 1 and "▲ better" not in page


def test_undefined_values_and_one_epoch(facts, tmp_path):
    facts = copy.deepcopy(facts)
    facts["systems"][0]["metrics"]["unseen_copies"] = {
        "value": float("nan"),
        "low": None,
        "high": None,
    }
    facts["systems"][0]["curves"] = facts["systems"][0]["curves"][:1]
    facts["systems"][0]["curves"][0]["eval_loss"] = float("inf")
    facts["systems"][1]["curves"] = []
    page = report.write_report(tmp_path, facts).read_text(encoding="utf-8")
    _parse(page)
    assert "n/a" in page and "nan" not in page.lower().replace("finance", "")


def test_not_blessed(facts):
    page = report.render_report(
        {**facts, "blessed": False, "blessing_reason": "BLEU is 3, below the 20 demanded."}
    )
    assert "✗ Not blessed" in page and "below the 20" in page


@pytest.mark.parametrize(
    "low, high", [(0.0, 1.0), (1.2, 6.7), (3.0, 3.0), (0.001, 0.0042), (0.0, 99999.0)]
)
def test_ticks_enclose_the_values(low, high):
    ticks = charts.ticks(low, high, 5)
    assert ticks[0] <= low and ticks[-1] >= high - 1e-9
    assert 2 <= len(ticks) <= 8


def test_errors_are_one_sentence(tmp_path):
    with pytest.raises(report.ReportError, match="There is no report in .* does not exist"):
        report.load_facts(tmp_path)
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / "facts.json").write_text("{")
    with pytest.raises(report.ReportError, match="not valid JSON"):
        report.load_facts(tmp_path)
    (tmp_path / "report" / "facts.json").write_text("[" * 100_000)
    with pytest.raises(report.ReportError, match="not valid JSON"):
        report.load_facts(tmp_path)
    (tmp_path / "report" / "facts.json").write_text("[]")
    with pytest.raises(report.ReportError, match="one JSON object"):
        report.load_facts(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(report.ReportError, match="cannot be written"):
        report.write_report(tmp_path / "file", {})
    with pytest.raises(report.ReportError, match="expected form"):
        report.write_report(tmp_path, {"systems": [{"name": "without metrics"}]})


@browser.needs_chromium
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


@browser.needs_chromium
def test_browser_builds_the_drawings_and_runs_no_injected_script(facts, page_path, tmp_path):
    run = browser.run(
        tmp_path / "profile",
        "--virtual-time-budget=2000",
        "--dump-dom",
        page_path.as_uri(),
        check=True,
    )
    # Intervals, two learning curves, quality by frequency and by length, a heat map.
    intervals = [row for row in report._metric_rows(facts["systems"], {}) if row["whiskers"]]
    assert len(intervals) >= 4 and run.stdout.count("<svg") == len(intervals) + 5
    lines = re.findall(r'<polyline class="line" points="([^"]*)"', run.stdout)
    assert len(lines) == 8 and all(len(points.split()) >= 1 for points in lines)
    assert 'id="words"' in run.stdout and 'id="slices"' in run.stdout and 'id="wins"' in run.stdout
    assert "<title>localization_en_fr" in run.stdout
    # The browser writes attributes with bare "<", so tags are counted by a parser, not by their
    # text.
    tags = _Tags()
    tags.feed(run.stdout)
    assert not {tag for tag, _ in tags.tags} & {"script", "img"}


@browser.needs_chromium
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
