"""Reads the texts to score from files, one segment per line."""

import collections
import dataclasses
import os
from collections.abc import Sequence

from pipeline.common import text_lines
from pipeline.metrics import scoring
from pipeline.metrics.base import MetricResult, ScoringError, count_of
from pipeline.metrics.registry import expand_metric_names
from pipeline.metrics.scored_texts import ScoredTexts
from pipeline.metrics.scoring_options import DEFAULT_OPTIONS, ScoringOptions


@dataclasses.dataclass(frozen=True)
class ScoredFiles:
    """Files of UTF-8 text, one segment per line, aligned line by line.

    Attributes:
        references: a path, or a list of paths. An empty line of the second file or a later one
            means no further reference.
        hypotheses: the outputs.
        sources: the sources; copies, fidelity and unseen words need them.
        baseline: the outputs of another system.
        training: text of the training data, not aligned: both sides for `unseen_copies`; only the
            target side for metrics of rare or frequent words, which count a word in all the files.
        remove: text to remove from all but the training text first, such as `@@ `, the joint of
            byte-pair encoding.
    """

    references: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
    hypotheses: str | os.PathLike[str]
    sources: str | os.PathLike[str] | None = None
    baseline: str | os.PathLike[str] | None = None
    training: Sequence[str | os.PathLike[str]] = ()
    remove: str = ""

    @property
    def reference_paths(self) -> list[str | os.PathLike[str]]:
        """The paths of all references."""
        if isinstance(self.references, str | os.PathLike):
            return [self.references]
        return list(self.references)


def score_files(
    files: ScoredFiles,
    metrics: str | Sequence[str] = scoring.DEFAULT_METRICS,
    options: ScoringOptions = DEFAULT_OPTIONS,
) -> dict[str, MetricResult]:
    """Scores a file of outputs against files of references.

    Args:
        files: the files; a baseline among them is ignored.
        metrics: names from `pipeline.metrics.registry.METRICS`, or one string with commas.
        options: how outputs are scored.

    Returns:
        A dict from metric name to `MetricResult`.

    Raises:
        ScoringError: as in `read_files` and `pipeline.metrics.scoring.score`.
    """
    # A misspelt metric is reported before large files are read.
    names = expand_metric_names(metrics)
    texts, _ = read_files(files, options)
    return scoring.score(names, texts, options)


def read_files(
    files: ScoredFiles, options: ScoringOptions = DEFAULT_OPTIONS
) -> tuple[ScoredTexts, ScoredTexts | None]:
    """Reads the texts that are scored.

    Args:
        files: the files.
        options: which decide how training text is cut.

    Returns:
        (texts of the system, texts of the baseline); None without a baseline.

    Raises:
        ScoringError: a file is missing, empty, without text, not UTF-8 or not aligned with the
            first references.
    """
    references = [read_lines(path, "references") for path in files.reference_paths]
    hypotheses = read_lines(files.hypotheses, "hypotheses")
    sources = read_lines(files.sources, "sources") if files.sources else None
    baseline = read_lines(files.baseline, "baseline") if files.baseline else None
    for kind, path, lines in (
        *(("references", *item) for item in zip(files.reference_paths, references)),
        ("hypotheses", files.hypotheses, hypotheses),
        ("sources", files.sources, sources),
        ("baseline", files.baseline, baseline),
    ):
        if lines is not None and len(lines) != len(references[0]):
            raise ScoringError(
                f"The {kind} file {path} has {count_of(len(lines), 'line')}, but the references "
                f"file {files.reference_paths[0]} has {count_of(len(references[0]), 'line')}; they "
                "must be aligned line by line."
            )

    def cleaned(lines: list[str]) -> list[str]:
        return [line.replace(files.remove, "") for line in lines] if files.remove else lines

    texts = ScoredTexts(
        hypotheses=cleaned(hypotheses),
        references=list(zip(*map(cleaned, references))),
        sources=None if sources is None else cleaned(sources),
        training_words=_training_words(files, options) if files.training else None,
    )
    return texts, None if baseline is None else texts.with_outputs(cleaned(baseline))


def _training_words(files: ScoredFiles, options: ScoringOptions) -> collections.Counter[str]:
    cut = options.tokenizer.words
    return collections.Counter(
        word
        for path in files.training
        for line in read_lines(path, "training")
        for word in cut(line)
    )


def read_lines(path: str | os.PathLike[str], kind: str) -> list[str]:
    """Returns a file's lines; see `text_lines.read_lines`.

    Raises:
        ScoringError: it cannot be read, is empty, or is not text.
    """
    return text_lines.read_lines(path, kind, ScoringError)
