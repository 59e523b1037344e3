"""The command `translate`: files in, files out, with a model and without a server."""

import argparse
import dataclasses
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pipeline.commands import arguments, files, model_folders, output
from pipeline.commands.command_error import CommandError
from pipeline.common import progress
from pipeline.documents.columns import ColumnNames
from pipeline.documents.document import Document
from pipeline.documents.formats import FORMATS, Format, format_of
from pipeline.documents.options import Options
from pipeline.documents.translation import Outcome, answer_texts, choose

if TYPE_CHECKING:
    from serving.answers import Answer
    from serving.model import Model

# How many refused places are named on standard error; `--json` names all.
_MOST_NAMED = 20


@dataclasses.dataclass(frozen=True)
class _Job:
    """One file: its path, that of its translation, its format, and what was read."""

    source: str
    target: str
    format: str
    document: Document


def add_parser(commands: arguments.Subparsers) -> argparse.ArgumentParser:
    """Adds the command's parser; returns it."""
    parser = commands.add_parser(
        "translate", aliases=["predict"], help="translate files, or apply any model to them"
    )
    parser.add_argument("file", nargs="+", metavar="FILE", help="a file; - for standard input")
    parser.add_argument(
        "--model", required=True, metavar="DIR", help="a model folder, or one of its versions"
    )
    parser.add_argument(
        "--output",
        required=True,
        metavar="PATH",
        help="the file to write, in the same format, or - for standard output; a folder for "
        "several files",
    )
    parser.add_argument(
        "--force", action="store_true", help="replace files that exist, the input itself too"
    )
    parser.add_argument(
        "--update",
        action="store_true",
        help="keep a translated file that exists, and add the texts that it lacks (formats with "
        "one language in a file)",
    )
    parser.add_argument(
        "--format", default="auto", choices=("auto", *FORMATS), help="default: by the suffix"
    )
    parser.add_argument(
        "--source-column",
        default="source",
        metavar="NAME",
        help="column of the texts, in tables and JSON Lines (default: source)",
    )
    parser.add_argument(
        "--target-column",
        default="target",
        metavar="NAME",
        help="column of the translations (default: target)",
    )
    parser.add_argument(
        "--target-language",
        metavar="TAG",
        help="language of the translations, such as pt-BR, for plurals and for files that name it "
        "(default: by the path of the output, as in values-pt-rBR/ and messages_fr.json)",
    )
    parser.add_argument(
        "--n-best", action="store_true", help="write JSON Lines with all outputs of the beam"
    )
    parser.add_argument("--scores", action="store_true", help="write JSON Lines with scores")
    parser.add_argument(
        "--provenance",
        action="store_true",
        help="write JSON Lines with each token, and where it was copied from",
    )
    arguments.add_glossary_argument(parser)
    arguments.add_json_argument(parser)
    return parser


def run(options: argparse.Namespace) -> int:
    """Runs the command; returns the exit status."""
    model_folders.check(options.model)
    output.check_writable(options.json)
    if options.output == options.json == "-":
        raise CommandError("--output and --json both name standard output: give --json a file.")
    glossary = arguments.read_glossary(options)
    jobs = _jobs(options)
    with _loaded(options.model) as model:
        started = time.monotonic()
        texts = [segment.text for job in jobs for segment in job.document.segments]
        outcomes = answer_texts(model, texts, options.n_best, glossary) if texts else {}
        seconds = time.monotonic() - started
        metadata = model.metadata()
    note = f"Machine translation: {metadata.name}, version {metadata.version} (verbatim)"
    chosen = [choose(job.document, outcomes) for job in jobs]
    # Every content is made before the first file is written.
    contents = [
        _records(job.document, of_segments, options)
        if options.n_best or options.scores or options.provenance
        else job.document.filled(translations, note)
        for job, (translations, of_segments) in zip(jobs, chosen)
    ]
    for job, content in zip(jobs, contents):
        files.write_content(job.target, content)
    facts = [_facts(job, of_segments) for job, (_, of_segments) in zip(jobs, chosen)]
    line = output.printer(options)
    for fact in facts:
        split = f", {len(fact['split'])} of them in sentences" if fact["split"] else ""
        line(
            f"{fact['output']}: {fact['translated']} translated{split}, {fact['blank']} blank, "
            f"{fact['translated_before']} translated before, {len(fact['refused'])} refused"
        )
    output.write_json(
        options.json,
        {
            "model": metadata.name,
            "version": metadata.version,
            "seconds": round(seconds, 3),
            "files": facts,
        },
    )
    _refuse(facts)
    return 0


def _loaded(folder: str) -> "Model":
    from serving import processors

    # Before TensorFlow is imported.
    processors.prefer_batches_side_by_side()
    from serving.model import Model

    progress.say(f"Loading {folder}.")
    model = Model(folder)
    inputs = model.metadata().signatures["serving_default"].inputs
    if tags := sorted(set(inputs) - {"source"}):
        raise CommandError(
            f"The model takes tags of {', '.join(tags)}, which translate does not read: use "
            "verbatim serve, and request --tags."
        )
    return model


