"""Perplexity of an exported language model on a whole stream.

Its states and the pointer's window are carried from word to word. Every word counts once, line ends
among them. Words are the tokens of these models, so perplexity per token is perplexity per word.

    perplexity             = exp(- 1/N sum_t log p(w_t | w_1 .. w_t-1)) perplexity_with_copies = the
    same, but an unknown word is credited with its probability by the pointer

In the first, all words that the vocabulary lacks are the one word `<unk>`, as in published results
(Merity et al. 2016). In the second such a word has the probability of being copied, where it stands
in the pointer's window, and that of `<unk>` elsewhere.
"""

import bisect
import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from pipeline.metrics import buckets, scoring
from pipeline.metrics.base import MetricResult
from pipeline.metrics.scored_texts import ScoredTexts
from pipeline.metrics.scoring_options import DEFAULT_SEED, ScoringOptions
from pipeline.readers import DataError, text_streams
from pipeline.recipes.recipe import Recipe

#: What `ServedLanguageModel.score_stream` returns, or the same as lists.
WordScores = Mapping[str, Any]


class GainedSentence(TypedDict):
    """A sentence that two models scored.

    Attributes:
        gain: sum over its words of log p_1 - log p_2, in nats.
        words: its words.
        probabilities: [p_1, p_2] of each word.
    """

    gain: float
    words: list[str]
    probabilities: list[list[float]]


class Extremes(TypedDict):
    """Sentences with the largest gains and losses of one model against another, the largest
    first."""

    wins: list[GainedSentence]
    losses: list[GainedSentence]


class FrequencyPoint(TypedDict):
    """A model's quality on words of similar training frequency.

    Attributes:
        seen: how often, a range.
        log_perplexity: mean negative log-probability; None without words.
        words: how many there are.
    """

    seen: str
    log_perplexity: float | None
    words: int


def measure(
    path: str, directory: str | os.PathLike[str], recipe: Recipe, samples: int = 1000
) -> dict[str, MetricResult]:
    """Measures a model on a text file.

    Args:
        path: the file; its lines are the sentences.
        directory: the SavedModel.
        recipe: the `Recipe` that it was trained with.
        samples: see `metrics_of`.

    Returns:
        The results by the names of metrics.

    Raises:
        pipeline.readers.DataError: the file cannot be read, or is empty.
        pipeline.export.served_model.ModelError: the model cannot be used.
    """
    if not os.path.isfile(path):
        raise DataError(f"{path} is not a file: give a text file, whose lines are sentences.")
    words = [word for word, _ in text_streams.read_words(os.path.basename(path), path, recipe.data)]
    if not words:
        raise DataError(f"{path} is empty: give a text file with words.")
    # The model is loaded after the text was checked, because loading takes seconds.
    from pipeline.export.served_language_model import ServedLanguageModel

    model = ServedLanguageModel(directory)
    return metrics_of(words, [model.score_stream(words)], samples)[0][0]


def metrics_of(
    words: Sequence[str], systems: Sequence[WordScores], samples: int = 1000
) -> tuple[list[dict[str, MetricResult]], dict[str, float | None]]:
    """Measures one language model on a stream, or two and their difference.

    Args:
        words: the stream, a list of strings.
        systems: for each model what `ServedLanguageModel.score_stream` returned of it; one or two.
        samples: resampled sets of sentences behind each interval and p-value.

    Returns:
        For each model a dict from metric name to `MetricResult`; and a dict from metric name to the
        p-value of the first against the second, empty for one.
    """
    resampled = f"bs:{samples} sentences|seed:{DEFAULT_SEED}"
    measured: list[dict[str, MetricResult]] = [{} for _ in systems]
    p_values: dict[str, float | None] = {}
    for name, key, unknown in (
        ("perplexity", "log_probability", "all one word"),
        (
            "perplexity_with_copies",
            "log_probability_with_copies",
            "copied if they are in the window",
        ),
    ):
        sentences = [_sentences(words, scored[key]) for scored in systems]
        empty = [""] * len(sentences[0])
        texts = [ScoredTexts(empty, empty, scores=of_system) for of_system in sentences]
        options = ScoringOptions(bootstrap_samples=samples)
        if len(systems) == 2:
            first, second, compared = scoring.score_pair("perplexity", texts[0], texts[1], options)
            p_values[name] = compared["perplexity"].p_value
            all_results = [first, second]
        else:
            all_results = [scoring.score("perplexity", texts[0], options)]
        for of_system, results, scored in zip(measured, all_results, systems):
            details = {
                "log_probability": results["perplexity"].details["log_probability"],
                "words": len(words),
                "unknown_words": int(np.sum(scored["unknown"])),
            }
            signature = (
                f"{resampled}|per:token|line ends:counted|unknown words:{unknown}|one stream, "
                "states and window carried"
            )
            of_system[name] = dataclasses.replace(
                results["perplexity"], name=name, details=details, signature=signature
            )
    for of_system in measured:
        signature = of_system["perplexity"].signature.replace(
            "per:token", "per:word, which is a token"
        )
        of_system["word_perplexity"] = dataclasses.replace(
            of_system["perplexity"], name="word_perplexity", signature=signature
        )
    return measured, p_values


