"""Corpus metrics of generated text: BLEU, chrF, TER, NIST, ROUGE, and how faithfully tokens were copied.

Every metric here is a sum of statistics over segments, and one value computed from the sum. That one shape gives
the score, its bootstrap interval (sums over resampled segments), the paired tests of two systems (the same
resamples for both, or segments swapped between them), and in `pipeline.tfma_metrics` a value that merges across Beam workers.

This module imports neither TensorFlow nor TFX: `verbatim score` starts at once.
"""

import bisect
import codecs
import collections
import collections.abc
import dataclasses
import difflib
import functools
import itertools
import math
import pathlib
import sqlite3
import typing

import numpy as np
import regex

from pipeline import sql_execution
from pipeline.tokenization import Tokenizer

# sacrebleu's own default seed: with it, and the same number of resamples, our resamples are sacrebleu's.
DEFAULT_SEED = 12345
DEFAULT_METRICS = ("bleu", "chrf")

# sacrebleu's default tokenizer, 13a, cuts at spaces and punctuation: useless where words have no spaces between them.
_BLEU_TOKENIZERS = {"zh": "zh", "ja": "char", "th": "char", "km": "char", "lo": "char", "my": "char"}
_NO_SPACES = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Khmer}\p{Lao}\p{Myanmar}"
_UNICODE_WORD = regex.compile(rf"[{_NO_SPACES}]|(?:(?![{_NO_SPACES}])[\p{{L}}\p{{M}}\p{{N}}])+")

_BOOTSTRAP_CHUNK_ELEMENTS = 4_000_000  # resampled segment indices held at once: 32 MB of int64
_LONGEST_REPEATED_RUN = 4
_NIST_ORDER = 5

#: Words that training saw less often are rare (Arthur et al., 2016).
RARE_BELOW = 8
#: Where the ranges of `word_f1_by_frequency` begin (how often training saw a word), and those of `bleu_by_length`.
FREQUENCY_BUCKETS = (0, 1, 2, 3, 4, 5, 10, 100, 1000)
LENGTH_BUCKETS = (0, 10, 20, 30, 40, 50, 60)


class ScoringError(ValueError):
    """Texts that cannot be scored; its message is one sentence for the user."""


@dataclasses.dataclass(frozen=True)
class MetricResult:
    """One metric of one system.

    Attributes:
        name: the metric's name, such as `bleu`.
        value: the corpus value; None where it is undefined (a share of nothing).
        low: lower end of the 95 % interval, None without bootstrap: the 2.5th percentile over resampled test sets.
        high: upper end, the 97.5th percentile.
        signature: what one must know to get the same number again.
        details: counts and parts, ready for JSON.
        unit: `points` (0 to 100, for TER also above) or `share` (0 to 1).
        lower_is_better: True for error rates.
    """

    name: str
    value: float | None
    low: float | None = None
    high: float | None = None
    signature: str = ""
    details: dict[str, typing.Any] = dataclasses.field(default_factory=dict)
    unit: str = "points"
    lower_is_better: bool = False

    def to_dict(self):
        """Returns the result as a dict that `json.dumps` takes."""
        return dataclasses.asdict(self)


@dataclasses.dataclass(frozen=True)
class Comparison:
    """A paired test of a system against a baseline on one metric.

    Attributes:
        name: the metric's name.
        difference: system minus baseline; None where either is undefined.
        low: 2.5th percentile of the difference over resampled test sets.
        high: 97.5th percentile.
        p_value: how often chance alone would give a difference this large; two-sided.
        signature: test, number of resamples or trials, and seed.
    """

    name: str
    difference: float | None
    low: float | None
    high: float | None
    p_value: float | None
    signature: str

    def to_dict(self):
        """Returns the comparison as a dict that `json.dumps` takes."""
        return dataclasses.asdict(self)


class Metric:
    """A corpus metric as sums over segments.

    Attributes:
        size: how many statistics a segment has; 0 for a `SparseMetric`, which names them itself.
        unit, lower_is_better: as in `MetricResult`.
        needs_sources, needs_training_words: what besides outputs and references it reads.
        needs_training_counts: whether it asks how often a word was seen in training, not only whether.
        needs_scores: whether it reads, in the output's place, what a model's signature `score` says of the reference.
        always_defined: whether it has a value for any segments, or may find nothing to measure.
    """

    size = 0
    unit = "points"
    lower_is_better = False
    needs_sources = False
    needs_training_words = False
    needs_training_counts = False
    needs_scores = False
    always_defined = True
    # sacrebleu publishes a paired test of its own for its metrics; we use its formula for those.
    uses_sacrebleu_test = False

    def statistics(self, hypothesis, references, source):
        """Returns one segment's statistics, a list of `size` numbers.

        Args:
            hypothesis: the output, a string; where `needs_scores`, log-probability and number of tokens of the first reference.
            references: a tuple of one string or more; each metric says how it reads several.
            source: the source, a string; None unless `needs_sources`.
        """
        raise NotImplementedError

    def zero(self):
        """Returns the sums of no segment."""
        return np.zeros(self.size, np.float64)

    def add(self, sums, statistics):
        """Returns sums with a segment's statistics, or other sums, added; `sums` may be changed."""
        return sums + np.asarray(statistics, np.float64)

    def tabulate(self, systems):
        """Returns (tables, evaluate): what resampling needs.

        Args:
            systems: for each system the list of its segments' statistics.

        Returns:
            For each system a table with a method `sums(weights)`, and a function from one such row of sums to the value.
        """
        return [_DenseTable(statistics) for statistics in systems], self.value

    def value(self, sums):
        """Returns the corpus value from statistics summed over segments, or None where it is undefined."""
        raise NotImplementedError

    def details(self, sums):
        """Returns counts and parts to show beside the value."""
        raise NotImplementedError

    def signature(self, samples=0, seed=DEFAULT_SEED, references=1):
        """Returns what one must know to get the same number again.

        Args:
            samples: resampled test sets behind the interval; 0 for none.
            seed: their seed.
            references: how many references a segment has; None where segments have different numbers.
        """
        raise NotImplementedError


class SparseMetric(Metric):
    """A corpus metric of so many statistics, such as n-gram counts, that a segment names those that it has.

    `statistics` returns a `collections.Counter`, and sums are one too.
    """

    def zero(self):
        return collections.Counter()

    def add(self, sums, statistics):
        sums.update(statistics)
        return sums

    def tabulate(self, systems):
        columns = {}
        for counter in itertools.chain(*systems):
            for key in counter:
                columns.setdefault(key, len(columns))
        return [_SparseTable(statistics, columns) for statistics in systems], self.evaluator(list(columns))

    def evaluator(self, keys):
        """Returns a function from an array of sums, in the order of `keys`, to the corpus value."""
        raise NotImplementedError

    def value(self, sums):
        return self.evaluator(list(sums))(np.array(list(sums.values()), np.float64))


class _DenseTable:
    """The statistics of one system's segments, a row each."""

    def __init__(self, statistics):
        self._rows = np.array(statistics, np.float64)

    def sums(self, weights):
        """Yields the weighted sum of the rows for each row of `weights`, float64 `[samples, segments]`."""
        yield from weights @ self._rows


class _SparseTable:
    """As `_DenseTable`, of Counters: only what a segment has is held, and one row of sums at a time is made."""

    def __init__(self, statistics, columns):
        self._rows = np.repeat(np.arange(len(statistics)), [len(counter) for counter in statistics])
        keys = itertools.chain.from_iterable(statistics)
        self._columns = np.fromiter((columns[key] for key in keys), np.int64, len(self._rows))
        counts = itertools.chain.from_iterable(counter.values() for counter in statistics)
        self._counts = np.fromiter(counts, np.float64, len(self._rows))
        self._width = len(columns)

    def sums(self, weights):
        """Yields the weighted sum of the rows for each row of `weights`, float64 `[samples, segments]`."""
        for row in weights:
            yield np.bincount(self._columns, self._counts * row[self._rows], self._width)


