"""Runs the compiled Kubeflow pipeline with its root, data and models in a Google bucket.

The bucket is an emulator's on this machine; TensorFlow and Beam talk to it with their own clients.
It counts what each task asked of the bucket, once with some examples and once with twice as many.

python -m tests.object_storage.run_on_buckets [--keep FOLDER] [--only STEP]
"""

import argparse
import collections
import json
import os
import pathlib
import signal
import sys
import tempfile

from tests.end_to_end.conftest import OVERRIDES, made_pairs
from tests.object_storage import google_emulator
from tests.object_storage.google_proxy import GoogleProxy

RECIPE = "localization_en_fr"
SETTINGS = (
    *OVERRIDES,
    "training.epochs=1",
    "baseline.head=",
    "lexicon.kind=none",
    "evaluation.thresholds={}",
    "evaluation.change_thresholds.bleu=-1",
    # One signature each: what is asked of the bucket does not depend on it.
    "decoding.batch_buckets=[4]",
    "decoding.length_buckets=[16]",
)
BUCKET = "verbatim-tests"
READ_ONLY = "read-only-tests"
#: By how many requests a task may differ where there are twice as many examples: TensorFlow reads a
#: file in blocks, and Beam may write another shard.
ALLOWED = 12
STEPS = ("pipeline", "refusals", "twice")
_FACTOR = 2


class StepError(RuntimeError):
    """A step that did not end as it should; one sentence."""


def main() -> int:
    """Runs it; returns 1 if anything is not as it should be."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for all that is written")
    parser.add_argument("--only", choices=STEPS, action="append", help="some steps")
    parser.add_argument("--record", type=pathlib.Path, help="a file for the counts, JSON")
    options = parser.parse_args()
    if reason := google_emulator.why_not():
        print(f"object storage: skipped, for {reason}")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    # The same folder before and after the names lead here.
    kept = options.keep or os.environ.get("VERBATIM_TEST_FOLDER") or tempfile.mkdtemp()
    os.environ["VERBATIM_TEST_FOLDER"] = str(kept)
    folder = pathlib.Path(kept).resolve()
    google_emulator.enter(folder / "google")
    steps = options.only or STEPS
    counts: dict[str, dict[str, dict[str, int]]] = {}
    try:
        with google_emulator.google(folder / "google", BUCKET, READ_ONLY) as proxy:
            if "refusals" in steps:
                refusals(folder / "refusals")
            if "pipeline" in steps:
                counts["once"] = whole_pipeline(folder / "once", proxy, 1)
            if "twice" in steps:
                counts["twice"] = whole_pipeline(folder / "twice", proxy, _FACTOR)
    except (StepError, AssertionError) as error:
        print(f"object storage: {error}")
        return 1
    _print(counts)
    if options.record:
        options.record.write_text(json.dumps(counts, indent=1) + "\n", encoding="utf-8")
    grown = list(too_many(counts)) if len(counts) > 1 else []
    for sentence in grown:
        print(sentence)
    return int(bool(grown))


def write_data(address: str, factor: int) -> None:
    """Writes made pairs, so many times as many, as a file of the bucket."""
    import tensorflow as tf

    lines = ["source\ttarget"]
    for part in range(factor):
        lines += [
            "\t".join(
                (source.replace("%(", f"%(part_{part}_"), target.replace("%(", f"%(part_{part}_"))
            )
            for source, target in made_pairs()
        ]
    with tf.io.gfile.GFile(address, "w") as file:
        file.write("\n".join(lines) + "\n")


def compile_to(path: pathlib.Path, data: str, root: str):
    """Returns the specification of the pipeline as a dict."""
    import yaml

    from pipeline.recipes import loading
    from pipeline.runners import kubeflow_runner

    settings = kubeflow_runner.ClusterSettings(pipeline_root=root, gpu_count=0)
    recipe = loading.load_recipe(RECIPE, SETTINGS)
    kubeflow_runner.compile_pipeline(recipe, path, data, settings)
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def whole_pipeline(
    folder: pathlib.Path, proxy: GoogleProxy, factor: int
) -> dict[str, dict[str, int]]:
    """Runs every task in a root where an earlier try has died.

    Returns:
        How many requests each task made, by kind.

    Raises:
        StepError: the model was not pushed, or does not answer.
        AssertionError: a task failed; the end of what it printed.
    """
    import tensorflow as tf

    from tests import kubeflow

    folder.mkdir(parents=True, exist_ok=True)
    root, data = f"gs://{BUCKET}/root-{factor}", f"gs://{BUCKET}/data-{factor}"
    write_data(f"{data}/pairs.tsv", factor)
    spec = compile_to(folder / "pipeline.yaml", data, root)
    leave_behind(f"{root}/tasks")
    counts: dict[str, dict[str, int]] = {}
    seen = len(proxy.requests)

    def ended(task: str) -> None:
        nonlocal seen
        asked, seen = proxy.requests[seen:], len(proxy.requests)
        counts[task] = dict(sorted(collections.Counter(one.kind for one in asked).items()))
        print(f"{task}: {counts[task]}", flush=True)
        (folder / f"{task}.requests").write_text(
            "".join(f"{one.kind} {one.status} {one.method} {one.path}\n" for one in asked), "utf-8"
        )

    outputs = kubeflow.run_pipeline(spec, folder / "tasks", f"{root}/tasks", ended)
    pushed = tf.io.gfile.glob(f"{root}/models/{RECIPE}/*/saved_model.pb")
    if len(pushed) != 1:
        raise StepError(f"{len(pushed)} models were pushed to {root}/models; there should be one.")
    report = outputs["Reporter"]["report"][0]
    facts = json.loads(tf.io.gfile.GFile(f"{report}/report/facts.json").read())
    if facts["counts"]["read"] != factor * len(made_pairs()):
        raise StepError(f"{facts['counts']['read']} pairs were read.")
    _answers(f"{root}/models/{RECIPE}")
    return counts


def leave_behind(tasks: str) -> None:
    """Writes what a task that was killed leaves in its folders: Beam's folder, and a shard."""
    import tensorflow as tf

    for task, key in (
        ("ParallelTextExampleGen", "examples"),
        ("TextTransform", "transformed_examples"),
    ):
        for name in ("beam-temp-data_tfrecord-0123/abc.data_tfrecord.gz", "data-00001-of-00007.gz"):
            with tf.io.gfile.GFile(f"{tasks}/{task}/{key}/Split-train/{name}", "w") as file:
                file.write("not a record")


