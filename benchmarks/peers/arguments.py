"""The options that every program has which compares us with peers."""

import argparse
import pathlib

from benchmarks.peers import environments
from benchmarks.records import measuring


def add(parser: argparse.ArgumentParser) -> None:
    """Adds the folders of the corpus, of the outputs and of the peers, and the result file."""
    parser.add_argument(
        "--data", required=True, type=pathlib.Path, help="folder of small_parallel_enja"
    )
    parser.add_argument("--output", required=True, type=pathlib.Path)
    parser.add_argument("--environments", type=pathlib.Path, default=environments.FOLDER)
    measuring.add_argument(parser)