def _jobs(options: argparse.Namespace) -> list[_Job]:
    """Reads all files, and refuses outputs that cannot be written, before the model is loaded."""
    several = len(options.file) > 1
    into_folder = several or os.path.isdir(options.output) or options.output.endswith("/")
    if several and options.output == "-":
        raise CommandError("Several files cannot be written to standard output: name a folder.")
    if into_folder and not os.path.isdir(options.output):
        raise CommandError(f"There is no folder {options.output}: make it first.")
    jobs: list[_Job] = []
    for path in options.file:
        target = options.output
        if into_folder:
            target = os.path.join(options.output, os.path.basename(path))
        if any(os.path.realpath(job.target) == os.path.realpath(target) for job in jobs):
            raise CommandError(f"Two files would be written to {target}: rename one.")
        name = options.format
        if name == "auto":
            name = "text" if path == "-" else format_of(path)
        existing = _existing(path, target, FORMATS[name], options)
        output.check_writable(target)
        columns = ColumnNames(options.source_column, options.target_column)
        language = files.language_of(options.target_language, target)
        if FORMATS[name].has_one_language and language and options.target_language is None:
            progress.say(f"{target} is taken for {language}, by its path.")
        told = Options(columns, language, existing)
        document = FORMATS[name].read(path, files.content_of(path), told)
        jobs.append(_Job(path, target, name, document))
    return jobs


def _existing(
    path: str, target: str, format_: Format, options: argparse.Namespace
) -> tuple[str, bytes] | None:
    """Returns the path and content of a translated file whose texts are kept, or None."""
    if target == "-" or not os.path.exists(target):
        return None
    if options.update and not format_.has_one_language:
        raise CommandError(
            f"{path} holds texts and translations, so --update says nothing: fill it in place "
            "with --output and --force."
        )
    if options.update and os.path.realpath(path) == os.path.realpath(target):
        raise CommandError(f"--update needs two files, and {target} is the input itself.")
    if options.update:
        return target, files.content_of(target)
    if not options.force:
        update = ", keep its texts with --update" if format_.has_one_language else ""
        raise CommandError(
            f"{target} exists: name another file{update}, or replace it with --force."
        )
    return None


def _records(document: Document, outcomes: Sequence[Outcome], options: argparse.Namespace) -> bytes:
    """Returns JSON Lines: an object for each place of a document, in the order of the file."""
    records: list[dict[str, Any]] = [
        *({"line": line, "source": ""} for line in document.blank),
        *({"line": line, "refused": reason} for line, reason in document.problems),
    ]
    for segment, outcome in zip(document.segments, outcomes):
        record: dict[str, Any] = {"line": segment.line, "source": segment.text}
        if outcome.reason:
            record["refused"] = outcome.reason
        outputs = [_output(answer, options) for answer in outcome.answers]
        if options.n_best:
            record["outputs"] = outputs
        elif outputs:
            record.update(outputs[0])
        records.append(record)
    records.sort(key=lambda record: int(record["line"]))
    return "".join(output.json_line(record) + "\n" for record in records).encode("utf-8")


def _output(answer: "Answer", options: argparse.Namespace) -> dict[str, Any]:
    from serving.answers import long_text_record, token_record

    shown: dict[str, Any] = {"target": answer.text, **long_text_record(answer)}
    if options.scores or options.n_best:
        shown["score"] = answer.score
    if options.provenance:
        shown["tokens"] = [token_record(token) for token in answer.tokens]
    return shown


def _facts(job: _Job, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    document = job.document
    refused = list(document.problems)
    split, cut_off = [], []
    for segment, outcome in zip(document.segments, outcomes):
        if outcome.reason:
            refused.append((segment.line, outcome.reason))
            continue
        answer = outcome.answers[0]
        if answer.parts > 1:
            split.append({"line": segment.line, "parts": answer.parts})
        if answer.tokens_dropped:
            cut_off.append({"line": segment.line, "tokens_dropped": answer.tokens_dropped})
    return {
        "input": job.source,
        "output": job.target,
        "format": job.format,
        "texts": len(document.segments),
        "translated": sum(not outcome.reason for outcome in outcomes),
        "blank": len(document.blank),
        "translated_before": document.translated_before,
        "split": split,
        "cut_off": cut_off,
        "refused": [{"line": line, "reason": reason} for line, reason in sorted(refused)],
    }


def _refuse(facts: Sequence[Mapping[str, Any]]) -> None:
    """Names what was cut off or refused.

    Raises:
        CommandError: something was.
    """
    cut_off = [(one, fact["input"]) for fact in facts for one in fact["cut_off"]]
    for one, path in cut_off[:_MOST_NAMED]:
        _print_on_standard_error(
            f"verbatim: Line {one['line']} of {path} is too long for the model: its last "
            f"{one['tokens_dropped']} tokens are not translated."
        )
    if len(cut_off) > _MOST_NAMED:
        more = len(cut_off) - _MOST_NAMED
        _print_on_standard_error(f"verbatim: {more} more texts were cut off; --json names them.")
    refused = list(_named(facts))
    for sentence in refused[:_MOST_NAMED]:
        _print_on_standard_error(f"verbatim: {sentence}")
    if refused:
        more = len(refused) - _MOST_NAMED
        others = f" {more} more are named by --json." if more > 0 else ""
        places = "1 place was" if len(refused) == 1 else f"{len(refused)} places were"
        stay = "stays" if len(refused) == 1 else "stay"
        raise CommandError(f"{places} refused and {stay} untranslated.{others}")


def _named(facts: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for fact in facts:
        for one in fact["refused"]:
            yield f"Line {one['line']} of {fact['input']}: {one['reason'].rstrip('.')}."


def _print_on_standard_error(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
