"""ROUGE-1, -2 and -L."""

import functools
from typing import Any

import regex

from pipeline.metrics.base import (
    DenseMetric,
    FloatArray,
    Row,
    exact_parts,
    primary_language,
    ratio,
)
from pipeline.metrics.scored_texts import Segment
from pipeline.metrics.scoring_options import ScoringOptions

_NO_SPACES = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Khmer}\p{Lao}\p{Myanmar}"
_UNICODE_WORD = regex.compile(rf"[{_NO_SPACES}]|(?:(?![{_NO_SPACES}])[\p{{L}}\p{{M}}\p{{N}}])+")


class Rouge(DenseMetric):
    """ROUGE-1, -2 or -L (Lin, 2004), 0 to 100, mean over segments, by Google's `rouge-score`.

    It is F1, or recall:

        recall = matched n-grams / reference n-grams
        F1 = 2 * precision * recall / (precision + recall)

    with the longest common subsequence instead of n-grams in ROUGE-L. Of several references a
    segment takes the one with the best F1, for recall too, as `rouge-score` does.

    English is lowercased, reduced to a-z and 0-9 and Porter-stemmed, as in published results. That
    would remove `é` from French and everything from Japanese, so other languages are cut at Unicode
    word boundaries (single characters where words have no spaces between them), lowercased and not
    stemmed.
    """

    size = 7

    def __init__(self, kind: str, measure: str, options: ScoringOptions) -> None:
        from rouge_score import rouge_scorer

        self._kind = kind
        self._measure = measure
        self._english = primary_language(options.language) == "en"
        tokenizer = _RougeTokenizer(self._english)
        self._scorer = rouge_scorer.RougeScorer([kind], tokenizer=tokenizer)

    def statistics(self, segment: Segment) -> Row:
        score = self._scorer.score_multi(segment.references, segment.hypothesis)[self._kind]
        return [
            *exact_parts(score.fmeasure),
            *exact_parts(score.recall),
            *exact_parts(score.precision),
            1,
        ]

    def value(self, sums: FloatArray) -> float | None:
        value: float | None = self.details(sums)[self._measure]
        return value

    def details(self, sums: FloatArray) -> dict[str, Any]:
        parts = (sums[place] + sums[place + 1] for place in (0, 2, 4))
        return {
            name: ratio(100.0 * part, sums[6])
            for name, part in zip(("f1", "recall", "precision"), parts)
        }

    def own_signature(self) -> str:
        from importlib import metadata

        tokens = "a-z0-9|stem:porter" if self._english else "unicode|stem:no"
        version = metadata.version("rouge-score")
        return f"{self._measure}|tok:{tokens}|rouge-score:{version}"


class _RougeTokenizer:
    """ROUGE's words.

    Each text is cut once for ROUGE-1, -2 and -L together: Porter stemming is slow.
    """

    def __init__(self, english: bool) -> None:
        self._english = english

    def tokenize(self, text: str) -> list[str]:
        return _rouge_tokens(text, self._english)


@functools.lru_cache(maxsize=65536)
def _rouge_tokens(text: str, english: bool) -> list[str]:
    tokens: list[str] = (
        _english_rouge_tokenizer().tokenize(text)
        if english
        else _UNICODE_WORD.findall(text.lower())
    )
    return tokens


@functools.lru_cache(maxsize=1)
def _english_rouge_tokenizer() -> Any:
    from rouge_score import tokenizers

    return tokenizers.DefaultTokenizer(use_stemmer=True)
