"""`make demo`: real text through the whole pipeline, a served model, and three questions.

Trains the recipe `localization_en_fr` on the French catalogues of four packages, with the copy head
and with plain softmax, and prints the difference.
"""

import contextlib
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

from pipeline.commands import catalogues, progress_display, run_summary
from pipeline.common import native_notes, progress, tensorflow_settings
from pipeline.recipes import loading
from pipeline.runners import local_runner

OUTPUT = pathlib.Path("build/demo")
RECIPE = "localization_en_fr"
# 1,060 updates, the same on every machine: the catalogues are pinned. The whole demo is sized for
# less than 12 minutes on 2 slow cores.
OVERRIDES = ("training.epochs=5",)
# The training data hold none of these strings' placeholders and names.
QUESTIONS = (
    "Delete the page %(zebra_title)s?",
    "Welcome to Quxodyne, {{ visitor.nickname }}!",
    "Could not open file ${backup_path}: %(errno_text)s",
)
READY = re.compile(r"Serving \S+ version \d+ at (\S+)")


def say(line: str = "") -> None:
    """Prints a line at once."""
    print(line, flush=True)


def ask_server(model_directory: str, questions: Sequence[str], log: str | os.PathLike[str]) -> None:
    """Starts `verbatim serve`, asks over gRPC, prints the answers, and stops the server.

    Args:
        model_directory: the folder that holds the pushed versions.
        questions: the texts.
        log: file for the server's standard error.

    Raises:
        RunError: the server ended before it was ready.
    """
    from serving.client import Client, format_answer

    command = [
        sys.executable,
        "-m",
        "pipeline.commands.main",
        "serve",
        "--model",
        str(model_directory),
        "--port",
        "0",
    ]
    with open(log, "w", encoding="utf-8") as file:
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=file, text=True)
    try:
        address = None
        assert server.stdout is not None
        for line in server.stdout:
            say(line.rstrip())
            match = READY.search(line)
            if match:
                address = match.group(1)
                break
        if address is None:
            raise local_runner.RunError(
                f"The server ended with status {server.wait()} before it was ready; see {log}."
            )
        with Client(address) as client:
            for question, answer in zip(questions, client.predict(list(questions))):
                say()
                say(f"  {question}")
                say("  -> " + format_answer(answer).replace("\n", "\n     "))
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(timeout=30)


def main() -> int:
    """Runs the demo; returns the exit status."""
    started = time.monotonic()
    notes = native_notes.left_out() if tensorflow_settings.quiet() else contextlib.nullcontext()
    try:
        with notes, progress_display.shown_on(sys.stdout):
            progress.say("Fetching gettext catalogues")
            with progress.indented():
                data = catalogues.fetch_catalogues(OUTPUT / "catalogues")
            facts = local_runner.run(loading.load_recipe(RECIPE, OVERRIDES), str(data), OUTPUT)
    except (catalogues.CatalogueError, local_runner.RunError, ValueError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    for text in run_summary.lines_of(facts):
        say(text)
    if not facts["blessed"]:
        print(
            "demo: the model was not blessed, so it was not pushed and cannot be served.",
            file=sys.stderr,
        )
        return 1
    say()
    say("Asking the pushed model over gRPC")
    try:
        ask_server(facts["paths"]["models"], QUESTIONS, OUTPUT / "server.log")
    except RuntimeError as error:  # the server did not start, or did not answer
        print(f"demo: {error}", file=sys.stderr)
        return 1
    peak = max(
        resource.getrusage(who).ru_maxrss
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    say()
    say(
        f"Done in {(time.monotonic() - started) / 60:.1f} minutes; largest process "
        f"{peak / 2**20:.1f} GB"
    )
    say(f"Metrics: {OUTPUT / 'metrics.json'}")
    say(f"Report:  {OUTPUT / 'report' / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
