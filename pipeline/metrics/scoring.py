"""Scoring outputs against references, in lists and in files; testing whether two systems differ.

Every metric (`pipeline.metrics`) is a sum of statistics over segments, and one value computed from
the sum. That one shape gives the score, its bootstrap interval (sums over resampled segments), the
paired tests of two systems (the same resamples for both, or segments swapped between them), and in
`pipeline.evaluation.tfma_metrics` a value that merges across Beam workers.

This module imports neither TensorFlow nor TFX: `verbatim score` starts at once.
"""

import codecs
import collections
import pathlib

from pipeline.metrics import resampling
from pipeline.metrics.base import DEFAULT_SEED, MetricResult, ScoringError, count_of
from pipeline.metrics.registry import create_metric, expand_metric_names
from pipeline.text.tokenization import Tokenizer

DEFAULT_METRICS = ("bleu", "chrf")


def score(
    metric_names,
    hypotheses,
    references,
    sources=None,
    training_words=None,
    bootstrap_samples=1000,
    seed=DEFAULT_SEED,
    language="en",
    tokenize=None,
    tokenization="text",
    database=None,
    scores=None,
):
    """Scores outputs against references.

    Args:
        metric_names: names out of `pipeline.metrics.registry.METRICS`, or one string with commas.
        hypotheses: list of N output strings.
        references: list of N reference strings, or of N lists or tuples of strings where segments
            have several. An empty string after a segment's first stands for no further reference.
        sources: list of N source strings; fidelity and unseen words need them.
        training_words: container of the words seen in training on either side, for `unseen_copies`;
            for metrics of rare or frequent words a mapping from each to how often the target side
            has it, such as a `collections.Counter`.
        bootstrap_samples: resampled test sets behind each interval; 0 for no intervals.
        seed: seed of the resampling; the default is sacrebleu's.
        language: language code of the outputs; it decides how BLEU and ROUGE cut words.
        tokenize: a sacrebleu tokenizer for BLEU instead of the language's (`13a`, `none`, `char`,
            `zh`, ...).
        tokenization: `whitespace` where the texts are tokenized already: BLEU, copies and
            repetitions go by these tokens.
        database: path of the SQLite file that `execution_accuracy` runs queries on.
        scores: list of N pairs (log-probability, number of tokens) of the first references by the
            model, for perplexity.

    Returns:
        A dict from metric name to `MetricResult`, in the order asked for.

    Raises:
        ScoringError: an unknown metric, lists of different lengths, no segments, or missing
            sources.
    """
    options = {
        "language": language,
        "tokenize": tokenize,
        "tokenization": tokenization,
        "database": database,
    }
    table = resampling.SegmentStatistics(
        metric_names, [hypotheses], references, sources, training_words, options, [scores]
    )
    resampled = table.resample(bootstrap_samples, seed)[0] if bootstrap_samples else {}
    return _results(table, 0, resampled, bootstrap_samples, seed)


def _results(table, system, resampled, samples, seed):
    """Returns a dict from metric name to the `MetricResult` of one system of a table, given by its
    number.
    """
    results = {}
    for name, metric in table.metrics.items():
        sums = table.sums(name, system)
        low, high = resampling.percentiles(resampled.get(name))
        results[name] = MetricResult(
            name=name,
            value=metric.value(sums),
            low=low,
            high=high,
            signature=metric.signature(samples, seed, table.reference_count),
            details=metric.details(sums),
            unit=metric.unit,
            lower_is_better=metric.lower_is_better,
        )
    return results


def segment_values(metric_name, hypotheses, references, **options):
    """Returns the value of a metric on each segment alone, a list of floats (None where it is
    undefined).

    Args:
        metric_name: a single metric that reads neither sources nor training text.
        hypotheses: list of strings.
        references: list of strings, or of tuples of strings, one for each hypothesis.
        **options: as for `create_metric`.

    Raises:
        ScoringError: there is no such metric.
    """
    metric = create_metric(metric_name, **options)
    return [
        metric.value(
            metric.add(
                metric.zero(), metric.statistics(hypothesis, resampling.as_tuple(reference), None)
            )
        )
        for hypothesis, reference in zip(hypotheses, references, strict=True)
    ]


def paired_bootstrap(
    metric_names,
    hypotheses,
    baseline_hypotheses,
    references,
    sources=None,
    training_words=None,
    bootstrap_samples=1000,
    seed=DEFAULT_SEED,
    language="en",
    tokenize=None,
    tokenization="text",
    database=None,
):
    """Tests whether a system differs from a baseline by more than chance, on shared resamples
    (Koehn, 2004).

    For sacrebleu's metrics the p-value is that of `sacrebleu --paired-bs`, from the same resamples;
    ours sum statistics by a matrix product, so that 20,000 segments need some 200 MB instead of
    gigabytes. For the others it is the share of resampled differences, shifted to mean 0, that
    reach the observed one. Both are (c + 1) / (samples + 1), and 1 for two systems that do not
    differ at all.

    Args:
        metric_names: names out of `pipeline.metrics.registry.METRICS`.
        hypotheses: outputs of the system.
        baseline_hypotheses: outputs of the system to compare with.
        references, sources, training_words, bootstrap_samples, seed, language, tokenize,
        tokenization,
            database: as in `score`.

    Returns:
        A dict from metric name to `Comparison`.

    Raises:
        ScoringError: as in `score`.
    """
    options = {
        "language": language,
        "tokenize": tokenize,
        "tokenization": tokenization,
        "database": database,
    }
    texts = (hypotheses, baseline_hypotheses, references, sources, training_words)
    return score_pair(
        metric_names, *texts, bootstrap_samples=bootstrap_samples, seed=seed, **options
    )[2]


