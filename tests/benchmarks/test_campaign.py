"""Campaigns: every run is done once, whatever happens to others or to the campaign."""

import itertools
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from benchmarks.campaign import __main__ as command_line
from benchmarks.campaign import plan as plans
from benchmarks.campaign.jobs import Folders, jobs_of
from benchmarks.campaign.queue import Limits
from benchmarks.records import record
from pipeline.recipes.loading import load_recipe
from tests.benchmarks import campaign_lists

ROOT = pathlib.Path(__file__).parents[2]


def run(folder, path, *more):
    return command_line.main(
        [path, "--output", str(folder / "runs"), "--results", str(folder / "results"), *more]
    )


def starts(folder):
    return {path.parent.name: len(path.read_text()) for path in folder.glob("runs/*/*/starts")}


def test_results_are_rows_with_every_seed_and_a_test(tmp_path):
    path = campaign_lists.write(tmp_path, {"base": "10", "good": "30"}, 'against = "base"\n')
    assert run(tmp_path, path, "--at-a-time", "2") == 0
    table = record.read("tiny", tmp_path / "results")
    assert [row.name for row in table.rows] == ["base", "good"]
    good = table.row("good")
    assert [run.seed for run in good.runs] == [1, 2]
    assert [run.metrics["exact_match"].value for run in good.runs] == [31 / 40, 32 / 40]
    first = good.runs[0]
    assert (first.epochs, first.updates, first.minutes, first.pairs) == (6, 50, 2.0, 40)
    assert first.converged and first.eval_losses[0] == 3
    assert first.origin.stack == {"keras": "3.12"} and first.origin.machine.cores == 1
    # What is committed names no folder of this machine but the program's own.
    assert "--output" not in first.origin.command and str(tmp_path / "runs") not in json.dumps(
        first.origin.command
    )
    [test] = good.tests
    assert test.against == "base" and test.p_value < 0.01 and test.difference == pytest.approx(0.5)
    assert not table.row("base").tests


def test_rows_that_are_run_one_by_one_are_tested(tmp_path):
    path = campaign_lists.write(tmp_path, {"base": "10", "good": "30"}, 'against = "base"\n')
    for name in ("tiny/good", "tiny/base"):
        assert run(tmp_path, path, "--only", name) == 0
    good = record.read("tiny", tmp_path / "results").row("good")
    assert [test.against for test in good.tests] == ["base"]


def test_rows_of_two_tables_that_are_alike_stay_apart(tmp_path):
    path = campaign_lists.write(tmp_path, {"same": "10"})
    text = pathlib.Path(path).read_text()
    table = text[text.index("[[tables]]") :]
    pathlib.Path(path).write_text(text + table.replace('name = "tiny"', 'name = "other"'))
    assert run(tmp_path, path) == 0
    for name in ("tiny", "other"):
        [row] = record.read(name, tmp_path / "results").rows
        assert [f"/{name}/" in run.origin.command for run in row.runs] == [True, True]


def test_a_run_gets_cores_and_threads_of_its_own(tmp_path):
    path = campaign_lists.write(tmp_path, {"base": "10"})
    run(tmp_path, path, "--cores", str(max(os.sched_getaffinity(0))), "--nice", "3")
    for job in campaign_lists.jobs(tmp_path, path):
        facts = json.loads(job.facts.read_text())
        assert facts["threads"] == "1" and facts["affinity"] == [max(os.sched_getaffinity(0))]
        assert facts["nice"] >= 3
    limits = Limits(3, (4, 5))
    assert [limits.cores_of(slot) for slot in range(3)] == [(4,), (5,), (4,)]
    assert Limits(2, (4, 5, 6, 7), cores_each=2).cores_of(1) == (6, 7)
    assert Limits(1, (4, 5), cores_each=3).cores_of(0) == (4, 5)


