"""The embedded server under load and faults.

    python -m benchmarks.serving.faults --model OUTPUT/models/NAME --texts FILE

Versions are pushed and retired, too many clients ask, clients give up, and a version is broken.
Each part prints its facts; the exit status is 1 if one of them failed. Everything stays on
loopback.
"""

import argparse
import asyncio
import collections
import dataclasses
import itertools
import json
import pathlib
import sys
import time
from collections.abc import Iterator
from typing import Any, TypeAlias

import grpc

from benchmarks.records import measuring
from benchmarks.serving.harness import (
    Connection,
    Server,
    answers_of,
    crowd,
    model_version,
    predict_request,
    quantiles,
    read_texts,
)
from pipeline.common import whole_files

CLIENTS = 64
# Versions in the folder at a time.
KEPT = 2

#: The facts of a part, as JSON, and whether they are as they must be.
Outcome: TypeAlias = tuple[dict[str, Any], bool]


@dataclasses.dataclass
class Answers:
    """What became of requests.

    Attributes:
        answered: how many were answered.
        wrong: how many of them wrongly.
        failed: how many failed with each code.
        by_version: how many each version answered.
        seconds: of each answer.
    """

    answered: int = 0
    wrong: int = 0
    failed: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    by_version: collections.Counter[int] = dataclasses.field(default_factory=collections.Counter)
    seconds: list[float] = dataclasses.field(default_factory=list)


async def expected_answers(address: str, texts: list[str], batch_size: int) -> dict[str, set[str]]:
    """Returns the possible answers to each text: alone, and in a full batch.

    The sums of a full batch differ in their last digits.
    """
    expected: dict[str, set[str]] = {}
    async with Connection(address) as connection:
        for start in range(0, len(texts), batch_size):
            part = texts[start : start + batch_size]
            together = answers_of(await connection.predict(predict_request(part), timeout=300))
            for text, answer in zip(part, together):
                response = await connection.predict(predict_request([text]), timeout=300)
                expected[text] = {answer, answers_of(response)[0]}
    return expected


async def pushes(
    server: Server, texts: list[str], requests: int, versions: int, batch_size: int
) -> Outcome:
    """Sends requests while versions are pushed and retired.

    Each request must have its answer, from one whole version.
    """
    expected = await expected_answers(server.address, texts, batch_size)
    answers, memory = Answers(), [server.memory()]
    pushed_all = asyncio.Event()
    everything = itertools.cycle(texts)

    def jobs() -> Iterator[str]:
        while answers.answered < requests or not pushed_all.is_set():
            yield next(everything)

    async with Connection(server.address) as connection:

        async def ask(text: str) -> None:
            started = time.perf_counter()
            try:
                response = await connection.predict(predict_request([text]), timeout=120)
            except grpc.aio.AioRpcError as error:
                answers.failed[f"{error.code().name}: {(error.details() or '')[:100]}"] += 1
                return
            answers.seconds.append(time.perf_counter() - started)
            answers.answered += 1
            answers.wrong += answers_of(response)[0] not in expected[text]
            answers.by_version[response.model_spec.version.value] += 1

        async def push() -> None:
            for number in range(2, versions + 2):
                await asyncio.to_thread(server.push, number)
                while (await connection.versions()).get(number) != "AVAILABLE":
                    await asyncio.sleep(0.1)
                if number > KEPT:
                    await asyncio.to_thread(server.retire, number - KEPT)
                memory.append(server.memory())
                print(
                    f"  version {number} answers; {answers.answered} requests answered; "
                    f"{memory[-1]:.0f} MiB",
                    flush=True,
                )
            pushed_all.set()

        took, _ = await asyncio.gather(crowd(CLIENTS, jobs(), ask), push())
    median, slowest = quantiles(answers.seconds)
    facts = {
        "answered": answers.answered,
        "failed": answers.failed,
        "wrong": answers.wrong,
        "by version": answers.by_version,
        "versions": versions,
        "requests a second": round(answers.answered / took, 1),
        "median ms": round(median, 1),
        "99 % ms": round(slowest, 1),
        "memory MiB": [round(value) for value in memory],
    }
    good = not answers.failed and not answers.wrong and len(answers.by_version) > versions // 2
    return facts, good