class _Share(Metric):
    """A part of a whole, both summed over segments: statistics are (part, whole).

    Attributes:
        counted: what whole and part are called in `details`.
    """

    size = 2
    unit = "share"
    counted = ("n", "part")

    def value(self, sums):
        return _ratio(sums[0], sums[1])

    def details(self, sums):
        whole, part = self.counted
        return {whole: int(sums[1]), part: int(sums[0])}


class _SacrebleuMetric(Metric):
    """A metric of sacrebleu. Its statistics are the ones that sacrebleu's own bootstrap sums.

    Of several references BLEU takes the largest count of each n-gram and the closest length, chrF the reference with the
    best F-score, TER the fewest edits and the mean length: sacrebleu's own ways.
    """

    uses_sacrebleu_test = True

    def __init__(self, scorer, size):
        self._scorer = scorer
        self.size = size

    def statistics(self, hypothesis, references, source):
        return self._scorer._extract_corpus_statistics([hypothesis], [[text] for text in references])[0]

    def _score(self, sums):
        return self._scorer._compute_score_from_stats(np.asarray(sums, np.float64).tolist())

    def value(self, sums):
        return float(self._score(sums).score)

    def signature(self, samples=0, seed=DEFAULT_SEED, references=1):
        self._scorer.num_refs = references or -1
        self._scorer.n_bootstrap = samples or None
        self._scorer.seed = str(seed) if samples else None
        return self._scorer.get_signature().format()


class Bleu(_SacrebleuMetric):
    """BLEU (Papineni et al., 2002), 0 to 100: brevity penalty times the geometric mean of 1- to 4-gram precisions."""

    def __init__(self, language="en", tokenize=None, tokenization="text", **unused):
        super().__init__(_sacrebleu_bleu(language, tokenize, tokenization)[0], size=10)

    def details(self, sums):
        score = self._score(sums)
        return {
            "precisions": [float(precision) for precision in score.precisions],
            "brevity_penalty": float(score.bp),
            "hypothesis_length": int(score.sys_len),
            "reference_length": int(score.ref_len),
        }


class BleuByLength(Bleu):
    """BLEU, and in `details` the BLEU of segments of like reference length (Neubig et al., 2019, compare-mt).

    The length is in BLEU's own words, of the reference whose length is closest to the output's.
    """

    def __init__(self, **options):
        super().__init__(**options)
        self._segment_size = self.size
        self.size *= len(LENGTH_BUCKETS)

    def statistics(self, hypothesis, references, source):
        counts = super().statistics(hypothesis, references, source)
        table = np.zeros((len(LENGTH_BUCKETS), self._segment_size))
        table[bisect.bisect_right(LENGTH_BUCKETS, counts[1]) - 1] = counts
        return table.ravel()

    def _score(self, sums):
        return super()._score(sums.reshape(-1, self._segment_size).sum(axis=0))

    def details(self, sums):
        by_length = []
        for words, counts in zip(bucket_names(LENGTH_BUCKETS), sums.reshape(-1, self._segment_size)):
            bleu = float(super()._score(counts).score) if counts.any() else None
            by_length.append({"words": words, "bleu": bleu, "reference_length": int(counts[1])})
        return {**super().details(sums), "by_length": by_length}


def _sacrebleu_bleu(language, tokenize, tokenization):
    """Returns sacrebleu's BLEU, and the name of its tokenizer."""
    import sacrebleu

    # Text that is tokenized already is measured as it is, as published results on such corpora are.
    tokenize = tokenize or ("none" if tokenization == "whitespace" else bleu_tokenizer(language))
    try:
        return sacrebleu.BLEU(tokenize=tokenize), tokenize
    except (AssertionError, ValueError, KeyError, RuntimeError, ImportError):
        names = ", ".join(name for name in sacrebleu.BLEU.TOKENIZERS)
        raise ScoringError(f"BLEU has no usable tokenizer '{tokenize}'; sacrebleu's are {names}.") from None


class Nist(SparseMetric):
    """NIST (Doddington, 2002), from 0 up, some 10 for good systems: n-gram precisions weighted by information.

        NIST = penalty * sum over n = 1..5 of
            sum over output n-grams w that a reference holds (clipped) of info(w) / number of output n-grams
        info(w_1 ... w_n) = log2(count of w_1 ... w_n-1 / count of w_1 ... w_n), counts of all references
            (for n = 1 the first is the number of reference words)
        penalty = exp(ln 0.5 * (ln(output length / reference length) / ln 1.5)^2) for outputs that are shorter, else 1

    It is what `nltk.translate.nist_score.corpus_nist` computes, with BLEU's words: of several references, a segment takes
    for each n the one that gives it most (the longest of several such). Which one that is depends on all segments, so
    where references match differently the alternatives themselves are the statistic. An n for which no output is long
    enough counts 0, and so does NIST without reference words; NLTK divides by 0 there.

    A resampled test set holds some segments twice, so its n-grams carry less information: the bootstrap interval lies
    somewhat low, and may not hold the value.
    """

    def __init__(self, language="en", tokenize=None, tokenization="text", **unused):
        scorer, self._tokenize = _sacrebleu_bleu(language, tokenize, tokenization)
        self._words = lambda text: scorer.tokenizer(text.rstrip()).split()

    def statistics(self, hypothesis, references, source):
        found, references = self._words(hypothesis), list(map(self._words, references))
        counts = collections.Counter()
        for order in range(1, _NIST_ORDER + 1):
            output = collections.Counter(_ngrams(found, order))
            counts["output", order] = output.total()
            lengths = {}
            for wanted in references:
                ngrams = collections.Counter(_ngrams(wanted, order))
                for ngram, count in ngrams.items():
                    counts["reference", ngram] += count
                matched = tuple((output & ngrams).items())
                lengths[matched] = max(len(wanted), lengths.get(matched, 0))
            if len(lengths) > 1:
                counts["best", order, tuple(lengths.items())] = 1
                continue
            for matched, length in lengths.items():
                counts[("length",)] += length
                for ngram, count in matched:
                    counts["match", ngram] += count
        return counts

    def evaluator(self, keys):
        position = {key: index for index, key in enumerate(keys)}
        ngrams = {key[1]: number for number, key in enumerate(key for key in keys if key[0] == "reference")}
        reference = np.array([position["reference", ngram] for ngram in ngrams], np.int64)
        prefix = np.array([ngrams.get(ngram[:-1], -1) for ngram in ngrams], np.int64)
        match = np.array(
            [(position[key], ngrams[key[1]], len(key[1])) for key in keys if key[0] == "match"], np.int64
        ).reshape(-1, 3)
        choices = [key for key in keys if key[0] == "best"]
        choice = np.array([(position[key], key[1]) for key in choices], np.int64).reshape(-1, 2)
        alternatives = [(number, *item) for number, key in enumerate(choices) for item in key[2]]
        group = np.array([number for number, _, _ in alternatives], np.int64)
        lengths = np.array([length for _, _, length in alternatives], np.float64)
        ends = np.searchsorted(group, np.arange(len(choices)), side="right") - 1
        parts = np.array(
            [
                (number, ngrams[ngram], count)
                for number, (_, matched, _) in enumerate(alternatives)
                for ngram, count in matched
            ],
            np.int64,
        ).reshape(-1, 3)
        chosen_among = np.unique(parts[:, 1])

        def evaluate(sums):
            counts = sums[reference]
            total = counts[prefix < 0].sum()
            if not total:
                return 0.0
            # A resampled test set may lack an n-gram; its weight is then asked for by none of its segments.
            shares = np.where(prefix < 0, total, counts[prefix]) / np.where(counts > 0, counts, np.inf)
            shares = np.where(counts > 0, shares, 1.0)
            weights = np.log(shares) / math.log(2)
            # To NLTK's last bit, which decides between references that are worth the same.
            weights[chosen_among] = [math.log(share, 2) for share in shares[chosen_among].tolist()]
            gains = np.bincount(match[:, 2], sums[match[:, 0]] * weights[match[:, 1]], _NIST_ORDER + 1)
            length = sums[position["length",]] if ("length",) in position else 0.0
            if choices:
                scores = np.bincount(parts[:, 0], weights[parts[:, 1]] * parts[:, 2], len(group))
                best = np.lexsort((lengths, scores, group))[ends]
                times = sums[choice[:, 0]]
                gains = gains + np.bincount(choice[:, 1], times * scores[best], _NIST_ORDER + 1)
                length += times @ lengths[best]
            totals = [sums[position["output", order]] for order in range(1, _NIST_ORDER + 1)]
            precision = sum(gain / total for gain, total in zip(gains[1:], totals) if total)
            return float(precision * _nist_penalty(_NIST_ORDER * totals[0], length))

        return evaluate

    def details(self, sums):
        return {
            "hypothesis_length": int(sums["output", 1]),
            "reference_words": int(
                sum(count for key, count in sums.items() if key[0] == "reference" and len(key[1]) == 1)
            ),
        }

    def signature(self, samples=0, seed=DEFAULT_SEED, references=1):
        return _join_signature(f"case:mixed|n:{_NIST_ORDER}|tok:{self._tokenize}", samples, seed, references)


