"""The command `serve`: answers gRPC and REST requests with a model, or with several."""

import argparse
import contextlib
import functools
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pipeline.commands import arguments, model_folders
from pipeline.commands.command_error import CommandError

if TYPE_CHECKING:
    from serving.batching import Batching

logger = logging.getLogger("serving")

# The most requests that wait in the server's threads for one batch, whatever its size.
_MOST_TOGETHER = 64


def add_parser(commands: arguments.Subparsers) -> argparse.ArgumentParser:
    """Adds the command's parser; returns it."""
    parser = commands.add_parser("serve", help="serve one or several models over gRPC and REST")
    served = parser.add_mutually_exclusive_group(required=True)
    served.add_argument(
        "--model", metavar="DIR", help="a model folder; new versions in it are loaded automatically"
    )
    served.add_argument(
        "--config", metavar="FILE", help="TensorFlow Serving's model config file: several models"
    )
    parser.add_argument(
        "--port",
        type=int,
        default=8500,
        metavar="N",
        help="gRPC port; 0 chooses a free one (default: 8500)",
    )
    parser.add_argument(
        "--rest-port",
        type=int,
        metavar="N",
        help="port for REST, Prometheus metrics and a web page (default: none)",
    )
    batched = parser.add_mutually_exclusive_group()
    batched.add_argument(
        "--batch-size",
        type=int,
        metavar="N",
        help="batch up to N texts of concurrent requests",
    )
    batched.add_argument(
        "--batching-config", metavar="FILE", help="TensorFlow Serving's batching parameters file"
    )
    parser.add_argument(
        "--batch-delay",
        type=float,
        metavar="MS",
        help=(
            "wait this long for more requests (default: 2; if batches run concurrently, a fifth "
            "of a batch's time, if that is more)"
        ),
    )
    parser.add_argument(
        "--threads-per-batch",
        type=int,
        metavar="N",
        help=(
            "compute each batch on N cores, and as many batches concurrently as fit: 1 gives the "
            "highest throughput, all cores (the default) the lowest latency"
        ),
    )
    parser.add_argument(
        "--compiled-programs",
        metavar="DIR",
        help="keep what XLA compiles there, so that a server that starts again does not compile; "
        "nobody else may write to the folder",
    )
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)"
    )
    parser.add_argument("--name", help="the model's name in requests (default: the folder's)")
    parser.add_argument(
        "--tls-key", metavar="FILE", help="PEM key; with --tls-certificate, serves TLS"
    )
    parser.add_argument("--tls-certificate", metavar="FILE", help="PEM certificate chain")
    parser.add_argument(
        "--tls-client-ca",
        metavar="FILE",
        help="PEM certificates; clients must show one signed by these",
    )
    parser.add_argument(
        "--api-keys",
        metavar="FILE",
        help="LibreTranslate's API and the page's files need a key of this file, one per line",
    )
    parser.add_argument(
        "--requests-per-minute",
        type=int,
        default=0,
        metavar="N",
        help="LibreTranslate's API and the page's files take N requests a minute from each caller "
        "(default: no limit)",
    )
    parser.add_argument(
        "--echo",
        action="append",
        default=[],
        metavar="SOURCE,TARGET",
        help="LibreTranslate's API gives texts of this pair of languages back as they are, where "
        "no model has the pair: en,de is what Weblate tests a new service with",
    )
    parser.add_argument(
        "--request-log",
        metavar="FILE",
        help="append one line of JSON per request ('-': standard error)",
    )
    return parser


def run(options: argparse.Namespace) -> int:
    """Runs the command; returns the exit status."""
    if options.model:
        model_folders.check(options.model)
    with _log_on_standard_error():
        _serve(options)
    return 0


def _serve(options: argparse.Namespace) -> None:
    from serving import compiled_programs, processors

    logger.info("Loading TensorFlow, then %s.", options.model or options.config)
    if options.threads_per_batch is not None:
        try:
            processors.compute_each_batch_on(options.threads_per_batch)
        except ValueError as error:
            raise CommandError(f"--threads-per-batch cannot be used: {error}") from None
    if options.compiled_programs:
        compiled_programs.keep(options.compiled_programs)
    # Before whatever imports TensorFlow, which would import Keras.
    import serving.lean_tensorflow  # noqa: F401

    # isort: split
    from pipeline.documents.file_translator import DocumentTranslator
    from serving import access, libre_translate, tls
    from serving.model_config import read_config_file
    from serving.server import ServerSettings, serve

    batching = _batching(options, processors.batches_at_once())
    workers = ServerSettings.max_workers
    if batching:
        # One thread per request that can be batched: in the running batches, and in the next one.
        together = (batching.parallel + 1) * min(batching.max_batch_size, _MOST_TOGETHER)
        workers = max(workers, together)
    serve(
        options.model or read_config_file(options.config),
        ServerSettings(
            port=options.port,
            host=options.host,
            rest_port=options.rest_port,
            tls=tls.of_files(options.tls_key, options.tls_certificate, options.tls_client_ca),
            access=access.of_file(options.api_keys, options.requests_per_minute),
            echoes=tuple(libre_translate.read_pair(pair) for pair in options.echo),
            files=DocumentTranslator() if options.rest_port is not None else None,
            batching=batching,
            max_workers=workers,
        ),
        options.name,
        request_log=options.request_log,
        announce=functools.partial(print, flush=True),
    )


@contextlib.contextmanager
def _log_on_standard_error() -> Iterator[None]:
    """Shows the server's log: versions loaded, refused or rolled back, and failures.

    Standard output is for the server's addresses.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)


def _batching(options: argparse.Namespace, parallel: int) -> "Batching | None":
    """Returns how requests are batched, `parallel` batches at a time; None for no batching."""
    from serving.batching import Batching
    from serving.batching_config import read_batching_file

    if options.batching_config:
        return read_batching_file(options.batching_config, parallel)
    if options.batch_size is None:
        return None
    if options.batch_size < 1 or (options.batch_delay or 0) < 0:
        raise CommandError("--batch-size must be 1 or more, --batch-delay 0 or more.")
    if options.batch_delay is not None:
        delay = {"delay_seconds": options.batch_delay / 1000}
    else:
        delay = {"delay_share": 0.2 if parallel > 1 else 0.0}
    return Batching(options.batch_size, parallel=parallel, **delay)
