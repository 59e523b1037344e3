"""The command `pairs`: training data out of two files with the same keys."""

import argparse
import os

from pipeline.commands import arguments, files, output
from pipeline.commands.command_error import CommandError
from pipeline.documents.formats import FORMATS, format_of
from pipeline.documents.options import Options
from pipeline.documents.pairs import LeftOut, TextPair, pairs_of
from pipeline.documents.resource_document import ResourceDocument

_FORMATS = tuple(name for name, one in FORMATS.items() if one.has_one_language)


def add_parser(commands: arguments.Subparsers) -> argparse.ArgumentParser:
    """Adds the command's parser; returns it."""
    parser = commands.add_parser(
        "pairs",
        help="make training data of two files with the same keys, such as strings.xml",
        description=(
            "Writes the texts that two files have under the same keys as JSON Lines, which `run` "
            "reads. The formats are those with one language in a file."
        ),
    )
    parser.add_argument("source", metavar="SOURCE", help="the file in the source's language")
    parser.add_argument("target", metavar="TARGET", help="the file in the target's language")
    parser.add_argument(
        "--output",
        required=True,
        metavar="FILE",
        help="JSON Lines, or - for standard output",
    )
    parser.add_argument("--force", action="store_true", help="replace a file that exists")
    parser.add_argument(
        "--format", default="auto", choices=("auto", *_FORMATS), help="default: by the suffix"
    )
    parser.add_argument(
        "--target-language",
        metavar="TAG",
        help="language of TARGET, for the plurals of ICU messages (default: by its path)",
    )
    arguments.add_json_argument(parser)
    return parser


def run(options: argparse.Namespace) -> int:
    """Runs the command; returns the exit status."""
    output.check_writable(options.json, options.output)
    if options.output == options.json == "-":
        raise CommandError("--output and --json both name standard output: give --json a file.")
    if options.output != "-" and os.path.exists(options.output) and not options.force:
        raise CommandError(
            f"{options.output} exists: name another file, or replace it with --force."
        )
    # Without a language, plurals of ICU messages have the forms of English.
    language = files.language_of(options.target_language, options.target) or "en"
    documents = []
    for path in (options.source, options.target):
        name = format_of(path) if options.format == "auto" else options.format
        if name not in _FORMATS:
            raise CommandError(
                f"{path} holds texts and translations, or no keys: give it to verbatim run as it "
                "is."
            )
        document = FORMATS[name].read(path, files.content_of(path), Options(language=language))
        assert isinstance(document, ResourceDocument)
        documents.append(document)
    found = list(pairs_of(*documents))
    pairs = [one for one in found if isinstance(one, TextPair)]
    left_out = [one for one in found if isinstance(one, LeftOut)]
    if not pairs:
        raise CommandError(f"{options.source} and {options.target} share no translated key.")
    lines = (
        output.json_line({"source": one.source, "target": one.target, "key": one.key})
        for one in pairs
    )
    files.write_content(options.output, "".join(f"{line}\n" for line in lines).encode("utf-8"))
    output.printer(options)(f"{options.output}: {len(pairs)} pairs, {len(left_out)} texts left out")
    facts = [{"line": one.line, "key": one.key, "reason": one.reason} for one in left_out]
    output.write_json(options.json, {"pairs": len(pairs), "left_out": facts})
    return 0