def _ngrams(words, order):
    return zip(*(words[begin:] for begin in range(order)))


def _nist_penalty(length, reference_length):
    if not length:
        return 0.0
    # An output of two thirds of the reference's length loses half.
    return math.exp(math.log(0.5) * (math.log(min(1.0, length / reference_length)) / math.log(1.5)) ** 2)


class Chrf(_SacrebleuMetric):
    """chrF2 (Popović, 2015), 0 to 100: F-score, recall weighing twice, of character n-grams up to 6."""

    def __init__(self, **unused):
        import sacrebleu

        super().__init__(sacrebleu.CHRF(), size=18)

    def details(self, sums):
        return {"characters": int(sums[0]), "reference_characters": int(sums[1])}


class Ter(_SacrebleuMetric):
    """TER (Snover et al., 2006): 100 * (insertions + deletions + substitutions + shifts) / reference words."""

    lower_is_better = True

    def __init__(self, **unused):
        import sacrebleu

        super().__init__(sacrebleu.TER(), size=2)

    def details(self, sums):
        return {"edits": float(sums[0]), "reference_words": float(sums[1])}


class Rouge(Metric):
    """ROUGE-1, -2 or -L (Lin, 2004), 0 to 100, mean over segments, by Google's `rouge-score`: F1, or recall.

        recall = matched n-grams / reference n-grams;  F1 = 2 * precision * recall / (precision + recall)

    with the longest common subsequence for n-grams in ROUGE-L. Of several references a segment takes the one with the best
    F1, for recall too, as `rouge-score` does.

    English is lower-cased, reduced to a-z and 0-9 and Porter-stemmed, as in published results. That would cut `é`
    out of French and leave nothing of Japanese, so other languages are cut at Unicode word boundaries (single
    characters where words have no spaces between them), lower-cased and not stemmed.
    """

    size = 4

    def __init__(self, kind, measure="f1", language="en", **unused):
        from rouge_score import rouge_scorer

        self._kind = kind
        self._measure = measure
        self._english = _primary_language(language) == "en"
        tokenizer = _RougeTokenizer(self._english)
        self._scorer = rouge_scorer.RougeScorer([kind], tokenizer=tokenizer)

    def statistics(self, hypothesis, references, source):
        score = self._scorer.score_multi(references, hypothesis)[self._kind]
        return [score.fmeasure, score.recall, score.precision, 1]

    def value(self, sums):
        return self.details(sums)[self._measure]

    def details(self, sums):
        return {name: _ratio(100.0 * part, sums[3]) for name, part in zip(("f1", "recall", "precision"), sums)}

    def signature(self, samples=0, seed=DEFAULT_SEED, references=1):
        from importlib import metadata

        tokens = "a-z0-9|stem:porter" if self._english else "unicode|stem:no"
        version = metadata.version("rouge-score")
        return _join_signature(f"{self._measure}|tok:{tokens}|rouge-score:{version}", samples, seed, references)


class ExactMatch(_Share):
    """Share of the outputs that equal a reference; how much white space stands where makes no difference."""

    counted = ("n", "matches")

    def __init__(self, **unused):
        pass

    def statistics(self, hypothesis, references, source):
        found = hypothesis.split()
        return [any(found == reference.split() for reference in references), 1]

    def signature(self, samples=0, seed=DEFAULT_SEED, references=1):
        return _join_signature("case:mixed|space:runs are one", samples, seed, references)


class TokenAccuracy(_Share):
    """Share of the positions at which output and reference hold the same token, of those that the longer one has.

        sum over segments of |{i: output_i = reference_i}| / sum over segments of max(output tokens, reference tokens)

    It suits formal languages, where a token has its place; a token too many early on costs all that follow. Of several
    references a segment takes the one with the largest share.
    """

    counted = ("positions", "equal")

    def __init__(self, tokenization="text", **unused):
        self._tokens = Tokenizer(tokenization).tokens
        self._tokenization = tokenization

    def statistics(self, hypothesis, references, source):
        found = self._tokens(hypothesis)
        counts = []
        for wanted in map(self._tokens, references):
            counts.append([sum(one == other for one, other in zip(found, wanted)), max(len(found), len(wanted))])
        return max(counts, key=_share)

    def signature(self, samples=0, seed=DEFAULT_SEED, references=1):
        return _join_signature(f"case:mixed|tok:{self._tokenization}", samples, seed, references)


class ExecutionAccuracy(Metric):
    """Share of the outputs that, run as SQL, answer what a reference answers (`pipeline.sql_execution`).

    Rows are compared as a multiset, in their order where the reference orders them. An output that fails, harms or does
    not end is wrong. A segment no reference of which can be run says nothing about its output: it is counted apart, as
    `gold_failed`.
    """

    size = 3
    unit = "share"
    always_defined = False

    def __init__(self, database=None, **unused):
        if not database:
            raise ScoringError(
                "The metric 'execution_accuracy' runs queries on a database: name it with evaluation.database, or --database."
            )
        self._database = database

    def statistics(self, hypothesis, references, source):
        executor = sql_execution.executor_of(str(self._database))
        answers = {executor.same_answer(hypothesis, reference) for reference in references}
        return [True in answers, answers != {None}, answers == {None}]

    def value(self, sums):
        return _ratio(sums[0], sums[1])

    def details(self, sums):
        return {"n": int(sums[1]), "correct": int(sums[0]), "gold_failed": int(sums[2])}

    def signature(self, samples=0, seed=DEFAULT_SEED, references=1):
        version = f"sqlite:{sqlite3.sqlite_version}|seconds:{sql_execution.TIME_LIMIT_SECONDS:g}"
        return _join_signature(f"rows:multiset unless ordered|{version}", samples, seed, references)