def test_a_failed_run_stops_no_other_and_is_tried_again(tmp_path, capsys):
    path = campaign_lists.write(tmp_path, {"bad": "fail", "empty": "silent", "good": "30"})
    assert run(tmp_path, path) == 1
    said = capsys.readouterr().out
    assert "tiny/bad-1: FAILED: It ended with status 1: Something is wrong." in said
    assert "tiny/empty-1: FAILED: It wrote no result" in said
    assert [row.name for row in record.read("tiny", tmp_path / "results").rows] == ["good"]
    campaign_lists.write(tmp_path, {"bad": "fail", "empty": "silent", "good": "30"})
    run(tmp_path, path)
    assert starts(tmp_path) == {
        **{f"{row}-{seed}": 2 for row in ("bad", "empty") for seed in (1, 2)},
        **{f"good-{seed}": 1 for seed in (1, 2)},
    }


def test_the_first_seed_of_every_row_comes_first(tmp_path):
    path = campaign_lists.write(tmp_path, {"one": "1", "two": "2"})
    names = [job.name for job in campaign_lists.jobs(tmp_path, path)]
    assert names == ["tiny/one-1", "tiny/two-1", "tiny/one-2", "tiny/two-2"]


def test_status(tmp_path, capsys):
    path = campaign_lists.write(tmp_path, {"bad": "fail", "good": "30"})
    run(tmp_path, path, "--only", "tiny/bad,tiny/good-1")
    capsys.readouterr()
    assert run(tmp_path, path, "--status") == 0
    *lines, numbers = capsys.readouterr().out.splitlines()
    states = {line.split()[0]: line.split()[1] for line in lines}
    assert states == {
        "tiny/bad-1": "failed",
        "tiny/good-1": "done",
        "tiny/bad-2": "failed",
        "tiny/good-2": "waiting",
    }
    assert "Something is wrong." in lines[0]
    assert numbers == "1 done, 2 failed, 1 waiting"


def test_a_changed_row_is_run_again(tmp_path):
    path = campaign_lists.write(tmp_path, {"good": "20"})
    run(tmp_path, path)
    campaign_lists.write(tmp_path, {"good": "30"})
    run(tmp_path, path)
    [row] = record.read("tiny", tmp_path / "results").rows
    assert [one.metrics["exact_match"].value for one in row.runs] == [31 / 40, 32 / 40]


def test_figures_of_more_seeds_are_kept(tmp_path):
    path = campaign_lists.write(tmp_path, {"good": "20"})
    run(tmp_path, path)
    again = tmp_path / "elsewhere"
    command_line.main(
        [path, "--output", str(again), "--results", str(tmp_path / "results"), "--only"]
        + ["tiny/good-1"]
    )
    [row] = record.read("tiny", tmp_path / "results").rows
    assert len(row.runs) == 2


def test_seeds_that_were_run_elsewhere_stay_beside_new_ones(tmp_path):
    results = ["--results", str(tmp_path / "results")]

    def run_seed(path, seed):
        output = ["--output", str(tmp_path / f"runs-{seed}")]
        assert command_line.main([path, *output, *results, "--only", f"tiny/good-{seed}"]) == 0
        [row] = record.read("tiny", tmp_path / "results").rows
        return {run.seed: run.metrics["exact_match"].value for run in row.runs}

    path = campaign_lists.write(tmp_path, {"good": "20"})
    assert run_seed(path, 2) == {2: 22 / 40}
    assert run_seed(path, 1) == {1: 21 / 40, 2: 22 / 40}
    # A seed of the row as it was before is no seed of the row as it is now.
    path = campaign_lists.write(tmp_path, {"good": "30"})
    assert run_seed(path, 1) == {1: 31 / 40}
    assert run_seed(path, 2) == {1: 31 / 40, 2: 32 / 40}


