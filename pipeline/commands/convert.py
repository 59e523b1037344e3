"""The command `convert`: an exported Transformer as a model of CTranslate2."""

import argparse

from pipeline.commands import arguments, model_folders, output

#: How weights can be stored, by CTranslate2's names.
QUANTIZATIONS = ("float32", "float16", "int16", "int8", "int8_float32", "int8_float16")


def add_parser(commands: arguments.Subparsers) -> argparse.ArgumentParser:
    """Adds the command's parser; returns it."""
    parser = commands.add_parser(
        "convert", help="write a Transformer without copying as a model of CTranslate2"
    )
    parser.add_argument(
        "--model", required=True, metavar="DIR", help="a model folder, or one of its versions"
    )
    parser.add_argument(
        "--output", required=True, metavar="DIR", help="the folder to write, which must be new"
    )
    parser.add_argument(
        "--quantization",
        default="float32",
        choices=QUANTIZATIONS,
        help="how weights are stored (default: float32, which gives the same answers)",
    )
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        metavar="KEY",
        help="do without this key of decoding, which CTranslate2 has no equivalent of; repeatable",
    )
    return parser


def run(options: argparse.Namespace) -> int:
    """Runs the command; returns the exit status."""
    from pipeline.export import ctranslate2_export

    model_folders.check(options.model)
    facts = ctranslate2_export.convert(
        options.model, options.output, options.quantization, options.without
    )
    line = output.printer(options)
    without = f", without {' and '.join(facts.without)}" if facts.without else ""
    line(f"{options.output}: {facts.name}, version {facts.version}, {facts.quantization}{without}")
    return 0