class Fidelity(Metric):
    """Share of the outputs that hold exactly the source's tokens of one kind, each as often as the source does.

    The share is over the segments whose source holds at least one; `details` has it over all segments too, where a
    token that the output invented counts as broken. Order does not matter: languages order things differently.
    """

    size = 4
    unit = "share"
    needs_sources = True
    always_defined = False

    def __init__(self, kind, tokenization="text", **unused):
        tokenizer = Tokenizer(tokenization)
        self._find = {"placeholders": tokenizer.placeholders, "protected": tokenizer.protected_tokens}[kind]
        self._kind = kind

    def statistics(self, hypothesis, references, source):
        wanted = collections.Counter(self._find(source))
        kept = collections.Counter(self._find(hypothesis)) == wanted
        return [bool(wanted) and kept, bool(wanted), kept, 1]

    def value(self, sums):
        return _ratio(sums[0], sums[1])

    def details(self, sums):
        return {
            "n": int(sums[1]),
            "broken": int(sums[1] - sums[0]),
            "all_segments": _ratio(sums[2], sums[3]),
            "all_n": int(sums[3]),
            "invented": int((sums[3] - sums[1]) - (sums[2] - sums[0])),
        }

    def signature(self, samples=0, seed=DEFAULT_SEED, references=1):
        return _join_signature(f"tokens:{self._kind}|equal:multiset", samples, seed, references)


class UnseenCopies(_Share):
    """Share of the unseen words to be copied that were copied.

    A word (or protected token) is one to be copied if it stands in the source and in a reference and was seen
    in training on neither side; it was copied if it stands in the output. Each counts once a segment.
    """

    counted = ("n", "copied")
    needs_sources = True
    needs_training_words = True
    always_defined = False

    def __init__(self, training_words=frozenset(), tokenization="text", **unused):
        self._training_words = training_words
        self._words = Tokenizer(tokenization).words

    def statistics(self, hypothesis, references, source):
        shared = set(self._words(source)).intersection(itertools.chain(*map(self._words, references)))
        unseen = {word for word in shared if word not in self._training_words}
        return [len(unseen.intersection(self._words(hypothesis))) if unseen else 0, len(unseen)]

    def signature(self, samples=0, seed=DEFAULT_SEED, references=1):
        return _join_signature("case:mixed|words:distinct per segment", samples, seed, references)


class CopyRate(_Share):
    """Share of the output's words that stand in the source: how much a system copies, rightly or not.

        sum over segments of |{i: output_i in source}| / sum over segments of output words

    Words and protected tokens count, punctuation does not. Neither high nor low is good in itself: compare it with the
    references' own.
    """

    counted = ("words", "in_source")
    needs_sources = True
    always_defined = False

    def __init__(self, tokenization="text", **unused):
        self._words = Tokenizer(tokenization).words

    def statistics(self, hypothesis, references, source):
        found, offered = self._words(hypothesis), set(self._words(source))
        return [sum(word in offered for word in found), len(found)]

    def signature(self, samples=0, seed=DEFAULT_SEED, references=1):
        return _join_signature("case:mixed|words:running", samples, seed, references)


class CopyPrecision(_Share):
    """Share of the output's words that stand in the source which a reference holds too: how much of the copying is right.

        sum over segments and words w of the source of min(count in output, count in reference)
        / the same sum of counts in output

    Words and protected tokens count, punctuation does not. Of several references a segment takes the one with most of them.
    """

    counted = ("copied", "in_reference")
    needs_sources = True
    always_defined = False

    def __init__(self, tokenization="text", **unused):
        self._words = Tokenizer(tokenization).words

    def statistics(self, hypothesis, references, source):
        offered = set(self._words(source))
        copied = collections.Counter(word for word in self._words(hypothesis) if word in offered)
        right = (copied & collections.Counter(self._words(reference)) for reference in references)
        return [max(sum(words.values()) for words in right), sum(copied.values())]

    def signature(self, samples=0, seed=DEFAULT_SEED, references=1):
        return _join_signature("case:mixed|words:running, clipped", samples, seed, references)


class RareWordRecall(_Share):
    """Share of the references' rare words that the outputs hold; rare is what training saw less than 8 times.

        sum over segments and rare words w of min(count of w in output, count in reference)
        / sum over segments and rare words w of count in reference

    Rare words and their recall are as in Arthur et al. (2016), where the count is that of the target side. Words and
    protected tokens count, punctuation does not. Of several references a segment takes the one with the largest share,
    of those that hold a rare word.
    """

    counted = ("n", "found")
    needs_training_words = True
    needs_training_counts = True
    always_defined = False

    def __init__(self, training_words=None, tokenization="text", **unused):
        self._counts = training_words
        self._words = Tokenizer(tokenization).words

    def statistics(self, hypothesis, references, source):
        found = collections.Counter(self._words(hypothesis))
        shares = []
        for reference in references:
            rare = collections.Counter(
                word for word in self._words(reference) if self._counts.get(word, 0) < RARE_BELOW
            )
            if rare:
                shares.append([(found & rare).total(), rare.total()])
        return max(shares, key=_share, default=[0, 0])

    def signature(self, samples=0, seed=DEFAULT_SEED, references=1):
        return _join_signature(f"case:mixed|rare:<{RARE_BELOW}|words:running, clipped", samples, seed, references)


class WordF1ByFrequency(Metric):
    """F1 of words, and in `details` the same for words of like frequency in training (Neubig et al., 2019, compare-mt).

        precision = matches / output words, recall = matches / reference words, F1 = their harmonic mean
        matches = sum over segments and words w of min(count of w in output, count in reference)

    A bucket counts only its own words, so precision is of the bucket's words in the output. Words and protected tokens
    count, punctuation does not. Of several references a segment takes the one with the best F1 of all words.
    """

    size = 3 * len(FREQUENCY_BUCKETS)
    unit = "share"
    needs_training_words = True
    needs_training_counts = True
    always_defined = False

    def __init__(self, training_words=None, tokenization="text", **unused):
        self._counts = training_words
        self._words = Tokenizer(tokenization).words

    def statistics(self, hypothesis, references, source):
        found = collections.Counter(self._words(hypothesis))
        best = max(
            (collections.Counter(self._words(reference)) for reference in references), key=functools.partial(_f1, found)
        )
        table = np.zeros((len(FREQUENCY_BUCKETS), 3))
        for column, counts in enumerate((found & best, found, best)):
            for word, count in counts.items():
                table[bisect.bisect_right(FREQUENCY_BUCKETS, self._counts.get(word, 0)) - 1, column] += count
        return table.ravel()

    def value(self, sums):
        return self._f1_of(sums.reshape(-1, 3).sum(axis=0))

    @staticmethod
    def _f1_of(counts):
        return _ratio(2 * counts[0], counts[1] + counts[2])

    def details(self, sums):
        return {
            "by_frequency": [
                {
                    "seen": seen,
                    "f1": self._f1_of(counts),
                    "matches": int(counts[0]),
                    "output_words": int(counts[1]),
                    "reference_words": int(counts[2]),
                }
                for seen, counts in zip(bucket_names(FREQUENCY_BUCKETS), sums.reshape(-1, 3))
            ]
        }

    def signature(self, samples=0, seed=DEFAULT_SEED, references=1):
        return _join_signature("case:mixed|words:running, clipped", samples, seed, references)


class RepetitionRate(_Share):
    """Share of the outputs that say a run of one to four words twice in a row, where no reference does.

    It is the stutter of attention models that coverage is to cure (See et al., 2017).
    """

    counted = ("n", "repeating")
    lower_is_better = True

    def __init__(self, tokenization="text", **unused):
        self._words = Tokenizer(tokenization).words

    def statistics(self, hypothesis, references, source):
        excused = any(_has_repeated_run(self._words(reference)) for reference in references)
        return [_has_repeated_run(self._words(hypothesis)) and not excused, 1]

    def signature(self, samples=0, seed=DEFAULT_SEED, references=1):
        return _join_signature(f"run:1-{_LONGEST_REPEATED_RUN} words", samples, seed, references)


