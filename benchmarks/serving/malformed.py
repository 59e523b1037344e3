"""Malformed requests, tens of thousands: each is refused, and the server neither ends nor grows.

    python -m benchmarks.serving.malformed --model OUTPUT/models/NAME --requests 100000

The requests have wrong types and shapes, values that do not fit them, texts beyond the limit, or
bytes that are not UTF-8. Others name unknown models, signatures, inputs and outputs, are cut off,
or are random bytes. Every hundredth request is a good one, which must be answered.

The exit status is 1 if a malformed request is answered, or refused with a code other than
INVALID_ARGUMENT, NOT_FOUND and similar ones, or if memory grows.
"""

import argparse
import asyncio
import collections
import json
import pathlib
import random
import sys
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import grpc.aio

from benchmarks.records import measuring
from benchmarks.serving.harness import NAME, Server, crowd, model_version, predict_request
from pipeline.common import whole_files

_METHOD = "/tensorflow.serving.PredictionService/Predict"
# The codes of a client's own mistakes.
REFUSALS = {"INVALID_ARGUMENT", "NOT_FOUND", "RESOURCE_EXHAUSTED", "OUT_OF_RANGE", "UNIMPLEMENTED"}
GOOD = "a good text"


def _changed(change: Callable[[Any, random.Random], None]) -> Callable[[random.Random], bytes]:
    """Returns a function that makes a malformed message by a change to a good `PredictRequest`."""

    def make(rng: random.Random) -> bytes:
        request = predict_request(["a text"] * rng.randint(1, 3))
        change(request, rng)
        message: bytes = request.SerializeToString()
        return message

    return make


def _type(request: Any, rng: random.Random) -> None:
    request.inputs["source"].dtype = rng.choice([0, 1, 2, 3, 9, 14, 20, 23, 101, 107])


def _shape(request: Any, rng: random.Random) -> None:
    del request.inputs["source"].tensor_shape.dim[:]
    for _ in range(rng.randint(2, 5)):
        request.inputs["source"].tensor_shape.dim.add(size=rng.choice([-1, 0, 1, 2, 2**31, 2**62]))


def _size(request: Any, rng: random.Random) -> None:
    request.inputs["source"].tensor_shape.dim[0].size = rng.choice(
        [-1, 0, 4, 1000, 2**40, -(2**60)]
    )


def _unknown_rank(request: Any, rng: random.Random) -> None:
    request.inputs["source"].tensor_shape.unknown_rank = True


def _huge_text(request: Any, rng: random.Random) -> None:
    request.inputs["source"].string_val[0] = b"x" * rng.randint(20_000, 60_000)


def _many_words(request: Any, rng: random.Random) -> None:
    request.inputs["source"].string_val[0] = b"w " * rng.randint(1_000, 8_000)


def _no_unicode(request: Any, rng: random.Random) -> None:
    request.inputs["source"].string_val[0] = bytes(
        [rng.randint(128, 255), 0xFF, 0xC0, rng.randint(0, 255)]
    )


def _empty(request: Any, rng: random.Random) -> None:
    request.inputs["source"].string_val[0] = rng.choice([b"", b" ", b"\n\t", "\u3000".encode()])


def _content(request: Any, rng: random.Random) -> None:
    request.inputs["source"].string_val.pop()
    request.inputs["source"].tensor_content = rng.randbytes(rng.randint(0, 200))


def _signature(request: Any, rng: random.Random) -> None:
    request.model_spec.signature_name = rng.choice(
        ["nothing", "score", "__saved_model_init_op", "\x00", "x" * 5000]
    )


def _model(request: Any, rng: random.Random) -> None:
    request.model_spec.name = rng.choice(["nothing", "../" + NAME, "\x00", "x" * 5000])


def _version(request: Any, rng: random.Random) -> None:
    request.model_spec.version.value = rng.choice([0, -1, 99, 2**62])


def _label(request: Any, rng: random.Random) -> None:
    request.model_spec.version_label = "canary"


def _input(request: Any, rng: random.Random) -> None:
    request.inputs[rng.choice(["target", "", "source ", "x" * 1000])].CopyFrom(
        request.inputs["source"]
    )


