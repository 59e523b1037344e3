"""The command `request`: asks a server."""

import argparse
import dataclasses
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from pipeline.commands import arguments, output
from pipeline.commands.command_error import CommandError
from pipeline.common import text_lines

if TYPE_CHECKING:
    from serving.client import Client, Score
    from serving.glossary import Glossary

# In seconds. A server compiles its models before it answers.
_TIMEOUT, _TIMEOUT_OF_START = 30.0, 600.0


def add_parser(commands: arguments.Subparsers) -> argparse.ArgumentParser:
    """Adds the command's parser; returns it."""
    parser = commands.add_parser("request", help="ask a server")
    parser.add_argument("--address", required=True, metavar="HOST:PORT")
    parser.add_argument(
        "--model",
        metavar="NAME",
        help="the model's name (default: the server's only model; TensorFlow Serving needs it)",
    )
    asked = parser.add_mutually_exclusive_group()
    asked.add_argument("--n-best", action="store_true", help="return all answers of the beam")
    asked.add_argument(
        "--targets", metavar="FILE", help="score these targets, one per line for each text"
    )
    asked.add_argument(
        "--continue",
        dest="continues",
        action="store_true",
        help="ask a language model to continue the texts",
    )
    parser.add_argument(
        "--timeout",
        type=float,
        metavar="SECONDS",
        help=f"for a request and its retries (default: {_TIMEOUT}, with --wait "
        f"{_TIMEOUT_OF_START})",
    )
    parser.add_argument(
        "--attempts",
        type=int,
        default=3,
        metavar="N",
        help="send a request up to N times if the server is unavailable or full: 1 to 5 "
        "(default: 3)",
    )
    parser.add_argument(
        "--wait", action="store_true", help="wait for a server that has not started yet"
    )
    parser.add_argument(
        "--batch-size",
        type=int,
        default=32,
        metavar="N",
        help="the most texts in a request (default: 32)",
    )
    parser.add_argument(
        "--tls", action="store_true", help="use TLS, with gRPC's certificate authorities"
    )
    parser.add_argument(
        "--tls-ca", metavar="FILE", help="PEM certificates that sign the server's; implies --tls"
    )
    parser.add_argument(
        "--tls-key",
        metavar="FILE",
        help="PEM key of this client; with --tls-certificate, for mutual TLS",
    )
    parser.add_argument(
        "--tls-certificate", metavar="FILE", help="PEM certificate chain of this client"
    )
    parser.add_argument(
        "--tags",
        action="append",
        default=[],
        metavar="NAME=TAGS",
        help="for models with data.source_features: a text's tags of column NAME; once for each "
        "text",
    )
    parser.add_argument(
        "--file",
        metavar="FILE",
        help="send all texts of a file, one per line; - for standard input",
    )
    parser.add_argument("text", nargs="*")
    arguments.add_glossary_argument(parser)
    arguments.add_json_argument(parser)
    return parser


def run(options: argparse.Namespace) -> int:
    """Runs the command; returns the exit status."""
    from serving import asking, tls
    from serving.client import Client, format_answer

    output.check_writable(options.json)
    texts = _texts_to_ask(options)
    features = _named_tags(options.tags)
    glossary = arguments.read_glossary(options)
    if glossary and (options.targets or options.continues):
        raise CommandError("--glossary is for translations: leave out --targets or --continue.")
    if features and options.continues:
        raise CommandError("--tags are for models of pairs: a language model takes none.")
    files = (options.tls_ca, options.tls_key, options.tls_certificate)
    credentials = tls.client_credentials(*files) if options.tls or any(files) else None
    timeout = _TIMEOUT_OF_START if options.wait else _TIMEOUT
    if options.timeout is not None:
        timeout = options.timeout
    with Client(
        options.address,
        model=options.model,
        timeout=timeout,
        credentials=credentials,
        attempts=options.attempts,
        batch_size=options.batch_size,
        wait_for_ready=options.wait,
    ) as client:
        columns = [texts, *features.values()]
        if options.targets:
            columns.append(_lines(options.targets))
        ask = _asker(client, list(features), glossary, options)
        # The client refuses columns of different lengths by name.
        fit = all(len(column) == len(texts) for column in columns)
        answers = asking.ask_all(ask, columns, options.batch_size) if fit else ask(*columns)
        _print_answers(answers, options, _format_score if options.targets else format_answer)
    return 0


def _asker(
    client: "Client",
    names: Sequence[str],
    glossary: "Glossary | None",
    options: argparse.Namespace,
) -> Callable[..., Sequence[Any]]:
    """Returns the function that asks for the answers to a batch: sources, tags, targets."""

    def ask(sources: list[str], *others: list[str]) -> Sequence[Any]:
        tags = dict(zip(names, others))
        if options.targets:
            return client.score(sources, others[-1], tags)
        if options.continues:
            return client.continue_text(sources)
        if options.n_best:
            return client.n_best(sources, features=tags, glossary=glossary)
        return client.predict(sources, features=tags, glossary=glossary)

    return ask


def _format_score(score: "Score") -> str:
    return f"{score.log_probability:.4f}  (log-probability, {score.token_count} tokens)"


def _print_answers(
    answers: Iterable[Any], options: argparse.Namespace, describe: Callable[[Any], str]
) -> None:
    """Prints answers as they arrive, each a single one or a list of the best.

    A refused text is reported on standard error, by its number.
    """
    from serving.answers import Answer, answer_record
    from serving.client import RequestError

    line = output.printer(options)
    written: list[Any] = []
    refused = 0
    try:
        for number, answer in enumerate(answers, 1):
            if isinstance(answer, RequestError):
                where = f"Line {number} of {options.file}" if options.file else f"Text {number}"
                print(f"verbatim: {where}: {answer.reason}", file=sys.stderr)
                written.append(None)
                refused += 1
                continue
            beam = answer if isinstance(answer, list) else [answer]
            for one in beam:
                line(describe(one))
            records = [
                answer_record(one) if isinstance(one, Answer) else dataclasses.asdict(one)
                for one in beam
            ]
            written.append(records[0] if options.targets else records)
    except RequestError as error:
        if not written:
            raise
        output.write_json(options.json, written)
        raise CommandError(f"{error} The {len(written)} texts before it were answered.") from None
    output.write_json(options.json, written)
    if refused:
        raise CommandError(f"{refused} of {len(written)} texts were refused.")


def _texts_to_ask(options: argparse.Namespace) -> list[str]:
    if bool(options.text) == bool(options.file):
        raise CommandError("Give the texts either as arguments or with --file FILE.")
    if options.text:
        return list(options.text)
    texts = _lines(options.file)
    for number, text in enumerate(texts, 1):
        if not text.strip():
            raise CommandError(
                f"Line {number} of {options.file} is empty: remove it, or give a text."
            )
    return texts


def _lines(path: str) -> list[str]:
    return text_lines.read_lines("/dev/stdin" if path == "-" else path, "text", CommandError)


def _named_tags(tags: Sequence[str]) -> dict[str, list[str]]:
    """Returns the texts of each column, from repeated NAME=TAGS."""
    features: dict[str, list[str]] = {}
    for item in tags:
        name, separator, text = item.partition("=")
        if not separator or not name:
            raise CommandError(f"--tags needs NAME=TAGS, for example pos='DT NN'; got '{item}'.")
        features.setdefault(name, []).append(text)
    return features