def test_a_seed_that_the_file_lacks_is_written_when_the_campaign_goes_on(tmp_path):
    path = campaign_lists.write(tmp_path, {"good": "20"})
    words = [path, "--output", str(tmp_path / "elsewhere")]
    for folder in ("results", "other results"):
        written = ["--results", str(tmp_path / folder)]
        assert command_line.main([*words, *written, "--only", "tiny/good-1"]) == 0
    more = [path, "--output", str(tmp_path / "runs"), "--only", "tiny/good-2"]
    assert command_line.main([*more, "--results", str(tmp_path / "other results")]) == 0
    # That seed is done; the file of the first folder has never seen it.
    assert command_line.main([*more, "--results", str(tmp_path / "results")]) == 0
    [row] = record.read("tiny", tmp_path / "results").rows
    assert [run.seed for run in row.runs] == [1, 2]


@pytest.mark.parametrize("second", ["runs", "elsewhere"])
def test_seeds_of_another_recipe_are_left_out(tmp_path, capsys, second):
    path = campaign_lists.write(tmp_path, {"good": "20"})
    assert run(tmp_path, path, "--only", "tiny/good-1") == 0
    recipe = tmp_path / "recipe.json"
    tree = json.loads(recipe.read_text())
    tree["model"]["dropout"] = 0.45
    recipe.write_text(json.dumps(tree))

    def seeds(output):
        words = [path, "--output", str(tmp_path / output), "--results", str(tmp_path / "results")]
        assert command_line.main([*words, "--only", "tiny/good-2"]) == 0
        [row] = record.read("tiny", tmp_path / "results").rows
        return [run.seed for run in row.runs]

    assert seeds(second) == [2]
    assert "tiny/good-1: left out, for its recipe was another." in capsys.readouterr().out
    # The first seed's folder is still there.
    assert run(tmp_path, path, "--only", "tiny/good-1") == 0
    [row] = record.read("tiny", tmp_path / "results").rows
    assert [run.seed for run in row.runs] == [2]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["told to end", "killed"])
def test_a_campaign_that_ends_ends_its_runs_and_goes_on_later(tmp_path, number):
    path = campaign_lists.write(tmp_path, {"good": "20", "slow": "wait"})
    words = ["-m", "benchmarks.campaign", path, "--output", str(tmp_path / "runs")]
    words += ["--results", str(tmp_path / "results"), "--only", "tiny/good-1,tiny/slow-1"]
    process = subprocess.Popen([sys.executable, *words], cwd=ROOT, stdout=subprocess.DEVNULL)
    good, slow = campaign_lists.jobs(tmp_path, path)[:2]
    deadline = time.monotonic() + 60
    while not (slow.folder / "starts").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    pid = slow.read_status().pid
    process.send_signal(number)
    process.wait(30)
    while slow.read_status().seen == "running" and time.monotonic() < deadline:
        time.sleep(0.05)
    assert slow.read_status().seen == "interrupted"
    assert not pathlib.Path(f"/proc/{pid}").exists()
    assert good.read_status().state == "done"
    campaign_lists.write(tmp_path, {"good": "20", "slow": "15"})
    assert run(tmp_path, path, "--only", "tiny/good-1,tiny/slow-1") == 0
    assert starts(tmp_path) == {"good-1": 1, "slow-1": 2}


def test_a_row_that_shares_waits_for_the_folder(tmp_path):
    path = campaign_lists.write(tmp_path, {"base": "20", "other": "20"})
    text = pathlib.Path(path).read_text()
    pathlib.Path(path).write_text(text + 'shares = "base"\n')
    jobs = campaign_lists.jobs(tmp_path, path)
    assert jobs[1].folder == jobs[0].folder and jobs[1].facts != jobs[0].facts
    assert run(tmp_path, path, "--at-a-time", "4") == 0
    assert starts(tmp_path) == {"base-1": 2, "base-2": 2}


