"""The start of a model: time, processor time and memory until it answers, and until it is warm.

    python -m benchmarks.serving.start --model OUTPUT/models/NAME

Two programs start in turn, each in a process of its own: `Model(...)` in Python, and `verbatim
serve`. Each is measured twice: without compiled programs, and with those of an earlier process. All
figures count from the start of the process. `warm` means that a text of each length bucket and
batch bucket was answered, and that the process has come to rest.
"""

import argparse
import collections
import os
import pathlib
import sys
import tempfile
import time
from collections.abc import Iterator

from benchmarks.peers import rounds
from benchmarks.peers.processes import Program
from benchmarks.records import measuring
from benchmarks.serving.harness import Server, model_version, warming_batches
from benchmarks.tables import measured as tables

TEXT = "Delete the page %(name)s?"

#: What a program has used since its start, by the name of the figure.
Used = dict[str, float]


def measure_model(model: pathlib.Path, threads: int, programs: str) -> Iterator[tuple[str, Used]]:
    """Yields the steps of a `Model(...)`, and what each has used since the start.

    Args:
        model: a version's folder.
        threads: how many it may use.
        programs: the folder of compiled programs, or an empty string.
    """
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        with Program(
            sys.executable,
            "start_model",
            threads,
            pathlib.Path(folder) / "log",
            package="benchmarks.serving",
            variables={"TF_NUM_INTRAOP_THREADS": None, "TF_NUM_INTEROP_THREADS": None},
        ) as program:
            for step, task, arguments in (
                ("imported", "import", {}),
                ("loaded", "load", {"folder": str(model), "programs": programs}),
                ("first answer", "answer", {"batches": [[TEXT]]}),
                ("warm", "answer", {"batches": warming_batches(model)}),
            ):
                facts = program.ask(task, **arguments)
                yield (
                    step,
                    {
                        "seconds": time.perf_counter() - started,
                        "cpu": facts["cpu_seconds"],
                        "resident": facts["resident_bytes"] / 1e6,
                        "peak": facts["peak_bytes"] / 1e6,
                    },
                )


def measure_server(model: pathlib.Path, programs: str) -> Iterator[tuple[str, Used]]:
    """Yields the steps of a server, and what each has used since the start: see `measure_model`."""
    with Server(model, *(["--compiled-programs", programs] if programs else [])) as server:

        def used(seconds: float) -> Used:
            return {
                "seconds": seconds,
                "cpu": server.cpu_seconds(),
                "resident": server.memory() * 2**20 / 1e6,
                "peak": server.peak_memory() * 2**20 / 1e6,
            }

        yield "listens", used(time.perf_counter() - server.started)
        server.ask([[TEXT]])
        yield "first answer", used(time.perf_counter() - server.started)
        yield "warm", used(server.warm_up() - server.started)


def main() -> None:
    """Measures in turn; prints medians."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--model", required=True, type=model_version, help="a model folder, or one of its versions"
    )
    parser.add_argument("--rounds", type=int, default=3)
    measuring.add_argument(parser)
    options = parser.parse_args()
    machine = measuring.machine()
    threads = len(os.sched_getaffinity(0))
    taken: dict[tuple[str, str], list[Used]] = {}
    with tempfile.TemporaryDirectory() as programs:
        # These two fill the folder; they are not measured.
        for steps in (
            measure_model(options.model, threads, programs),
            measure_server(options.model, programs),
        ):
            collections.deque(steps, maxlen=0)
        for number in range(options.rounds):
            for program, steps in (
                ("Model(...)", measure_model(options.model, threads, "")),
                ("Model(...), compiled before", measure_model(options.model, threads, programs)),
                ("verbatim serve", measure_server(options.model, "")),
                ("verbatim serve, compiled before", measure_server(options.model, programs)),
            ):
                for step, used in steps:
                    taken.setdefault((program, step), []).append(used)
                    figures = ", ".join(f"{name} {value:.1f}" for name, value in used.items())
                    words = f"{number + 1}: {program}, {step}: {figures}"
                    print(f"  {words}", file=sys.stderr, flush=True)
    rows = [
        measuring.row(
            {"program": program, "step": step},
            {
                name: measuring.spread(rounds.spread([used[name] for used in every]))
                for name in every[0]
            },
        )
        for (program, step), every in taken.items()
    ]
    table = measuring.table_of(rows, options.rounds, machine, packages=("tensorflow", "grpcio"))
    measuring.write(options.record, table)
    print(tables.plain(table))


if __name__ == "__main__":
    main()