def _missing(request: Any, rng: random.Random) -> None:
    del request.inputs["source"]


def _filter(request: Any, rng: random.Random) -> None:
    request.output_filter.append(rng.choice(["nothing", "", "x" * 1000]))


def _truncated(rng: random.Random) -> bytes:
    message: bytes = predict_request(["a text to be cut off"] * 5).SerializeToString()
    return message[: rng.randint(len(message) - 40, len(message) - 1)]


def _random_bytes(rng: random.Random) -> bytes:
    return b"\xff" + rng.randbytes(rng.randint(1, 300))


KINDS: dict[str, Callable[[random.Random], bytes]] = {
    **{
        change.__name__.strip("_"): _changed(change)
        for change in (
            *(
                _type,
                _shape,
                _size,
                _unknown_rank,
                _huge_text,
                _many_words,
                _no_unicode,
                _empty,
                _content,
                _signature,
            ),
            *(_model, _version, _label, _input, _missing, _filter),
        )
    },
    "truncated": _truncated,
    "random_bytes": _random_bytes,
}


async def attack(server: Server, requests: int, seed: int) -> tuple[dict[str, Any], bool]:
    """Sends the requests; returns the facts, and whether they are as they must be."""
    rng = random.Random(seed)
    codes: dict[str, collections.Counter[str]] = {
        kind: collections.Counter() for kind in (*KINDS, "good")
    }
    memory: list[float] = []
    channel = grpc.aio.insecure_channel(server.address)
    # Bytes to bytes.
    send: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(_METHOD)
    good = predict_request([GOOD]).SerializeToString()

    def jobs() -> Iterator[tuple[str, bytes]]:
        for number in range(requests):
            if number % max(1, requests // 20) == 0:
                memory.append(server.memory())
                print(f"  {number} sent, {memory[-1]:.0f} MiB", flush=True)
            kind = "good" if number % 100 == 0 else rng.choice(list(KINDS))
            yield kind, good if kind == "good" else KINDS[kind](rng)

    async def ask(job: tuple[str, bytes]) -> None:
        kind, message = job
        try:
            await send(message, timeout=120)
            codes[kind]["answered"] += 1
        except grpc.aio.AioRpcError as error:
            codes[kind][error.code().name] += 1

    took = await crowd(32, jobs(), ask)
    await channel.close()
    memory.append(server.memory())
    # The first requests load and compile, which is not growth.
    growth = memory[-1] - memory[len(memory) // 4]
    answered = {
        kind: count["answered"]
        for kind, count in codes.items()
        if kind != "good" and count["answered"]
    }
    other = {
        code
        for kind, count in codes.items()
        for code in count
        if kind != "good" and code not in {*REFUSALS, "answered"}
    }
    facts = {
        "codes": codes,
        "malformed but answered": answered,
        "requests a second": round(requests / took),
        "memory MiB": [round(value) for value in memory],
        "growth MiB over the last three quarters": round(growth),
    }
    good_ones = set(codes["good"]) == {"answered"}
    return facts, good_ones and not answered and not other and growth < 50 and server.is_running()


def main() -> int:
    """Attacks a server of its own and prints the facts; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--model", required=True, type=model_version, help="a model folder, or one of its versions"
    )
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=pathlib.Path)
    measuring.add_argument(parser)
    options = parser.parse_args()
    machine = measuring.machine()
    with Server(options.model, "--batch-size", "32") as server:
        facts, good = asyncio.run(attack(server, options.requests, options.seed))
        if not server.is_running():
            facts["log"] = server.log()[-2000:]
    print(json.dumps(facts, indent=1))
    print("as it must be" if good else "NOT as it must be")
    if options.json:
        whole_files.write_json(options.json, facts)
    rows = [
        measuring.row(
            {"part": "malformed requests", "what came of it": measuring.sentence(facts)}, {}
        )
    ]
    table = measuring.table_of(rows, 1, machine, packages=("tensorflow", "grpcio"))
    measuring.write(options.record, table)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