def test_recipes_become_commands(tmp_path):
    path = tmp_path / "any.toml"
    path.write_text(
        'recipe = "geo880"\ndata = "geo880"\nset = ["training.epochs=3"]\n'
        '[[tables]]\nname = "geo"\nseeds = [7]\n'
        '[[tables.rows]]\nname = "none"\nvariant = "none"\nset = ["model.hidden_size=8"]\n'
    )
    [job] = jobs_of(plans.load(str(path)), Folders("/corpora", tmp_path, tmp_path))
    assert job.shown_command() == (
        "verbatim run geo880 --output runs/geo/none-7 --data data/geo880 "
        "--set training.epochs=3 --set model.head=softmax --set model.attention=none "
        "--set model.coverage=false --set model.hidden_size=8 --set training.seed=7 "
        "--set baseline.head= --json runs/geo/none-7.json"
    )
    assert "/corpora/geo880" in job.command() and str(job.folder) in job.command()


@pytest.mark.parametrize(
    "text, said",
    [
        ("", "has no [[tables]]"),
        ('[[tables]]\nname = "a"\nsplitt = "b"', "no key splitt"),
        ('[[tables]]\nname = "a"\nseeds = 3', "seeds is 3"),
        ('[[tables]]\nname = "../a"\ncommand = ["x"]', "no good file name"),
        ('[[tables]]\nname = "a"\n[[tables.rows]]\nname = "b"', "neither recipe nor command"),
        ('[[tables]]\nname = "a"\ncommand = ["{here}"]', "{here} stands for nothing"),
        ('[[tables]]\nname = "a"\ncommand = ["x"]\nagainst = "b"', "no row b"),
        ('[[tables]]\nname = "a"\nrecipe = "geo880"', "neither rows nor a command"),
        (
            '[[tables]]\nname = "a"\nrecipe = "r"\nby_stack = true\n[[tables.rows]]\nname = "b"',
            "by_stack is for a table that a command measures",
        ),
        ("[[tables]]\nseeds = [1]", "its name is missing"),
        ("[[tables", "not valid TOML"),
    ],
)
def test_a_wrong_list_is_one_sentence(tmp_path, capsys, text, said):
    path = tmp_path / "any.toml"
    path.write_text(text)
    assert run(tmp_path, str(path)) == 1
    assert said in capsys.readouterr().err


def test_a_table_of_speed_is_kept_for_each_stack(tmp_path):
    machine = record.Machine("Any CPU", 2, 8.0)
    path = tmp_path / "fast.toml"
    path.write_text(
        "[[tables]]\nname = 'fast'\nby_stack = true\n"
        f"command = ['cp', '{tmp_path}/measured.json', '{{json}}']\n"
    )
    for tensorflow in ("2.16.2", "2.21.0"):
        origin = record.Origin("any", "abc", "2026-11-27", machine, {"tensorflow": tensorflow})
        rows = [record.MeasuredRow({"program": "ours"}, {"ms": record.Spread(1.0, 1.0, 1.0)})]
        record.write_file(
            record.TableRecord("", measured=rows, origin=origin), tmp_path / "measured.json"
        )
        # Each stack has a checkout of its own, so a folder of its own for the runs.
        more = ["--output", str(tmp_path / tensorflow)]
        assert run(tmp_path, str(path), *more) == 0
    kept = record.read_by_stack("fast", tmp_path / "results")
    assert [one.origin.stack["tensorflow"] for one in kept] == ["2.21.0", "2.16.2"]
    assert {one.name for one in kept} == {"fast"}


def test_a_campaign_that_is_not_there(capsys, tmp_path):
    assert run(tmp_path, "nothing") == 1
    assert "cannot be read: No such file" in capsys.readouterr().err


def test_the_committed_lists_can_be_run():
    assert all(jobs_of(plan, Folders("data", ROOT, ROOT)) for plan in plans.load_all())


def test_the_recipe_of_every_committed_row_can_be_run():
    """A recipe that changes does not leave behind a row that no longer fits it."""
    commands = [
        job.command()
        for plan in plans.load_all()
        for job in jobs_of(plan, Folders("data", ROOT, ROOT))
    ]
    recipes = [words[words.index("run") + 1 :] for words in commands if "run" in words[:4]]
    assert len(recipes) > 100
    for name, *words in recipes:
        load_recipe(name, [after for word, after in itertools.pairwise(words) if word == "--set"])
