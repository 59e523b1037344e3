"""The embedded server under load while versions come and go, too many ask, clients give up, and a
version is broken.

    python -m benchmarks.serving.faults --model OUTPUT/models/NAME --texts FILE

Each part prints what it found; the exit status is 1 if one found what must not be. Everything stays
on loopback.
"""

import argparse
import asyncio
import collections
import itertools
import json
import pathlib
import sys
import time

import grpc

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

CLIENTS = 64
KEPT = 2  # versions in the folder at a time


async def expected_answers(address, texts, batch_size):
    """Returns for each text what the server may answer:
    alone, and in a full batch, whose sums end in other last digits.
    """
    expected = {}
    async with Connection(address) as connection:
        for start in range(0, len(texts), batch_size):
            part = texts[start : start + batch_size]
            for text, answer in zip(
                part, answers_of(await connection.predict(predict_request(part), timeout=300))
            ):
                alone = answers_of(await connection.predict(predict_request([text]), timeout=300))[
                    0
                ]
                expected[text] = {answer, alone}
    return expected


async def pushes(server, texts, requests, versions, batch_size):
    """Requests without end while versions are pushed and retired;
    each must have its answer, from one whole version.
    """
    expected = await expected_answers(server.address, texts, batch_size)
    found = {
        "answered": 0,
        "failed": collections.Counter(),
        "wrong": 0,
        "by version": collections.Counter(),
    }
    seconds, memory = [], [server.memory()]
    pushed_all = asyncio.Event()
    everything = itertools.cycle(texts)

    def jobs():
        while found["answered"] < requests or not pushed_all.is_set():
            yield next(everything)

    async with Connection(server.address) as connection:

        async def ask(text):
            started = time.perf_counter()
            try:
                response = await connection.predict(predict_request([text]), timeout=120)
            except grpc.aio.AioRpcError as error:
                found["failed"][f"{error.code().name}: {error.details()[:100]}"] += 1
                return
            seconds.append(time.perf_counter() - started)
            found["answered"] += 1
            found["wrong"] += answers_of(response)[0] not in expected[text]
            found["by version"][response.model_spec.version.value] += 1

        async def push():
            for number in range(2, versions + 2):
                await asyncio.to_thread(server.push, number)
                while (await connection.versions()).get(number) != "AVAILABLE":
                    await asyncio.sleep(0.1)
                if number > KEPT:
                    await asyncio.to_thread(server.retire, number - KEPT)
                memory.append(server.memory())
                print(
                    f"  version {number} answers; {found['answered']} requests answered; "
                    f"{memory[-1]:.0f} MiB",
                    flush=True,
                )
            pushed_all.set()

        took, _ = await asyncio.gather(crowd(CLIENTS, jobs(), ask), push())
    median, slowest = quantiles(seconds)
    facts = {
        **found,
        "versions": versions,
        "requests a second": round(found["answered"] / took, 1),
        "median ms": round(median, 1),
        "99 % ms": round(slowest, 1),
        "memory MiB": [round(value) for value in memory],
    }
    return facts, not found["failed"] and not found["wrong"] and len(
        found["by version"]
    ) > versions // 2


async def overload(server, texts, requests):
    """More requests at the same time than may wait:
    some are told RESOURCE_EXHAUSTED, the others answered, and memory stays.
    """
    codes, before, peak = collections.Counter(), server.memory(), 0.0
    async with Connection(server.address) as connection:

        async def ask(text):
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


async def deadlines(server, texts):
    """Clients that wait a tenth of a second on a busy server:
    each has an answer or DEADLINE_EXCEEDED, and not much later.
    """
    allowed, late, codes = 0.1, [], collections.Counter()
    async with Connection(server.address) as connection:

        async def ask(text):
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
    return facts, set(codes) <= {"OK", "DEADLINE_EXCEEDED"} and codes[
        "DEADLINE_EXCEEDED"
    ] > 0 and max(late) < 1.0


async def broken_version(server, texts):
    """A version cut in half: it is refused with a reason, and the one before it answers."""
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
    said = [
        line
        for line in server.log().splitlines()
        if f"version {before + 1} cannot be loaded" in line
    ]
    return {
        "answers": response.model_spec.version.value,
        "said": said,
    }, response.model_spec.version.value == before and bool(said)


def main():
    """Runs all parts; prints their facts."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--model", required=True, type=model_version, help="a model folder, or one of its versions"
    )
    parser.add_argument("--texts", required=True, help="file with a text a line")
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--versions", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    texts = sorted(set(read_texts(options.texts, 200)))
    facts, good = {}, True

    def note(name, result):
        nonlocal good
        facts[name], is_good = result
        good = good and is_good
        print(
            f"{name}: "
            f"{'as it must be' if is_good else 'NOT as it must be'}\n{json.dumps(facts[name], indent=1)}",
            flush=True,
        )

    with Server(options.model, "--batch-size", str(options.batch_size)) as server:
        arguments = (server, texts, options.requests, options.versions, options.batch_size)
        note("versions pushed and retired under load", asyncio.run(pushes(*arguments)))
        note("overload", asyncio.run(overload(server, texts, 4000)))
        note("deadlines", asyncio.run(deadlines(server, texts)))
        note("a broken version", asyncio.run(broken_version(server, texts)))
        if not server.is_running():
            note("the server", ({"log": server.log()[-2000:]}, False))
    if options.json:
        options.json.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
