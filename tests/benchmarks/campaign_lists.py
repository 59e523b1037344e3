"""A tiny campaign, whose runs are a program that writes a run's facts at once."""

import json
import pathlib
import textwrap

from benchmarks.campaign import plan as plans
from benchmarks.campaign.jobs import Folders, jobs_of
from pipeline.recipes import loading

#: Leaves what `verbatim run --json` leaves: seed and rightness stand in its arguments.
FAKE = """
import json, os, pathlib, sys, time
recipe, outputs, written, seed, right = sys.argv[1:6]
folder = pathlib.Path(outputs)
(folder / "outputs").mkdir(parents=True, exist_ok=True)
with open(folder / "starts", "a") as file:
    file.write("x")
print("training: 1 of 2 updates", flush=True)
if right == "fail":
    sys.exit("Something is wrong.")
if right == "silent":
    sys.exit(0)
if right == "wait":
    time.sleep(600)
right = int(right) + int(seed)
records = [
    {"source": f"open {n}", "reference": f"file {n}", "text": f"file {n}" if n < right else "no"}
    for n in range(40)
]
path = folder / "outputs" / "softmax.jsonl"
path.write_text("".join(json.dumps(record) + "\\n" for record in records))
facts = {
    "recipe": json.loads(pathlib.Path(recipe).read_text()),
    "versions": {"verbatim-text": "0.1", "keras": "3.12"},
    "counts": {"by_split": {"test": 40}},
    "systems": [{
        "name": "softmax", "seconds": 120.0, "updates": 50, "parameters": 1000,
        "curves": [
            {"epoch": n, "eval_loss": loss} for n, loss in enumerate([3, 2, 1, 1, 1, 1.0], 1)
        ],
        "metrics": {"exact_match": {
            "value": right / 40, "low": 0.1, "high": 0.9, "unit": "share",
            "lower_is_better": False,
        }},
    }],
    "threads": os.environ["OMP_NUM_THREADS"],
    "affinity": sorted(os.sched_getaffinity(0)),
    "nice": os.nice(0),
}
pathlib.Path(written).write_text(json.dumps(facts))
"""


def write(folder: pathlib.Path, rows: dict[str, str], more: str = "", name: str = "tiny") -> str:
    """Writes a campaign with one table; returns its path.

    Args:
        folder: for all that it needs.
        rows: what each row's runs do: how many outputs are right, `fail`, `silent` or `wait`.
        more: further TOML of the table.
        name: of campaign and table.
    """
    program, recipe = folder / "fake.py", folder / "recipe.json"
    program.write_text(FAKE)
    recipe.write_text(json.dumps(loading.load_recipe("geo880").to_dict()))
    text = textwrap.dedent(
        f"""
        [[tables]]
        name = "{name}"
        seeds = [1, 2]
        metrics = ["exact_match"]
        split = "development"
        """
    )
    text += more
    for row, right in rows.items():
        words = ["python", program, recipe, "{output}", "{json}", "{seed}", right]
        text += f'[[tables.rows]]\nname = "{row}"\ncommand = {json.dumps([*map(str, words)])}\n'
    path = folder / f"{name}.toml"
    path.write_text(text)
    return str(path)


def jobs(folder: pathlib.Path, path: str):
    """Returns the jobs of a campaign that works below a folder."""
    folders = Folders(None, folder / "runs", folder / "results")
    return jobs_of(plans.load(path), folders)