class Perplexity(Metric):
    """Perplexity of the references by a model, from 1 up: for each token, or for each word.

        perplexity = exp(- sum over segments of log p(reference | source) / sum over segments of N)

    N is the number of tokens that the model's signature `score` counts, or the number of words and punctuation marks, whatever
    units the model cuts them into, so that models of different units compare; the end of the text is one more of either. A word
    that the vocabulary lacks counts with the probability that it is copied, where it stands in the source, else with that of
    `[UNK]`. Of several references the first is read.
    """

    size = 2
    lower_is_better = True
    needs_scores = True

    def __init__(self, per, tokenization="text", **unused):
        self._per = per
        self._count = Tokenizer(tokenization).count

    def statistics(self, hypothesis, references, source):
        log_probability, tokens = hypothesis
        return [log_probability, tokens if self._per == "token" else self._count(references[0]) + 1]

    def value(self, sums):
        return perplexity_of(*sums)

    def details(self, sums):
        return {"log_probability": float(sums[0]), f"{self._per}s": int(sums[1])}

    def signature(self, samples=0, seed=DEFAULT_SEED, references=1):
        return _join_signature(f"per:{self._per}|end:counted|unknown:copied else [UNK]", samples, seed, references)


def perplexity_of(log_probability, count):
    """Returns exp(- log_probability / count); infinite where it is beyond all numbers, None where `count` is 0."""
    if not count:
        return None
    nll = -log_probability / count
    return math.exp(nll) if nll < 700 else math.inf


_FACTORIES = {
    "bleu": Bleu,
    "chrf": Chrf,
    "bleu_by_length": BleuByLength,
    "nist": Nist,
    "ter": Ter,
    "rouge1": functools.partial(Rouge, "rouge1"),
    "rouge2": functools.partial(Rouge, "rouge2"),
    "rougeL": functools.partial(Rouge, "rougeL"),
    "rouge1_recall": functools.partial(Rouge, "rouge1", "recall"),
    "rouge2_recall": functools.partial(Rouge, "rouge2", "recall"),
    "rougeL_recall": functools.partial(Rouge, "rougeL", "recall"),
    "exact_match": ExactMatch,
    "token_accuracy": TokenAccuracy,
    "execution_accuracy": ExecutionAccuracy,
    "placeholder_fidelity": functools.partial(Fidelity, "placeholders"),
    "protected_fidelity": functools.partial(Fidelity, "protected"),
    "copy_rate": CopyRate,
    "copy_precision": CopyPrecision,
    "unseen_copies": UnseenCopies,
    "rare_word_recall": RareWordRecall,
    "word_f1_by_frequency": WordF1ByFrequency,
    "repetition_rate": RepetitionRate,
    "perplexity": functools.partial(Perplexity, "token"),
    "word_perplexity": functools.partial(Perplexity, "word"),
}
_GROUPS = {"rouge": ("rouge1", "rouge2", "rougeL")}

#: Every name that `score` takes; `rouge` stands for `rouge1`, `rouge2` and `rougeL`.
METRICS = ("bleu", "chrf", "ter", "rouge", *(name for name in _FACTORIES if name not in ("bleu", "chrf", "ter")))

#: What people call each metric.
LABELS = {
    "bleu": "BLEU",
    "chrf": "chrF",
    "bleu_by_length": "BLEU (by length)",
    "nist": "NIST",
    "ter": "TER",
    "rouge1": "ROUGE-1 F1",
    "rouge2": "ROUGE-2 F1",
    "rougeL": "ROUGE-L F1",
    "rouge1_recall": "ROUGE-1 recall",
    "rouge2_recall": "ROUGE-2 recall",
    "rougeL_recall": "ROUGE-L recall",
    "exact_match": "Exact match",
    "token_accuracy": "Token accuracy",
    "execution_accuracy": "Execution accuracy",
    "placeholder_fidelity": "Placeholder fidelity",
    "protected_fidelity": "Protected-token fidelity",
    "copy_rate": "Copy rate",
    "copy_precision": "Copy precision",
    "unseen_copies": "Unseen words copied",
    "rare_word_recall": "Rare-word recall",
    "word_f1_by_frequency": "Word F1",
    "repetition_rate": "Repetition rate",
    "perplexity": "Perplexity",
    "word_perplexity": "Perplexity per word",
    # Of language models alone; measured by `pipeline.perplexity_of_text`, not here.
    "perplexity_with_copies": "Perplexity, copied words credited",
    "passage_perplexity": "Perplexity of passages",
    "validation_perplexity": "Perplexity of the validation stream",
}


def bleu_tokenizer(language):
    """Returns the name of sacrebleu's tokenizer for a language code: `13a` unless words have no spaces."""
    return _BLEU_TOKENIZERS.get(_primary_language(language), "13a")


def create_metric(name, **options):
    """Returns the `Metric` of a name.

    Args:
        name: a name out of `METRICS`, groups (`rouge`) excepted.
        **options: `language`, `tokenize`, `tokenization`, `database`, `training_words`; a metric ignores those that it has no use for.

    Raises:
        ScoringError: there is no such metric or tokenizer.
    """
    if name not in _FACTORIES:
        raise _unknown_metric(name)
    return _FACTORIES[name](**options)


def _unknown_metric(name):
    close = difflib.get_close_matches(name, METRICS, n=1)
    meant = f"did you mean '{close[0]}'? The" if close else "the"
    return ScoringError(f"There is no metric '{name}'; {meant} metrics are {', '.join(METRICS)}.")


def options_of(recipe):
    """Returns the options, for `score` and `create_metric`, with which a recipe's outputs are measured."""
    return {
        "language": recipe.data.target_language,
        "tokenization": recipe.data.tokenization,
        "database": recipe.evaluation.database or None,
    }


def metric_class(name):
    """Returns the class of a metric: what it needs, its unit and direction; Bleu for an unknown name."""
    factory = _FACTORIES.get(name, Bleu)
    return getattr(factory, "func", factory)


def unit_and_direction(name):
    """Returns (`points` or `share`, whether lower is better) of a metric; those of BLEU for an unknown name."""
    return metric_class(name).unit, metric_class(name).lower_is_better