def paired_randomisation(
    metric_names,
    hypotheses,
    baseline_hypotheses,
    references,
    sources=None,
    training_words=None,
    trials=10000,
    bootstrap_samples=1000,
    seed=DEFAULT_SEED,
    language="en",
    tokenize=None,
    tokenization="text",
    database=None,
):
    """Tests whether a system differs from a baseline by more than chance, by approximate
    randomisation (Riezler and Maxwell, 2005).

    If the systems do not differ, any segment's two outputs may as well be swapped. A trial swaps
    each segment's statistics with probability 1/2 and measures the two mixtures; with c trials
    whose difference is larger than the observed one,

        p = (c + 1) / (trials + 1)

    and 1 for two systems that do not differ at all. For sacrebleu's metrics it is the p-value of
    `sacrebleu --paired-ar`, from the same trials; for the others, shares of few equal steps, a
    difference as large counts too.

    Args:
        metric_names: names out of `pipeline.metrics.registry.METRICS`.
        hypotheses: outputs of the system.
        baseline_hypotheses: outputs of the system to compare with.
        trials: how often segments are swapped; sacrebleu's default is 10000.
        bootstrap_samples: resampled test sets behind the interval of the difference; 0 for no
            interval.
        references, sources, training_words, seed, language, tokenize, tokenization, database: as in
            `score`.

    Returns:
        A dict from metric name to `Comparison`.

    Raises:
        ScoringError: as in `score`.
    """
    options = {
        "language": language,
        "tokenize": tokenize,
        "tokenization": tokenization,
        "database": database,
    }
    texts = (hypotheses, baseline_hypotheses, references, sources, training_words)
    samples = {"bootstrap_samples": bootstrap_samples, "trials": trials}
    return score_pair(metric_names, *texts, test="randomisation", **samples, seed=seed, **options)[
        2
    ]


def score_pair(
    metric_names,
    hypotheses,
    baseline_hypotheses,
    references,
    sources=None,
    training_words=None,
    test="bootstrap",
    bootstrap_samples=1000,
    trials=10000,
    seed=DEFAULT_SEED,
    language="en",
    tokenize=None,
    tokenization="text",
    database=None,
    scores=(None, None),
):
    """Scores a system and a baseline and tests their difference, all from one reading of the texts.

    Args:
        metric_names: names out of `pipeline.metrics.registry.METRICS`.
        hypotheses: outputs of the system.
        baseline_hypotheses: outputs of the system to compare with.
        test: `bootstrap` as in `paired_bootstrap`, or `randomisation` as in `paired_randomisation`.
        trials: of the randomisation.
        scores: `score`'s of the system and of the baseline.
        references, sources, training_words, bootstrap_samples, seed, language, tokenize,
        tokenization,
            database: as in `score`.

    Returns:
        (results of the system, results of the baseline, comparisons): what `score`, `score` and the
        test would return.

    Raises:
        ScoringError: as in `score`, and too few samples or trials.
    """
    randomise = test == "randomisation"
    if randomise and trials < 1:
        raise ScoringError(f"Approximate randomisation needs at least 1 trial; got {trials}.")
    if not randomise and bootstrap_samples < 1:
        raise ScoringError(
            f"A paired bootstrap needs at least 1 resample; got {bootstrap_samples}."
        )
    options = {
        "language": language,
        "tokenize": tokenize,
        "tokenization": tokenization,
        "database": database,
    }
    systems = [hypotheses, baseline_hypotheses]
    table = resampling.SegmentStatistics(
        metric_names, systems, references, sources, training_words, options, scores
    )
    resampled = table.resample(bootstrap_samples, seed)
    swapped = table.swap(trials, seed) if randomise else None
    results = (
        _results(
            table, system, resampled[system] if bootstrap_samples else {}, bootstrap_samples, seed
        )
        for system in range(2)
    )
    return (*results, resampling.compare(table, resampled, bootstrap_samples, seed, swapped))


