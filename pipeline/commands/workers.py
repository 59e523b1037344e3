"""The command `workers`: starts Python workers where an engine asks for them."""

import argparse
import threading

from pipeline.commands import arguments
from pipeline.common import progress

_PORT = 50000


def add_parser(commands: arguments.Subparsers) -> argparse.ArgumentParser:
    """Adds the command's parser; returns it."""
    parser = commands.add_parser(
        "workers", help="start Python workers for Flink or Spark, on each of its machines"
    )
    parser.add_argument("--port", type=int, default=_PORT, help=f"where it listens ({_PORT})")
    return parser


def run(options: argparse.Namespace) -> int:
    """Runs the command; it ends when it is interrupted."""
    from pipeline.runners import worker_pool

    server = worker_pool.start(options.port)
    progress.say(f"Workers are started at port {options.port}")
    try:
        threading.Event().wait()
    finally:
        server.stop(0)
    return 0