def expand_metric_names(names):
    """Returns single metric names in order, once each, with groups such as `rouge` taken apart.

    Args:
        names: names, or one string with commas.

    Raises:
        ScoringError: a name is unknown, or there is none.
    """
    if isinstance(names, str):
        names = names.split(",")
    expanded = []
    for name in (name.strip() for name in names):
        for single in _GROUPS.get(name, (name,)):
            if single not in _FACTORIES:
                raise _unknown_metric(single)
            if single not in expanded:
                expanded.append(single)
    if not expanded:
        raise ScoringError(f"No metric is named; the metrics are {', '.join(METRICS)}.")
    return expanded


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
        metric_names: names out of `METRICS`, or one string with commas.
        hypotheses: list of N output strings.
        references: list of N reference strings, or of N lists or tuples of strings where segments have several. An empty
            string after a segment's first stands for no further reference.
        sources: list of N source strings; fidelity and unseen words need them.
        training_words: container of the words seen in training on either side, for `unseen_copies`; for metrics of rare or
            frequent words a mapping from each to how often the target side has it, such as a `collections.Counter`.
        bootstrap_samples: resampled test sets behind each interval; 0 for no intervals.
        seed: seed of the resampling; the default is sacrebleu's.
        language: language code of the outputs; it decides how BLEU and ROUGE cut words.
        tokenize: a sacrebleu tokenizer for BLEU instead of the language's (`13a`, `none`, `char`, `zh`, ...).
        tokenization: `whitespace` where the texts are tokenized already: BLEU, copies and repetitions go by these tokens.
        database: path of the SQLite file that `execution_accuracy` runs queries on.
        scores: list of N pairs (log-probability, number of tokens) of the first references by the model, for perplexity.

    Returns:
        A dict from metric name to `MetricResult`, in the order asked for.

    Raises:
        ScoringError: an unknown metric, lists of different lengths, no segments, or missing sources.
    """
    options = {"language": language, "tokenize": tokenize, "tokenization": tokenization, "database": database}
    table = _Table(metric_names, [hypotheses], references, sources, training_words, options, [scores])
    resampled = table.resample(bootstrap_samples, seed)[0] if bootstrap_samples else {}
    return _results(table, 0, resampled, bootstrap_samples, seed)


def _results(table, system, resampled, samples, seed):
    """Returns a dict from metric name to the `MetricResult` of one system of a table, given by its number."""
    results = {}
    for name, metric in table.metrics.items():
        sums = table.sums(name, system)
        low, high = _percentiles(resampled.get(name))
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
    """Returns the value of a metric on each segment alone, a list of floats (None where it is undefined).

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
        metric.value(metric.add(metric.zero(), metric.statistics(hypothesis, _as_tuple(reference), None)))
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
    """Tests whether a system differs from a baseline by more than chance, on shared resamples (Koehn, 2004).

    For sacrebleu's metrics the p-value is that of `sacrebleu --paired-bs`, from the same resamples; ours sum
    statistics by a matrix product, so that 20,000 segments need some 200 MB instead of gigabytes. For the others it is
    the share of resampled differences, shifted to mean 0, that reach the observed one. Both are
    (c + 1) / (samples + 1), and 1 for two systems that do not differ at all.

    Args:
        metric_names: names out of `METRICS`.
        hypotheses: outputs of the system.
        baseline_hypotheses: outputs of the system to compare with.
        references, sources, training_words, bootstrap_samples, seed, language, tokenize, tokenization,
            database: as in `score`.

    Returns:
        A dict from metric name to `Comparison`.

    Raises:
        ScoringError: as in `score`.
    """
    options = {"language": language, "tokenize": tokenize, "tokenization": tokenization, "database": database}
    texts = (hypotheses, baseline_hypotheses, references, sources, training_words)
    return score_pair(metric_names, *texts, bootstrap_samples=bootstrap_samples, seed=seed, **options)[2]


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
    """Tests whether a system differs from a baseline by more than chance, by approximate randomisation (Riezler and Maxwell, 2005).

    If the systems do not differ, any segment's two outputs may as well be swapped. A trial swaps each segment's statistics
    with probability 1/2 and measures the two mixtures; with c trials whose difference is larger than the observed one,

        p = (c + 1) / (trials + 1)

    and 1 for two systems that do not differ at all. For sacrebleu's metrics it is the p-value of `sacrebleu --paired-ar`,
    from the same trials; for the others, shares of few equal steps, a difference as large counts too.

    Args:
        metric_names: names out of `METRICS`.
        hypotheses: outputs of the system.
        baseline_hypotheses: outputs of the system to compare with.
        trials: how often segments are swapped; sacrebleu's default is 10000.
        bootstrap_samples: resampled test sets behind the interval of the difference; 0 for no interval.
        references, sources, training_words, seed, language, tokenize, tokenization, database: as in `score`.

    Returns:
        A dict from metric name to `Comparison`.

    Raises:
        ScoringError: as in `score`.
    """
    options = {"language": language, "tokenize": tokenize, "tokenization": tokenization, "database": database}
    texts = (hypotheses, baseline_hypotheses, references, sources, training_words)
    samples = {"bootstrap_samples": bootstrap_samples, "trials": trials}
    return score_pair(metric_names, *texts, test="randomisation", **samples, seed=seed, **options)[2]


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
        metric_names: names out of `METRICS`.
        hypotheses: outputs of the system.
        baseline_hypotheses: outputs of the system to compare with.
        test: `bootstrap` as in `paired_bootstrap`, or `randomisation` as in `paired_randomisation`.
        trials: of the randomisation.
        scores: `score`'s of the system and of the baseline.
        references, sources, training_words, bootstrap_samples, seed, language, tokenize, tokenization,
            database: as in `score`.

    Returns:
        (results of the system, results of the baseline, comparisons): what `score`, `score` and the test would return.

    Raises:
        ScoringError: as in `score`, and too few samples or trials.
    """
    randomise = test == "randomisation"
    if randomise and trials < 1:
        raise ScoringError(f"Approximate randomisation needs at least 1 trial; got {trials}.")
    if not randomise and bootstrap_samples < 1:
        raise ScoringError(f"A paired bootstrap needs at least 1 resample; got {bootstrap_samples}.")
    options = {"language": language, "tokenize": tokenize, "tokenization": tokenization, "database": database}
    systems = [hypotheses, baseline_hypotheses]
    table = _Table(metric_names, systems, references, sources, training_words, options, scores)
    resampled = table.resample(bootstrap_samples, seed)
    swapped = table.swap(trials, seed) if randomise else None
    results = (
        _results(table, system, resampled[system] if bootstrap_samples else {}, bootstrap_samples, seed)
        for system in range(2)
    )
    return (*results, _compare(table, resampled, bootstrap_samples, seed, swapped))


def _compare(table, resampled, samples, seed, swapped=None):
    """Returns a dict from metric name to `Comparison`: a randomisation test where `swapped` is given, else a bootstrap."""
    results = {}
    for name, metric in table.metrics.items():
        values = [metric.value(table.sums(name, system)) for system in range(2)]
        difference = None if None in values else values[0] - values[1]
        differences = resampled[0][name] - resampled[1][name]
        low, high = _percentiles(differences)
        if swapped is None:
            kind = "sacrebleu paired-bs" if metric.uses_sacrebleu_test else "shifted paired bootstrap"
            test, sizes = f"{kind}|bs:{samples}", _shifted_sizes(differences, metric.uses_sacrebleu_test)
        else:
            kind = "sacrebleu paired-ar" if metric.uses_sacrebleu_test else "paired approximate randomisation"
            test, sizes = f"{kind}|ar:{len(swapped[name])}|bs:{samples}", np.abs(swapped[name])
        results[name] = Comparison(
            name=name,
            difference=difference,
            low=low,
            high=high,
            p_value=_p_value(difference, sizes, metric.uses_sacrebleu_test),
            signature=f"test:{test}|seed:{seed}",
        )
    return results


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
        metrics: names out of `METRICS`, or one string with commas.
        references_paths, hypotheses_path, sources_path, training_paths, remove: as in `read_files`.
        bootstrap_samples, seed, language, tokenize, tokenization, database: as in `score`.

    Returns:
        A dict from metric name to `MetricResult`.

    Raises:
        ScoringError: as in `read_files` and `score`.
    """
    names = expand_metric_names(metrics)  # a misspelt metric is reported before large files are read
    paths = {"references_paths": references_paths, "hypotheses_path": hypotheses_path, "sources_path": sources_path}
    texts = read_files(**paths, training_paths=training_paths, tokenization=tokenization, remove=remove)
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
    """Reads what `score`, `paired_bootstrap` and `paired_randomisation` take from files, one segment a line.

    Args:
        references_paths: UTF-8 text, one reference a line: a path, or a list of paths aligned line by line. An empty
            line of the second file or a later one stands for no further reference.
        hypotheses_path: UTF-8 text, one output a line.
        sources_path: UTF-8 text, one source a line; copies, fidelity and unseen words need it.
        baseline_path: UTF-8 text, one output of another system a line.
        training_paths: text files of the training data: both sides for `unseen_copies`; the target side alone for metrics
            of rare or frequent words, which count a word in all the files given.
        tokenization: how training text is cut, as in `score`.
        remove: text to take out of everything but the training text first, such as `@@ `, the joint of byte-pair encoding.

    Returns:
        A dict of the arguments `hypotheses`, `references`, `sources`, `training_words`, and `baseline_hypotheses` if asked.

    Raises:
        ScoringError: a file is missing, empty, without text, not UTF-8 or not aligned with the first references.
    """
    paths = [references_paths] if isinstance(references_paths, str | pathlib.Path) else list(references_paths)
    files = [("references", path) for path in paths]
    files += [("hypotheses", hypotheses_path), ("sources", sources_path), ("baseline", baseline_path)]
    texts = [read_lines(path, kind) if path else None for kind, path in files]
    for (kind, path), lines in zip(files, texts):
        if lines is not None and len(lines) != len(texts[0]):
            raise ScoringError(
                f"The {kind} file {path} has {_count(len(lines), 'line')}, but the references file {paths[0]} "
                f"has {_count(len(texts[0]), 'line')}; they must be aligned line by line."
            )
    if remove:
        texts = [None if lines is None else [line.replace(remove, "") for line in lines] for lines in texts]
    *references, hypotheses, sources, baseline = texts
    training_words = None
    if training_paths:
        cut = Tokenizer(tokenization).words
        training_words = collections.Counter(
            word for path in training_paths for line in read_lines(path, "training") for word in cut(line)
        )
    read = {"hypotheses": hypotheses, "references": list(zip(*references)), "sources": sources}
    return {
        **read,
        "training_words": training_words,
        **({} if baseline is None else {"baseline_hypotheses": baseline}),
    }


