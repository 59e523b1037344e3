"""The page of a report: self-contained, escaped, and says what the facts say."""

import copy
import re

import pytest

from pipeline.reporting.page import render_report
from pipeline.reporting.report import write_report
from tests.pipeline.reporting.html_tags import parse


def test_page_is_self_contained_and_escaped(page_path):
    page = page_path.read_text(encoding="utf-8")
    tags = parse(page)
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
    clear, unclear = (f"p = {facts['comparison'][name]:.3f}" for name in ("bleu", "chrf"))
    assert f'title="better, {clear}"' in page and f'title="better, {unclear}"' not in page
    assert page.count(unclear) >= 1
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


@pytest.mark.parametrize("count, numbers", [(4, []), (6, ["1", "2", "3", "4", "5", "6"])])
def test_lines_of_many_systems_have_numbers(facts, count, numbers):
    """There are four colours, dashes and marks; lines of more systems would look alike."""
    systems = [{**facts["systems"][0], "name": f"run_{number}"} for number in range(count)]
    page = render_report({**facts, "systems": systems})
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
    page = write_report(tmp_path, facts).read_text(encoding="utf-8")
    parse(page)
    assert "n/a" in page and "nan" not in page.lower().replace("finance", "")


def test_not_blessed(facts):
    page = render_report(
        {**facts, "blessed": False, "blessing_reason": "BLEU is 3, below the 20 demanded."}
    )
    assert "✗ Not blessed" in page and "below the 20" in page
