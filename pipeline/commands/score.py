"""The command `score`: measures any system's outputs."""

import argparse
import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pipeline.commands import arguments, output
from pipeline.commands.command_error import CommandError
from pipeline.common import progress
from pipeline.recipes.choices import RARE_WORDS

if TYPE_CHECKING:
    from pipeline.metrics.scoring_options import ScoringOptions


def add_parser(commands: arguments.Subparsers) -> argparse.ArgumentParser:
    """Adds the command's parser; returns it."""
    parser = commands.add_parser("score", help="measure any system's outputs")
    parser.add_argument(
        "--references",
        required=True,
        nargs="+",
        metavar="FILE",
        help=(
            "one reference per line; several files for several references, where an empty line "
            "means none"
        ),
    )
    parser.add_argument("--hypotheses", required=True, metavar="FILE", help="one output per line")
    parser.add_argument(
        "--sources", metavar="FILE", help="one source per line; some metrics need them"
    )
    parser.add_argument(
        "--training",
        nargs="+",
        default=[],
        metavar="FILE",
        help="training text; unseen_copies needs both sides, rare_word_recall and "
        "word_f1_by_frequency the target side",
    )
    parser.add_argument("--metrics", default="bleu,chrf", metavar="A,B,...")
    parser.add_argument(
        "--language",
        default="en",
        help="language of the references; chooses tokenizers (default: en)",
    )
    parser.add_argument(
        "--tokenization",
        default="text",
        choices=("text", "whitespace"),
        help="whitespace: the texts are already tokenized",
    )
    parser.add_argument(
        "--rare-words",
        default="cut",
        choices=RARE_WORDS,
        help="where words end, as in data.rare_words (default: cut)",
    )
    parser.add_argument(
        "--placeholders",
        metavar="A,B,...",
        help=(
            "dialects of placeholders that fidelity counts, as in data.placeholders (default: "
            "those that do not occur in prose)"
        ),
    )
    parser.add_argument(
        "--placeholder-pattern",
        action="append",
        default=[],
        metavar="REGEX",
        help="another pattern of placeholders, as in data.placeholder_patterns; repeatable",
    )
    parser.add_argument(
        "--tokenize",
        metavar="NAME",
        help="sacrebleu's tokenizer for BLEU (default: the language's)",
    )
    parser.add_argument(
        "--remove",
        default="",
        metavar="TEXT",
        help="remove this from all texts first, such as '@@ '",
    )
    parser.add_argument(
        "--database", metavar="FILE", help="SQLite file that execution_accuracy runs the texts on"
    )
    parser.add_argument(
        "--glossary",
        metavar="FILE",
        help="glossary for term_fidelity: a .csv, .tsv or .tbx file",
    )
    parser.add_argument(
        "--baseline", metavar="FILE", help="outputs of another system to compare with"
    )
    parser.add_argument(
        "--test",
        choices=("bootstrap", "randomisation"),
        help="paired test against --baseline: resampled test sets (default), or segments swapped "
        "at random",
    )
    parser.add_argument(
        "--samples",
        type=int,
        metavar="N",
        help="resampled test sets behind each interval (default: 1000; 0: none), or trials of "
        "randomisation (10000)",
    )
    arguments.add_json_argument(parser)
    return parser


def run(options: argparse.Namespace) -> int:
    """Runs the command; returns the exit status."""
    from pipeline.metrics import blind_spots, registry, scored_files, scoring
    from pipeline.reporting import score_tables

    output.check_writable(options.json)
    if options.test and not options.baseline:
        raise CommandError(
            "--test compares two systems: give the other system's outputs with --baseline FILE."
        )
    if options.samples is not None and options.samples < 0:
        raise CommandError(f"--samples must be 0 or more; got {options.samples}.")
    # A misspelt metric is reported before large files are read.
    names = registry.expand_metric_names(options.metrics)
    files = scored_files.ScoredFiles(
        options.references,
        options.hypotheses,
        options.sources,
        options.baseline,
        options.training,
        options.remove,
    )
    test = options.test or "bootstrap"
    settings = _scoring_options(options, test)
    texts, baseline = scored_files.read_files(files, settings)
    _warn_of_empty("hypotheses", texts.hypotheses)
    _warn_of_empty("references", ["".join(several) for several in texts.references])
    for sentence in blind_spots.blind_spots(names, texts, settings):
        progress.warn(sentence)
    line = output.printer(options)
    if baseline is None:
        results = {"outputs": scoring.score(names, texts, settings)}
        comparison = None
    else:
        own, other, comparison = scoring.score_pair(names, texts, baseline, settings, test)
        results = {"outputs": own, "baseline": other}
        if sentence := blind_spots.unknown_words(texts.hypotheses, baseline.hypotheses):
            progress.warn(sentence)
    line(score_tables.format_table(results))
    if breakdowns := score_tables.format_breakdowns(results):
        line(breakdowns)
    facts = {system: scoring.results_to_dict(of_system) for system, of_system in results.items()}
    if comparison is None:
        output.write_json(options.json, facts["outputs"])
        return 0
    line(score_tables.format_comparisons(comparison))
    output.write_json(options.json, {**facts, "comparison": scoring.results_to_dict(comparison)})
    return 0


def _warn_of_empty(kind: str, texts: Sequence[str]) -> None:
    if empty := sum(not text.strip() for text in texts):
        progress.warn(f"{empty} of {len(texts)} {kind} are empty.")


def _scoring_options(options: argparse.Namespace, test: str) -> "ScoringOptions":
    from pipeline.metrics.scoring_options import ScoringOptions
    from pipeline.recipes.choices import DEFAULT_PLACEHOLDERS
    from pipeline.recipes.data_rules import check_placeholders
    from pipeline.recipes.sections import DataConfig

    data = DataConfig(
        placeholders=DEFAULT_PLACEHOLDERS
        if options.placeholders is None
        else tuple(name.strip() for name in options.placeholders.split(",") if name.strip()),
        placeholder_patterns=tuple(options.placeholder_pattern),
    )
    check_placeholders(data)
    settings = ScoringOptions(
        language=options.language,
        tokenize=options.tokenize,
        tokenization=options.tokenization,
        placeholders=data.placeholders,
        placeholder_patterns=data.placeholder_patterns,
        rare_words=options.rare_words,
        database=options.database,
        glossary=options.glossary,
    )
    if options.samples is None:
        return settings
    key = "trials" if test == "randomisation" else "bootstrap_samples"
    return dataclasses.replace(settings, **{key: options.samples})
