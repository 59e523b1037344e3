"""The command `translate`: files in, files out, with a model and without a server."""

import argparse
import dataclasses
import os
import time
from typing import TYPE_CHECKING

from pipeline.commands import arguments, files, model_folders, output, review, translated
from pipeline.commands.command_error import CommandError
from pipeline.common import progress
from pipeline.documents.columns import ColumnNames
from pipeline.documents.document import Document
from pipeline.documents.formats import FORMATS, Format, format_of
from pipeline.documents.options import Options
from pipeline.documents.translation import answer_texts, choose
from serving.file_translator import note_of

if TYPE_CHECKING:
    from serving.model import Model


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
    translated.add_arguments(parser)
    parser.add_argument(
        "--review",
        metavar="FILE",
        help="write all texts, those whose translation is most doubtful first: an XLIFF file if "
        "its suffix is .xlf or .xliff, otherwise a CSV table",
    )
    arguments.add_glossary_argument(parser)
    arguments.add_json_argument(parser)
    return parser


def run(options: argparse.Namespace) -> int:
    """Runs the command; returns the exit status."""
    model_folders.check(options.model)
    output.check_writable(options.json, options.review)
    review.check(options.review)
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
        languages = _languages(options, model)
    note = note_of(metadata.name, metadata.version)
    shown = translated.Shown.of(options)
    chosen = [choose(job.document, outcomes) for job in jobs]
    # Every content is made before the first file is written.
    contents = [
        translated.records(job.document, of_segments, shown)
        if shown
        else job.document.filled(translations, note)
        for job, (translations, of_segments) in zip(jobs, chosen)
    ]
    for job, content in zip(jobs, contents):
        files.write_content(job.target, content)
    if options.review:
        of_documents = [(job.source, job.document, of) for job, (_, of) in zip(jobs, chosen)]
        files.write_content(options.review, review.content(options.review, of_documents, languages))
    facts = [
        {
            "input": job.source,
            "output": job.target,
            "format": job.format,
            **translated.facts_of(job.document, of_segments),
        }
        for job, (_, of_segments) in zip(jobs, chosen)
    ]
    line = output.printer(options)
    for fact in facts:
        line(translated.counts(fact))
    output.write_json(
        options.json,
        {
            "model": metadata.name,
            "version": metadata.version,
            "seconds": round(seconds, 3),
            "files": facts,
        },
    )
    translated.refuse(facts)
    return 0


def _languages(options: argparse.Namespace, model: "Model") -> review.Languages:
    """Returns the model's languages; the target is the one that the user names, if any."""
    from serving.model import languages_of

    source, target = languages_of(model) or ("", "")
    if named := options.target_language:
        target = files.language_of(named, "")
    return review.Languages(source, target)


def _loaded(folder: str) -> "Model":
    from serving import compiled_programs, processors

    # Before TensorFlow is imported.
    processors.prefer_batches_side_by_side()
    compiled_programs.keep()
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
        what = "Several files are written to a folder, but there" if several else "There"
        raise CommandError(f"{what} is no folder {options.output}: create it first.")
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
            f"{path} holds texts and translations, so --update has no effect: fill it in place "
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