def _answers(address: str) -> None:
    """Serves the model folder of the bucket, and asks its model."""
    from serving import Client
    from serving.server import ModelServer, ServerSettings

    with (
        ModelServer(address, ServerSettings(port=0)) as server,
        Client(server.address) as client,
    ):
        if not client.predict("Open the file %(a)s")[0].tokens:
            raise StepError("The model that is served from the bucket answers nothing.")


def refusals(folder: pathlib.Path) -> None:
    """Runs the first task where it cannot work: it must end at once, with one sentence."""
    from tests import kubeflow

    folder.mkdir(parents=True, exist_ok=True)
    good = f"gs://{BUCKET}/refusals/data"
    write_data(f"{good}/pairs.tsv", 1)
    first = "ParallelTextExampleGen"
    for name, data, outputs, token, sentence in (
        ("absent_data", "gs://absent-bucket/data", f"gs://{BUCKET}/a", "valid", "There is no file"),
        ("absent_root", good, "gs://absent-bucket/root", "valid", "cannot be written"),
        ("read_only_root", good, f"gs://{READ_ONLY}/root", "valid", "cannot be written"),
        # TFX asks for an earlier output before it calls the component, and says it in its words.
        ("expired", good, f"gs://{BUCKET}/b", "expired", "HTTP response code 401"),
    ):
        spec = compile_to(folder / f"{name}.yaml", data, outputs)
        told = kubeflow.invocation(spec, first, f"{outputs}/{first}")
        label = spec["components"][first]["executorLabel"]
        container = spec["deploymentSpec"]["executors"][label]["container"]
        before = os.environ["GOOGLE_AUTH_TOKEN_FOR_TESTING"]
        os.environ["GOOGLE_AUTH_TOKEN_FOR_TESTING"] = token
        log = folder / f"{name}.log"
        try:
            kubeflow.run_apart(first, container, told, log)
        except AssertionError:
            pass
        else:
            raise StepError(f"{name}: the task ended well.")
        finally:
            os.environ["GOOGLE_AUTH_TOKEN_FOR_TESTING"] = before
        printed = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        # TensorFlow goes on in a second line.
        last = [line for line in printed if not line.startswith("\t")][-1]
        print(f"{name}: {last}", flush=True)
        if sentence not in last:
            raise StepError(f"{name}: the task's last line is not the sentence.")


def too_many(counts: dict[str, dict[str, dict[str, int]]]):
    """Yields a sentence for each task whose requests grow with the examples."""
    for task, kinds in counts["twice"].items():
        before = sum(counts["once"].get(task, {}).values())
        after = sum(kinds.values())
        if after > before + ALLOWED:
            yield f"{task}: {before} requests, and {after} with {_FACTOR} times as many examples."


def _print(counts: dict[str, dict[str, dict[str, int]]]) -> None:
    for name, tasks in counts.items():
        print(f"requests, {name}: {sum(sum(kinds.values()) for kinds in tasks.values())}")
        for task, kinds in tasks.items():
            shown = ", ".join(f"{kind} {number}" for kind, number in kinds.items())
            print(f"  {task}: {sum(kinds.values())} ({shown})")


if __name__ == "__main__":
    sys.exit(main())
