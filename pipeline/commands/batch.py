"""The command `batch`: translates many files with a Beam pipeline, a file at a time."""

import argparse
import glob
import json
import os
import pathlib
from typing import Any

from pipeline.commands import arguments, model_folders, output, translated
from pipeline.commands.command_error import CommandError
from pipeline.common import progress, whole_files
from pipeline.documents.formats import FORMATS, format_of


def add_parser(commands: arguments.Subparsers) -> argparse.ArgumentParser:
    """Adds the command's parser; returns it."""
    parser = commands.add_parser(
        "batch", help="translate many files with Beam, on this machine or a cluster"
    )
    parser.add_argument(
        "pattern",
        nargs="+",
        metavar="PATTERN",
        help="files, such as 'shards/part-*'; also addresses, and .gz",
    )
    parser.add_argument(
        "--model",
        required=True,
        metavar="DIR",
        help="a model folder, or one of its versions, at the same path on every worker",
    )
    parser.add_argument(
        "--output",
        required=True,
        metavar="FOLDER",
        help="where each file is written under its name; finished files of the same model are kept",
    )
    parser.add_argument(
        "--format",
        default="auto",
        choices=("auto", *FORMATS),
        help="default: by the suffix, text without a known one",
    )
    translated.add_arguments(parser)
    parser.add_argument(
        "--attempts", type=int, default=3, help="how often a file is tried (default: 3)"
    )
    arguments.add_glossary_argument(parser)
    arguments.add_engine_arguments(parser)
    arguments.add_beam_argument(parser)
    arguments.add_json_argument(parser)
    return parser


def run(options: argparse.Namespace) -> int:
    """Runs the command; returns the exit status."""
    import apache_beam as beam
    import grpc
    from apache_beam.options.pipeline_options import PipelineOptions

    # They import Beam, too.
    from pipeline.commands import batch_pipeline
    from pipeline.runners import engine_check, engine_failure

    if not whole_files.is_remote(options.model) and not os.path.isdir(options.model):
        raise CommandError(f"The model folder {options.model} does not exist.")
    model_folders.check(options.model)
    engine = arguments.read_engine(options)
    output.check_writable(options.json)
    if options.attempts < 1:
        raise CommandError("--attempts must be 1 or more.")
    glossary = arguments.read_glossary(options)
    if engine:
        # Its workers were started in other folders.
        for key in ("model", "output"):
            setattr(options, key, whole_files.absolute(getattr(options, key)))
        options.pattern = [whole_files.absolute(pattern) for pattern in options.pattern]
    paths = _paths(options.pattern)
    for path in paths:
        if os.path.realpath(os.path.dirname(path)) == os.path.realpath(options.output):
            raise CommandError(f"--output is the folder of {path}: name another.")
    folder = None if whole_files.is_remote(options.output) else pathlib.Path(options.output)
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
    if engine:
        engine_check.check(engine, folder)
    shards = [
        batch_pipeline.Shard(
            path, os.path.join(options.output, os.path.basename(path)), _format(path, options)
        )
        for path in paths
    ]
    shown = translated.Shown.of(options)
    work = batch_pipeline.Work(options.model, shown, glossary, options.attempts)
    of_engine = engine.beam_args() if engine else []
    progress.say(f"Translating {len(shards)} files with Beam.")
    try:
        with beam.Pipeline(options=PipelineOptions([*of_engine, *options.beam])) as pipeline:
            _ = (
                pipeline
                | "Files" >> beam.Create(shards)
                | "Spread" >> beam.Reshuffle()
                | "Translate" >> beam.ParDo(batch_pipeline.TranslateFile(work))
            )
    except (RuntimeError, grpc.RpcError, grpc.FutureTimeoutError) as error:
        if not engine:
            raise
        again = "run the same command again; finished files are kept."
        said = engine_failure.sentence("The translation", error, again)
        first = str(error).strip().partition("\n")[0].rstrip(".")
        raise CommandError(said or f"The translation failed ({first}): {again}") from None
    facts = [json.loads(batch_pipeline.read(shard.facts)) for shard in shards]
    _report(options, facts)
    return 0


def _paths(patterns: list[str]) -> list[str]:
    """Returns the files, sorted by their paths.

    Raises:
        CommandError: a pattern has no file, or two files have the same name.
    """
    paths: dict[str, str] = {}
    for pattern in patterns:
        found = _match(pattern)
        if not found:
            raise CommandError(f"No file matches {pattern}.")
        for path in found:
            other = paths.setdefault(os.path.basename(path), path)
            if other != path:
                raise CommandError(
                    f"{other} and {path} would be written under the same name: rename one."
                )
    return sorted(paths.values())


def _match(pattern: str) -> list[str]:
    if not whole_files.is_remote(pattern):
        return [path for path in glob.glob(pattern) if os.path.isfile(path)]
    import tensorflow as tf

    found: list[str] = tf.io.gfile.glob(pattern)
    return found


def _format(path: str, options: argparse.Namespace) -> str:
    if options.format != "auto":
        return str(options.format)
    bare = path.removesuffix(".gz")
    suffix = os.path.splitext(bare)[1].lower()
    return format_of(bare) if any(one.has(suffix) for one in FORMATS.values()) else "text"


def _report(options: argparse.Namespace, facts: list[dict[str, Any]]) -> None:
    """Prints and writes what became of each file.

    Raises:
        CommandError: a file failed, or a text was refused.
    """
    done = [fact for fact in facts if not fact.get("error")]
    line = output.printer(options)
    for fact in done:
        line(translated.counts(fact))
    output.write_json(options.json, {"files": facts})
    if failed := [fact for fact in facts if fact.get("error")]:
        first = failed[0]
        more = f" {len(failed) - 1} more failed, too." if len(failed) > 1 else ""
        raise CommandError(
            f"{first['input']} failed: {first['error'].rstrip('.')}.{more} Run the same command "
            "again: finished files are kept."
        )
    translated.refuse(done)
