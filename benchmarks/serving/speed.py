"""The cost of serving: a served request against the same call in the process, and throughput.

    python -m benchmarks.serving.speed --model OUTPUT/models/NAME --texts FILE

All results are ratios of figures measured in turn in one run. Latency is at batch 1, the median
over requests. Throughput is of 64 clients with one text each, against batches of 32 of the same
texts in one process: first with all cores for each batch, then side by side with one core for each
batch (`verbatim serve --threads-per-batch 1`). Everything stays on loopback.
"""

import argparse
import asyncio
import concurrent.futures
import multiprocessing
import pathlib
import sys
import time
from collections.abc import Sequence

from benchmarks.peers import rounds
from benchmarks.records import measuring
from benchmarks.serving.harness import (
    Connection,
    Server,
    crowd,
    model_version,
    predict_request,
    quantiles,
    read_texts,
)
from benchmarks.tables import measured as tables
from serving import processors
from serving.limits import Limits
from serving.servable import Servable
from serving.warm_up import WarmUp

CLIENTS, BATCH = 64, 32
# In the process that computes batches side by side.
_loaded: dict[str, Servable] = {}


async def served_latency(address: str, texts: Sequence[str]) -> list[float]:
    """Returns the seconds of requests one after the other."""
    seconds = []
    async with Connection(address) as connection:
        for text in texts:
            request = predict_request([text])
            started = time.perf_counter()
            await connection.predict(request, timeout=120)
            seconds.append(time.perf_counter() - started)
    return seconds


def direct_latency(servable: Servable, texts: Sequence[str]) -> list[float]:
    """Returns the seconds of the same calls in this process."""
    seconds = []
    for text in texts:
        request = predict_request([text])
        started = time.perf_counter()
        servable.predict(request, Limits())
        seconds.append(time.perf_counter() - started)
    return seconds


async def served_rate(address: str, texts: Sequence[str]) -> float:
    """Returns sentences a second of a crowd, with one text per request."""
    async with Connection(address) as connection:

        async def ask(text: str) -> None:
            await connection.predict(predict_request([text]), timeout=300)

        return len(texts) / await crowd(CLIENTS, iter(texts), ask)


def direct_rate(servable: Servable, texts: Sequence[str], at_once: int = 1) -> float:
    """Returns sentences a second in full batches, `at_once` of them at the same time."""
    requests = [
        predict_request(texts[start : start + BATCH]) for start in range(0, len(texts), BATCH)
    ]
    started = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        # As a list, so that the exception of a failed request is raised.
        list(pool.map(lambda request: servable.predict(request, Limits()), requests))
    return len(texts) / (time.perf_counter() - started)


def load(model: pathlib.Path) -> Servable:
    """Returns a version of a model, warmed up."""
    servable = Servable(model, 1)
    WarmUp(servable, model, model.name).run_all()
    return servable


def load_side_by_side(model: pathlib.Path) -> None:
    """Loads a model in a process of its own, since TensorFlow's threads are those of a process."""
    processors.compute_each_batch_on(1)
    _loaded["model"] = load(model)


def side_by_side_rate(texts: Sequence[str]) -> float:
    """Returns `direct_rate` of what `load_side_by_side` loaded."""
    return direct_rate(_loaded["model"], texts, processors.batches_at_once())


def main() -> None:
    """Measures in turn; prints medians and ratios."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--model", required=True, type=model_version, help="a model folder, or one of its versions"
    )
    parser.add_argument("--texts", required=True, help="file with one text per line")
    parser.add_argument("--rounds", type=int, default=5)
    measuring.add_argument(parser)
    options = parser.parse_args()
    machine = measuring.machine()
    texts = read_texts(options.texts, 512)
    servable = load(options.model)
    taken: list[dict[str, tuple[float, float]]] = []
    batched = ("--batch-size", str(BATCH))
    pool = concurrent.futures.ProcessPoolExecutor(
        1, multiprocessing.get_context("spawn"), load_side_by_side, (options.model,)
    )
    with (
        pool,
        Server(options.model) as alone,
        Server(options.model, *batched) as together,
        Server(options.model, *batched, "--threads-per-batch", "1") as beside,
    ):
        for server in (alone, together, beside):
            server.warm_up()
        for number in range(options.rounds + 1):
            served = quantiles(asyncio.run(served_latency(alone.address, texts[:64])))
            direct = quantiles(direct_latency(servable, texts[:64]))
            rates = asyncio.run(served_rate(together.address, texts)), direct_rate(servable, texts)
            rates_beside = (
                asyncio.run(served_rate(beside.address, texts)),
                pool.submit(side_by_side_rate, texts).result(),
            )
            # The first round warms up.
            if number:
                taken.append(
                    {
                        "p50 ms": (served[0], direct[0]),
                        "p99 ms": (served[1], direct[1]),
                        "sentences/s": rates,
                        "sentences/s, a core a batch": rates_beside,
                    }
                )
                print(f"  round {number}: {taken[-1]}", file=sys.stderr, flush=True)
    rows = []
    for name in taken[0]:
        pairs = [one[name] for one in taken]
        by_server, by_process = ([pair[side] for pair in pairs] for side in (0, 1))
        rows.append(
            measuring.row(
                {"what": name},
                {
                    "served": measuring.spread(rounds.spread(by_server)),
                    "direct": measuring.spread(rounds.spread(by_process)),
                    "ratio": measuring.spread(rounds.spread([a / b for a, b in pairs])),
                },
            )
        )
    table = measuring.table_of(rows, options.rounds, machine, packages=("tensorflow", "grpcio"))
    measuring.write(options.record, table)
    print(tables.plain(table))


if __name__ == "__main__":
    main()