def _beginnings(words: Sequence[str]) -> list[int]:
    """Returns the beginnings of sentences, each including its line end."""
    ends = [place + 1 for place, word in enumerate(words) if word == text_streams.LINE_END]
    return [0, *(end for end in ends if end < len(words))]


def _sentences(words: Sequence[str], log_probability: ArrayLike) -> list[tuple[float, int]]:
    """Returns (sum of log-probabilities, number of words) of each sentence."""
    begins = _beginnings(words)
    sums = np.add.reduceat(np.asarray(log_probability, "float64"), begins)
    return list(zip(sums.tolist(), np.diff([*begins, len(words)]).tolist()))


def extremes(words: Sequence[str], systems: Sequence[WordScores], count: int) -> Extremes:
    """Returns the sentences with the largest gains and losses of the first of two models.

    Args:
        words: the stream, a list of strings.
        systems: for both models what `ServedLanguageModel.score_stream` returned of it.
        count: sentences of each kind, at most.
    """
    logs = np.stack(
        [np.asarray(scored["log_probability"], "float64") for scored in systems], axis=1
    )
    begins = _beginnings(words)
    gains = np.add.reduceat(logs[:, 0] - logs[:, 1], begins)
    spans = list(zip(begins, [*begins[1:], len(words)]))

    def sentences(sign: int) -> list[GainedSentence]:
        order = [
            number
            for number in np.argsort(-sign * gains, kind="stable").tolist()
            if sign * gains[number] > 0
        ]
        return [
            {
                "gain": float(gains[number]),
                "words": list(words[slice(*spans[number])]),
                "probabilities": np.exp(logs[slice(*spans[number])]).tolist(),
            }
            for number in order[:count]
        ]

    return {"wins": sentences(1), "losses": sentences(-1)}


def by_frequency(
    words: Sequence[str], scored: WordScores, training_counts: Mapping[str, int]
) -> list[FrequencyPoint]:
    """Returns the quality on words by their training frequency, rarest first.

    After figure A1 of Merity et al. 2016.

    Args:
        words: the stream, a list of strings; line ends are left out.
        scored: what `ServedLanguageModel.score_stream` returned of it.
        training_counts: mapping from each word to how often the training text has it.
    """
    sums, numbers = ([0.0] * len(buckets.FREQUENCY_BUCKETS), [0] * len(buckets.FREQUENCY_BUCKETS))
    for word, log_probability in zip(
        words, np.asarray(scored["log_probability"]).tolist(), strict=True
    ):
        if word != text_streams.LINE_END:
            seen = training_counts.get(word, 0)
            bucket = bisect.bisect_right(buckets.FREQUENCY_BUCKETS, seen) - 1
            sums[bucket] -= log_probability
            numbers[bucket] += 1
    return [
        {"seen": name, "log_perplexity": total / number if number else None, "words": number}
        for name, total, number in zip(
            buckets.bucket_names(buckets.FREQUENCY_BUCKETS), sums, numbers
        )
    ]