async def overload(server: Server, texts: list[str], requests: int) -> Outcome:
    """Sends more requests at the same time than may wait.

    Some fail with RESOURCE_EXHAUSTED, the others are answered, and memory does not grow.
    """
    codes: collections.Counter[str] = collections.Counter()
    before, peak = server.memory(), 0.0
    async with Connection(server.address) as connection:

        async def ask(text: str) -> None:
            nonlocal peak
            try:
                await connection.predict(predict_request([text] * 16), timeout=300)
                codes["OK"] += 1
            except grpc.aio.AioRpcError as error:
                codes[error.code().name] += 1
                await asyncio.sleep(0.05)
            peak = max(peak, server.memory())

        await crowd(1000, iter((texts * (requests // len(texts) + 1))[:requests]), ask)
        after = answers_of(await connection.predict(predict_request(texts[:1]), timeout=60))
    facts = {
        "codes": codes,
        "memory MiB": {
            "before": round(before),
            "highest": round(peak),
            "after": round(server.memory()),
        },
    }
    good = set(codes) == {"OK", "RESOURCE_EXHAUSTED"} and len(after) == 1 and peak < 2 * before
    return facts, good


async def deadlines(server: Server, texts: list[str]) -> Outcome:
    """Sends requests that wait a tenth of a second to a busy server.

    Each has an answer or DEADLINE_EXCEEDED, and not much later.
    """
    allowed = 0.1
    late: list[float] = []
    codes: collections.Counter[str] = collections.Counter()
    async with Connection(server.address) as connection:

        async def ask(text: str) -> None:
            started = time.perf_counter()
            try:
                await connection.predict(predict_request([text] * 8), timeout=allowed)
                codes["OK"] += 1
            except grpc.aio.AioRpcError as error:
                codes[error.code().name] += 1
            late.append(time.perf_counter() - started - allowed)

        await crowd(CLIENTS, iter(texts), ask)
        await connection.predict(predict_request(texts[:1]), timeout=60)
    facts = {"codes": codes, "latest ms after the deadline": round(max(late) * 1e3)}
    expected = set(codes) <= {"OK", "DEADLINE_EXCEEDED"} and codes["DEADLINE_EXCEEDED"] > 0
    return facts, expected and max(late) < 1.0


async def broken_version(server: Server, texts: list[str]) -> Outcome:
    """Pushes a version cut in half: it is refused with a reason, and the one before it answers."""
    async with Connection(server.address) as connection:
        before = max(
            number
            for number, state in (await connection.versions()).items()
            if state == "AVAILABLE"
        )
        server.push(before + 1, break_it=True)
        while (await connection.versions()).get(before + 1) != "END":
            await asyncio.sleep(0.1)
        response = await connection.predict(predict_request(texts[:1]), timeout=60)
    logged = [
        line
        for line in server.log().splitlines()
        if f"version {before + 1} cannot be loaded" in line
    ]
    answered = response.model_spec.version.value
    return {"answers": answered, "said": logged}, answered == before and bool(logged)


def main() -> int:
    """Runs all parts and prints their facts; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--model", required=True, type=model_version, help="a model folder, or one of its versions"
    )
    parser.add_argument("--texts", required=True, help="file with one text per line")
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--versions", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--json", type=pathlib.Path)
    measuring.add_argument(parser)
    options = parser.parse_args()
    machine = measuring.machine()
    texts = sorted(set(read_texts(options.texts, 200)))
    facts: dict[str, Any] = {}
    good = True

    def note(name: str, result: Outcome) -> None:
        nonlocal good
        facts[name], is_good = result
        good = good and is_good
        verdict = "as it must be" if is_good else "NOT as it must be"
        print(f"{name}: {verdict}\n{json.dumps(facts[name], indent=1)}", flush=True)

    with Server(options.model, "--batch-size", str(options.batch_size)) as server:
        under_load = pushes(server, texts, options.requests, options.versions, options.batch_size)
        note("versions pushed and retired under load", asyncio.run(under_load))
        note("overload", asyncio.run(overload(server, texts, 4000)))
        note("deadlines", asyncio.run(deadlines(server, texts)))
        note("a broken version", asyncio.run(broken_version(server, texts)))
        if not server.is_running():
            note("the server", ({"log": server.log()[-2000:]}, False))
    if options.json:
        whole_files.write_json(options.json, facts)
    rows = [
        measuring.row({"part": part, "what came of it": measuring.sentence(found)}, {})
        for part, found in facts.items()
    ]
    table = measuring.table_of(rows, 1, machine, packages=("tensorflow", "grpcio"))
    measuring.write(options.record, table)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
