"""ROUGE-1, -2 and -L."""

import functools

import regex

from pipeline.metrics.base import (
    DEFAULT_SEED,
    Metric,
    exact_parts,
    join_signature,
    primary_language,
    ratio,
)

_NO_SPACES = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Khmer}\p{Lao}\p{Myanmar}"
_UNICODE_WORD = regex.compile(rf"[{_NO_SPACES}]|(?:(?![{_NO_SPACES}])[\p{{L}}\p{{M}}\p{{N}}])+")


class Rouge(Metric):
    """ROUGE-1, -2 or -L (Lin, 2004), 0 to 100, mean over segments, by Google's `rouge-score`:
    F1, or recall.

        recall = matched n-grams / reference n-grams;  F1 = 2 * precision * recall / (precision +
        recall)

    with the longest common subsequence for n-grams in ROUGE-L. Of several references a segment
    takes the one with the best F1, for recall too, as `rouge-score` does.

    English is lower-cased, reduced to a-z and 0-9 and Porter-stemmed, as in published results. That
    would cut `é` out of French and leave nothing of Japanese, so other languages are cut at Unicode
    word boundaries (single characters where words have no spaces between them), lower-cased and not
    stemmed.
    """

    size = 7

    def __init__(self, kind, measure="f1", language="en", **unused):
        from rouge_score import rouge_scorer

        self._kind = kind
        self._measure = measure
        self._english = primary_language(language) == "en"
        tokenizer = _RougeTokenizer(self._english)
        self._scorer = rouge_scorer.RougeScorer([kind], tokenizer=tokenizer)

    def statistics(self, hypothesis, references, source):
        score = self._scorer.score_multi(references, hypothesis)[self._kind]
        return [
            *exact_parts(score.fmeasure),
            *exact_parts(score.recall),
            *exact_parts(score.precision),
            1,
        ]

    def value(self, sums):
        return self.details(sums)[self._measure]

    def details(self, sums):
        parts = (sums[place] + sums[place + 1] for place in (0, 2, 4))
        return {
            name: ratio(100.0 * part, sums[6])
            for name, part in zip(("f1", "recall", "precision"), parts)
        }

    def signature(self, samples=0, seed=DEFAULT_SEED, references=1):
        from importlib import metadata

        tokens = "a-z0-9|stem:porter" if self._english else "unicode|stem:no"
        version = metadata.version("rouge-score")
        return join_signature(
            f"{self._measure}|tok:{tokens}|rouge-score:{version}", samples, seed, references
        )


class _RougeTokenizer:
    """ROUGE's words. Each text is cut once for ROUGE-1, -2 and -L together:
    Porter stemming is slow.
    """

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