def format_value(result, value=None):
    """Returns a metric's value as people read it: two decimals for points, percent for shares, `n/a` where undefined.

    Args:
        result: a `MetricResult`.
        value: another value of the same metric, such as an end of its interval; the result's own by default.
    """
    value = result.value if value is None else value
    if value is None:
        return "n/a"
    return f"{100 * value:.1f} %" if result.unit == "share" else f"{value:.2f}"


def format_table(results_by_system):
    """Returns a plain-text table: a row for each metric, a column for each system, intervals in brackets.

    Args:
        results_by_system: dict from a system's name to the dict that `score` returns.
    """
    names = list(dict.fromkeys(name for results in results_by_system.values() for name in results))
    with_interval = any(result.low is not None for results in results_by_system.values() for result in results.values())
    rows = [["", *results_by_system]]
    for name in names:
        row = [LABELS.get(name, name)]
        for results in results_by_system.values():
            result = results.get(name)
            if result is None:
                row.append("-")
                continue
            cell = format_value(result)
            if result.low is not None:
                low, high = format_value(result, result.low), format_value(result, result.high)
                cell += f" [{low.removesuffix(' %')}, {high}]"
            if result.unit == "share" and "n" in result.details:
                cell += f" n={result.details['n']}"
            row.append(cell)
        rows.append(row)
    lines = _aligned(rows)
    if with_interval:
        lines.append("In brackets: 95 % bootstrap interval over segments.")
    return "\n".join(lines) + "\n"


def format_breakdowns(results_by_system):
    """Returns plain-text tables of what metrics' details say by length and by frequency; an empty text where none does.

    Args:
        results_by_system: as for `format_table`.
    """
    tables = []
    for metric, key, category, value, weight, title in (
        ("bleu_by_length", "by_length", "words", "bleu", "reference_length", "BLEU by words of the reference"),
        (
            "word_f1_by_frequency",
            "by_frequency",
            "seen",
            "f1",
            "reference_words",
            "Word F1 by how often training saw it",
        ),
    ):
        parts = {
            system: {part[category]: part for part in results[metric].details[key]}
            for system, results in results_by_system.items()
            if metric in results
        }
        if not parts:
            continue
        unit = unit_and_direction(metric)[0]
        rows = [[title, *parts, "reference words"]]
        for name in next(iter(parts.values())):
            # Of several references, each system has its own closest one.
            words = max(of_system[name][weight] for of_system in parts.values())
            cells = (MetricResult(value, of_system[name][value], unit=unit) for of_system in parts.values())
            if words:
                rows.append([f"  {name}", *map(format_value, cells), str(words)])
        tables.append("\n".join(_aligned(rows)) + "\n")
    return "\n".join(tables)


def format_comparisons(comparisons):
    """Returns a plain-text table: a row for each metric, with difference, its interval and p-value.

    Args:
        comparisons: the dict that `paired_bootstrap` or `paired_randomisation` returns.
    """
    rows = [["", "difference", "p-value"]]
    for name, comparison in comparisons.items():
        unit, _ = unit_and_direction(name)
        difference, low, high = (
            format_value(MetricResult(name, value, unit=unit))
            for value in (comparison.difference, comparison.low, comparison.high)
        )
        interval = "" if comparison.low is None else f" [{low.removesuffix(' %')}, {high}]"
        p_value = "n/a" if comparison.p_value is None else f"{comparison.p_value:.4f}"
        rows.append([LABELS[name], difference + interval, p_value])
    tests = dict.fromkeys(comparison.signature for comparison in comparisons.values())
    return "\n".join([*_aligned(rows), *tests]) + "\n"


def results_to_dict(results):
    """Returns what `score` or a paired test returned as plain dicts, for JSON and for `pipeline.report`."""
    return {name: result.to_dict() for name, result in results.items()}