def score_files(
    references_paths,
    hypotheses_path,
    sources_path=None,
    metrics=DEFAULT_METRICS,
    training_paths=(),
    bootstrap_samples=1000,
    seed=DEFAULT_SEED,
    language="en",
    tokenize=None,
    tokenization="text",
    database=None,
    remove="",
):
    """Scores a file of outputs against files of references, one segment a line.

    Args:
        metrics: names out of `pipeline.metrics.registry.METRICS`, or one string with commas.
        references_paths, hypotheses_path, sources_path, training_paths, remove: as in `read_files`.
        bootstrap_samples, seed, language, tokenize, tokenization, database: as in `score`.

    Returns:
        A dict from metric name to `MetricResult`.

    Raises:
        ScoringError: as in `read_files` and `score`.
    """
    names = expand_metric_names(
        metrics
    )  # a misspelt metric is reported before large files are read
    paths = {
        "references_paths": references_paths,
        "hypotheses_path": hypotheses_path,
        "sources_path": sources_path,
    }
    texts = read_files(
        **paths, training_paths=training_paths, tokenization=tokenization, remove=remove
    )
    return score(
        names,
        **texts,
        bootstrap_samples=bootstrap_samples,
        seed=seed,
        language=language,
        tokenize=tokenize,
        tokenization=tokenization,
        database=database,
    )


def read_files(
    references_paths,
    hypotheses_path,
    sources_path=None,
    baseline_path=None,
    training_paths=(),
    tokenization="text",
    remove="",
):
    """Reads what `score`, `paired_bootstrap` and `paired_randomisation` take from files, one
    segment a line.

    Args:
        references_paths: UTF-8 text, one reference a line: a path, or a list of paths aligned line
            by line. An empty line of the second file or a later one stands for no further
            reference.
        hypotheses_path: UTF-8 text, one output a line.
        sources_path: UTF-8 text, one source a line; copies, fidelity and unseen words need it.
        baseline_path: UTF-8 text, one output of another system a line.
        training_paths: text files of the training data: both sides for `unseen_copies`; the target
            side alone for metrics of rare or frequent words, which count a word in all the files
            given.
        tokenization: how training text is cut, as in `score`.
        remove: text to take out of everything but the training text first, such as `@@ `, the joint
            of byte-pair encoding.

    Returns:
        A dict of the arguments `hypotheses`, `references`, `sources`, `training_words`, and
        `baseline_hypotheses` if asked.

    Raises:
        ScoringError: a file is missing, empty, without text, not UTF-8 or not aligned with the
            first references.
    """
    paths = (
        [references_paths]
        if isinstance(references_paths, str | pathlib.Path)
        else list(references_paths)
    )
    files = [("references", path) for path in paths]
    files += [
        ("hypotheses", hypotheses_path),
        ("sources", sources_path),
        ("baseline", baseline_path),
    ]
    texts = [read_lines(path, kind) if path else None for kind, path in files]
    for (kind, path), lines in zip(files, texts):
        if lines is not None and len(lines) != len(texts[0]):
            raise ScoringError(
                f"The {kind} file {path} has {count_of(len(lines), 'line')}, but the references "
                f"file {paths[0]} "
                f"has {count_of(len(texts[0]), 'line')}; they must be aligned line by line."
            )
    if remove:
        texts = [
            None if lines is None else [line.replace(remove, "") for line in lines]
            for lines in texts
        ]
    *references, hypotheses, sources, baseline = texts
    training_words = None
    if training_paths:
        cut = Tokenizer(tokenization).words
        training_words = collections.Counter(
            word
            for path in training_paths
            for line in read_lines(path, "training")
            for word in cut(line)
        )
    read = {"hypotheses": hypotheses, "references": list(zip(*references)), "sources": sources}
    return {
        **read,
        "training_words": training_words,
        **({} if baseline is None else {"baseline_hypotheses": baseline}),
    }


def read_lines(path, kind):
    """Returns a file's lines. Only line feeds end one:
    `str.splitlines` cuts at U+2028 too and loses alignment.
    """
    path = pathlib.Path(path)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise ScoringError(f"The {kind} file {path} does not exist.") from None
    except IsADirectoryError:
        raise ScoringError(
            f"The {kind} file {path} cannot be read: it is a folder; give a text file."
        ) from None
    except OSError as error:
        raise ScoringError(f"The {kind} file {path} cannot be read: {error.strerror}.") from None
    # ASCII letters in UTF-16 are UTF-8 too, with a NUL after or before each.
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in data:
        raise ScoringError(
            f"The {kind} file {path} is UTF-16 text, or no text at all: convert it to UTF-8."
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ScoringError(
            f"The {kind} file {path} is not UTF-8: line {line} cannot be read; convert the file "
            "to UTF-8."
        ) from None
    if not text:
        raise ScoringError(f"The {kind} file {path} is empty.")
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    if not text.strip():
        which = "its only line is" if len(lines) == 1 else f"all of its {len(lines)} lines are"
        raise ScoringError(f"The {kind} file {path} holds no text: {which} empty.")
    return [line.removesuffix("\r") for line in lines]


def results_to_dict(results):
    """Returns what `score` or a paired test returned as plain dicts, for JSON and for
    `pipeline.reporting.report`.
    """
    return {name: result.to_dict() for name, result in results.items()}
