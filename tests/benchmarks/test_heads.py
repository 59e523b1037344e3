"""The table of heads: its test uses all seeds, and no command overwrites another's run."""

import argparse
import json
import pathlib
import re

from benchmarks import heads
from pipeline.recipes import loading

RESULTS = pathlib.Path(heads.__file__).parents[1] / "docs" / "results" / "quality.md"
REFERENCES = [f"open file {number}" for number in range(40)]


def cell(right, sources=REFERENCES):
    records = [
        {"source": source, "reference": text, "text": text if place < right else "no"}
        for place, (source, text) in enumerate(zip(sources, REFERENCES))
    ]
    return heads.Cell({}, records, "")


def test_the_p_value_is_of_all_seeds():
    recipe = loading.load_recipe("geo880")

    def p_value(ours, theirs):
        return heads.p_value(recipe, "exact_match", ours, theirs)

    # The first seeds alone differ clearly.
    assert p_value([cell(38)], [cell(15)]) < 0.01
    assert p_value([cell(38), cell(15)], [cell(15), cell(38)]) > 0.5
    assert p_value([cell(38), cell(37)], [cell(15), cell(16)]) < 0.01
    other = cell(15, [f"{text}!" for text in REFERENCES])
    assert p_value([cell(38)], [other]) is None


def test_several_seeds_have_mean_and_deviation():
    values = [{"value": 10.0}, {"value": 12.0}, {"value": 14.0}]
    assert heads.measured(values) == "12 ± 2 (seeds: 10 to 14)"
    assert heads.measured([{"value": 0.5, "low": 0.4, "high": 0.6}]) == "0.5 [0.4, 0.6]"


def test_each_command_shown_has_a_folder_of_its_own(tmp_path):
    options = argparse.Namespace(recipe="geo880", output=tmp_path, data="data", set=[])
    (tmp_path / "results").mkdir()
    commands = set()
    for name, seed in (("none", 1), ("attention", 1), ("attention", 2)):
        (tmp_path / "results" / f"{name}-{seed}.json").write_text(json.dumps({}))
        commands.add(re.search(r"--output (\S+)", heads.run(options, name, seed).command)[1])
    assert len(commands) == 3
    written = re.findall(
        r"^- [^:`]+: `verbatim run .*?--output (\S+)", RESULTS.read_text(encoding="utf-8"), re.M
    )
    assert len(written) == len(set(written)) > 40