class _Table:
    """The metrics asked for, with what they are computed from, checked once."""

    def __init__(self, metric_names, systems, references, sources, training_words, options, scores=None):
        self.names = expand_metric_names(metric_names)
        self._references = [_as_tuple(texts) for texts in references]
        self._sources = None if sources is None else list(sources)
        if not self._references:
            raise ScoringError("There is nothing to score: the list of references is empty.")
        if not all(self._references):
            raise ScoringError(f"Segment {self._references.index(())} has no reference; each needs one at least.")
        counts = set(map(len, self._references))
        self.reference_count = counts.pop() if len(counts) == 1 else None
        self._check_length("sources", self._sources)
        self.metrics = {name: create_metric(name, training_words=training_words, **options) for name in self.names}
        for name, metric in self.metrics.items():
            if metric.needs_sources and sources is None:
                raise ScoringError(f"The metric '{name}' compares outputs with sources; give the sources too.")
            if metric.needs_training_words and training_words is None:
                raise ScoringError(f"The metric '{name}' needs the words seen in training; give the training text too.")
            if metric.needs_training_counts and not isinstance(training_words, collections.abc.Mapping):
                raise ScoringError(
                    f"The metric '{name}' needs how often each word was seen in training; give a Counter."
                )
            if metric.needs_scores and (scores is None or None in scores):
                raise ScoringError(
                    f"The metric '{name}' needs a model's probabilities, which texts do not tell: measure the model itself with "
                    "'verbatim evaluate'."
                )

        systems = [list(hypotheses) for hypotheses in systems]
        for hypotheses in systems:
            self._check_length("hypotheses", hypotheses)
        self._statistics = {
            name: [self._measure(metric, given) for given in (scores if metric.needs_scores else systems)]
            for name, metric in self.metrics.items()
        }

    @functools.cached_property
    def _tables(self):
        return {name: metric.tabulate(self._statistics[name]) for name, metric in self.metrics.items()}

    def _check_length(self, kind, texts):
        if texts is not None and len(texts) != len(self._references):
            raise ScoringError(
                f"There are {len(texts)} {kind} for {_count(len(self._references), 'reference')}; "
                "each segment needs one of each."
            )

    def _measure(self, metric, hypotheses):
        """Returns the statistics of each segment of one system, of which `hypotheses` are the outputs, or the scores."""
        sources = self._sources or [None] * len(hypotheses)
        return [metric.statistics(*segment) for segment in zip(hypotheses, self._references, sources)]

    def sums(self, name, system):
        """Returns a metric's statistics of one system, given by its number, summed over all segments."""
        metric = self.metrics[name]
        return functools.reduce(metric.add, self._statistics[name][system], metric.zero())

    def resample(self, samples, seed):
        """Returns for each system a dict from metric name to its values on resampled test sets, [samples].

        All systems and metrics see the same test sets. Undefined values are NaN.
        """
        count = len(self._references)
        generator = np.random.default_rng(seed)
        systems = range(len(next(iter(self._statistics.values()))))
        values = [{name: np.empty(samples) for name in self.metrics} for _ in systems]
        chunk = max(1, _BOOTSTRAP_CHUNK_ELEMENTS // count)
        for begin in range(0, samples, chunk):
            size = min(chunk, samples - begin)
            # Drawn in chunks, the indices are those of one large draw: the generator keeps its place.
            indices = generator.choice(count, size=(size, count), replace=True)
            weights = np.stack([np.bincount(row, minlength=count) for row in indices]).astype(np.float64)
            for name in self.metrics:
                for system in systems:
                    values[system][name][begin : begin + size] = self._values(name, {system: weights})
        return values

    def swap(self, trials, seed):
        """Returns a dict from metric name to differences of the two systems whose segments are swapped at random, [trials].

        Undefined differences are NaN.
        """
        count = len(self._references)
        generator = np.random.default_rng(seed)
        differences = {name: np.empty(trials) for name in self.metrics}
        # The generator draws 32 booleans at once: chunks of so many rows keep its place, so that trials are sacrebleu's.
        chunk = max(32, _BOOTSTRAP_CHUNK_ELEMENTS // count // 32 * 32)
        for begin in range(0, trials, chunk):
            size = min(chunk, trials - begin)
            swapped = generator.integers(2, size=(size, count), dtype=bool).astype(np.float64)
            kept = 1.0 - swapped
            for name in self.metrics:
                first, second = (
                    np.array(self._values(name, dict(enumerate(mix)))) for mix in ((kept, swapped), (swapped, kept))
                )
                differences[name][begin : begin + size] = first - second
        return differences

    def _values(self, name, weights):
        """Returns a metric's values on mixtures: `weights` is a dict from a system's number to [samples, segments]."""
        tables, evaluate = self._tables[name]
        rows = zip(*(tables[system].sums(of_system) for system, of_system in weights.items()))
        found = (evaluate(sum(parts)) for parts in rows)
        return [math.nan if value is None else value for value in found]


def _as_tuple(references):
    """Returns one segment's references; an empty text after the first is none, as where files have unequal numbers."""
    if isinstance(references, str):
        return (references,)
    return (*references[:1], *(text for text in references[1:] if text))


class _RougeTokenizer:
    """ROUGE's words. Each text is cut once for ROUGE-1, -2 and -L together: Porter stemming is slow."""

    def __init__(self, english):
        self._english = english

    def tokenize(self, text):
        return _rouge_tokens(text, self._english)


@functools.lru_cache(maxsize=65536)
def _rouge_tokens(text, english):
    if english:
        return _english_rouge_tokenizer().tokenize(text)
    return _UNICODE_WORD.findall(text.lower())


@functools.lru_cache(maxsize=1)
def _english_rouge_tokenizer():
    from rouge_score import tokenizers

    return tokenizers.DefaultTokenizer(use_stemmer=True)


def _aligned(rows):
    """Returns the lines of a plain-text table, a rule under its first row."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
    return [lines[0], "  ".join("-" * width for width in widths), *lines[1:]]


def _has_repeated_run(tokens):
    for size in range(1, _LONGEST_REPEATED_RUN + 1):
        for begin in range(len(tokens) - 2 * size + 1):
            if tokens[begin : begin + size] == tokens[begin + size : begin + 2 * size]:
                return True
    return False


def _primary_language(language):
    return regex.split("[-_@.]", language or "en")[0].lower()


def _ratio(part, whole):
    return float(part) / float(whole) if whole else None


def bucket_names(bounds):
    """Returns what people call the ranges that begin at `bounds`: `1`, `5-9`, `1000+`."""
    ends = [bound - 1 for bound in bounds[1:]]
    return [f"{low}" if low == high else f"{low}-{high}" for low, high in zip(bounds, ends)] + [f"{bounds[-1]}+"]


def _f1(one, other):
    """Returns the F1 of two Counters; 1 for two empty ones."""
    total = one.total() + other.total()
    return 2 * (one & other).total() / total if total else 1.0


def _share(counts):
    return counts[0] / counts[1] if counts[1] else 1.0


def _join_signature(text, samples, seed, references):
    resampled = f"|bs:{samples}|seed:{seed}" if samples else ""
    return f"nrefs:{references or 'var'}{resampled}|{text}"


def _percentiles(values):
    """Returns the ends of the 95 % interval, or None twice where no resample has a value."""
    if values is None or np.isnan(values).all():
        return None, None
    low, high = np.nanpercentile(values, [2.5, 97.5])
    return float(low), float(high)


def _shifted_sizes(differences, uses_sacrebleu_test):
    """Returns the sizes of resampled differences, shifted as if the systems did not differ; undefined ones are left out."""
    differences = differences[~np.isnan(differences)]
    if not len(differences):
        return differences
    if uses_sacrebleu_test:
        return np.abs(differences) - np.abs(differences).mean()
    return np.abs(differences - differences.mean())


def _p_value(difference, sizes, uses_sacrebleu_test):
    """Returns (c + 1) / (n + 1), c of the n sizes being as large as the observed difference; sacrebleu's, larger."""
    sizes = sizes[~np.isnan(sizes)]
    if difference is None or not len(sizes):
        return None
    if difference == 0:
        return 1.0  # sacrebleu's formula would give its smallest p-value to two equal systems
    if uses_sacrebleu_test:
        extreme = np.count_nonzero(sizes > abs(difference))
    else:
        # The tolerance keeps ties of shares, which are sums of a few equal steps, ties.
        extreme = np.count_nonzero(sizes >= abs(difference) - 1e-12)
    return float((extreme + 1) / (len(sizes) + 1))


def read_lines(path, kind):
    """Returns a file's lines. Only line feeds end one: `str.splitlines` cuts at U+2028 too and loses alignment."""
    path = pathlib.Path(path)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise ScoringError(f"The {kind} file {path} does not exist.") from None
    except OSError as error:
        raise ScoringError(f"The {kind} file {path} cannot be read: {error.strerror}.") from None
    # ASCII letters in UTF-16 are UTF-8 too, with a NUL after or before each.
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in data:
        raise ScoringError(f"The {kind} file {path} is UTF-16 text, or no text at all: convert it to UTF-8.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ScoringError(
            f"The {kind} file {path} is not UTF-8: line {line} cannot be read; convert the file to UTF-8."
        ) from None
    if not text:
        raise ScoringError(f"The {kind} file {path} is empty.")
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    if not text.strip():
        raise ScoringError(f"The {kind} file {path} holds no text: all of its {_count(len(lines), 'line')} are empty.")
    return [line.removesuffix("\r") for line in lines]


def _count(number, noun):
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
