"""BLEU, chrF and TER, as sacrebleu computes them."""

import bisect
from typing import Any

import numpy as np

from pipeline.metrics.base import DenseMetric, FloatArray, Row, ScoringError, primary_language
from pipeline.metrics.buckets import LENGTH_BUCKETS, bucket_names
from pipeline.metrics.scored_texts import Segment
from pipeline.metrics.scoring_options import DEFAULT_SEED, ScoringOptions

# sacrebleu's default tokenizer, 13a, cuts at spaces and punctuation: useless where words have no
# spaces between them.
_BLEU_TOKENIZERS = {
    "zh": "zh",
    "ja": "char",
    "th": "char",
    "km": "char",
    "lo": "char",
    "my": "char",
}


class _SacrebleuMetric(DenseMetric):
    """A metric of sacrebleu. Its statistics are the ones that sacrebleu's own bootstrap sums.

    Of several references BLEU takes the largest count of each n-gram and the closest length, chrF
    the reference with the best F-score, TER the fewest edits and the mean length: sacrebleu's own
    ways.
    """

    uses_sacrebleu_test = True

    def __init__(self, scorer: Any, size: int) -> None:
        self._scorer = scorer
        self.size = size

    def statistics(self, segment: Segment) -> Row:
        rows: list[Row] = self._scorer._extract_corpus_statistics(
            [segment.hypothesis], [[text] for text in segment.references]
        )
        return rows[0]

    def _score(self, sums: FloatArray) -> Any:
        return self._scorer._compute_score_from_stats(np.asarray(sums, np.float64).tolist())

    def value(self, sums: FloatArray) -> float | None:
        return float(self._score(sums).score)

    def signature(
        self, samples: int = 0, seed: int = DEFAULT_SEED, references: int | None = 1
    ) -> str:
        self._scorer.num_refs = references or -1
        self._scorer.n_bootstrap = samples or None
        self._scorer.seed = str(seed) if samples else None
        return str(self._scorer.get_signature().format())


class Bleu(_SacrebleuMetric):
    """BLEU (Papineni et al., 2002), 0 to 100.

    It is the brevity penalty times the geometric mean of 1- to 4-gram precisions.
    """

    def __init__(self, options: ScoringOptions) -> None:
        super().__init__(sacrebleu_bleu(options)[0], size=10)

    def details(self, sums: FloatArray) -> dict[str, Any]:
        score = self._score(sums)
        return {
            "precisions": [float(precision) for precision in score.precisions],
            "brevity_penalty": float(score.bp),
            "hypothesis_length": int(score.sys_len),
            "reference_length": int(score.ref_len),
        }


class BleuByLength(Bleu):
    """BLEU, and in `details` the BLEU of segments of like reference length.

    It is compare-mt's (Neubig et al., 2019). The length is in BLEU's own words, of the
    reference whose length is closest to the output's.
    """

    buckets = bucket_names(LENGTH_BUCKETS)

    def __init__(self, options: ScoringOptions) -> None:
        super().__init__(options)
        self._segment_size = self.size
        self.size *= len(LENGTH_BUCKETS)

    def statistics(self, segment: Segment) -> Row:
        counts = super().statistics(segment)
        table = np.zeros((len(LENGTH_BUCKETS), self._segment_size))
        table[bisect.bisect_right(LENGTH_BUCKETS, counts[1]) - 1] = counts
        return table.ravel()

    def _score(self, sums: FloatArray) -> Any:
        return super()._score(sums.reshape(-1, self._segment_size).sum(axis=0))

    def by_bucket(self, sums: FloatArray) -> dict[str, float | None]:
        return {
            words: float(super(BleuByLength, self)._score(counts).score) if counts.any() else None
            for words, counts in zip(self.buckets, sums.reshape(-1, self._segment_size))
        }

    def details(self, sums: FloatArray) -> dict[str, Any]:
        by_length = [
            {"words": words, "bleu": bleu, "reference_length": int(counts[1])}
            for (words, bleu), counts in zip(
                self.by_bucket(sums).items(), sums.reshape(-1, self._segment_size)
            )
        ]
        return {**super().details(sums), "by_length": by_length}


class Chrf(_SacrebleuMetric):
    """chrF2 (Popović, 2015), 0 to 100: the F-score of character n-grams up to 6.

    Recall weighs twice.
    """

    def __init__(self, options: ScoringOptions) -> None:
        import sacrebleu

        super().__init__(sacrebleu.CHRF(), size=18)

    def details(self, sums: FloatArray) -> dict[str, Any]:
        return {"characters": int(sums[0]), "reference_characters": int(sums[1])}


class Ter(_SacrebleuMetric):
    """TER (Snover et al., 2006).

    100 * (insertions + deletions + substitutions + shifts) / reference words
    """

    lower_is_better = True

    def __init__(self, options: ScoringOptions) -> None:
        import sacrebleu

        super().__init__(sacrebleu.TER(), size=2)

    def details(self, sums: FloatArray) -> dict[str, Any]:
        return {"edits": float(sums[0]), "reference_words": float(sums[1])}


def sacrebleu_bleu(options: ScoringOptions) -> tuple[Any, str]:
    """Returns sacrebleu's BLEU, and the name of its tokenizer.

    Raises:
        ScoringError: there is no such tokenizer, or it cannot be used.
    """
    import sacrebleu

    # Text that is already tokenized is measured as it is, as published results on such corpora are.
    is_tokenized = options.tokenization == "whitespace"
    tokenize = options.tokenize or ("none" if is_tokenized else bleu_tokenizer(options.language))
    if tokenize not in sacrebleu.BLEU.TOKENIZERS:
        names = ", ".join(sacrebleu.BLEU.TOKENIZERS)
        raise ScoringError(f"BLEU has no usable tokenizer '{tokenize}'; sacrebleu's are {names}.")
    try:
        return sacrebleu.BLEU(tokenize=tokenize), tokenize
    except (ImportError, RuntimeError):
        raise ScoringError(
            f"BLEU's tokenizer '{tokenize}' needs packages that are not installed: install "
            "sacrebleu's extras, or choose another."
        ) from None
    except OSError as error:
        # Tokenizers of sentencepiece download their model on first use.
        reason = getattr(error, "reason", None) or error.strerror or error
        raise ScoringError(
            f"BLEU's tokenizer '{tokenize}' needs to download its model, which failed ({reason}): "
            "go online, or choose another."
        ) from None


def bleu_tokenizer(language: str) -> str:
    """Returns sacrebleu's tokenizer for a language code: `13a` unless words have no spaces."""
    return _BLEU_TOKENIZERS.get(primary_language(language), "13a")
