"""Perplexity of an exported language model on a whole stream, its states and the pointer's window
carried from word to word.

Every word counts once, line ends among them. Words are the tokens of these models, so perplexity
per token is perplexity per word.

    perplexity             = exp(- 1/N sum_t log p(w_t | w_1 .. w_t-1))
    perplexity_with_copies = the same, where a word that the vocabulary lacks is credited with what
    the pointer gives it

In the first, all words that the vocabulary lacks are the one word `<unk>`, as in published results
(Merity et al. 2016). In the second such a word has the probability of being copied, where it stands
in the pointer's window, and that of `<unk>` elsewhere.
"""

import bisect
import dataclasses
import os

import numpy as np

from pipeline.metrics import buckets, scoring
from pipeline.metrics.base import DEFAULT_SEED
from pipeline.readers import DataError, text_streams


def measure(path, directory, recipe, say=print, samples=1000):
    """Measures a model on a text file.

    Args:
        path: the file; its lines are the sentences.
        directory: the SavedModel.
        recipe: the `Recipe` that it was trained with.
        say: function of one string, for people.
        samples: see `metrics_of`.

    Returns:
        A dict from metric name to `pipeline.metrics.base.MetricResult`.

    Raises:
        pipeline.readers.DataError: the file cannot be read, or is empty.
        pipeline.export.served_model.ModelError: the model cannot be used.
    """
    if not os.path.isfile(path):
        raise DataError(f"{path} is not a file: give a text file, whose lines are sentences.")
    words = [word for word, _ in text_streams.read_words(os.path.basename(path), path, recipe.data)]
    if not words:
        raise DataError(f"{path} is empty: give a text file with words.")
    # The model is loaded after the text was found to be good: that takes seconds.
    from pipeline.export.served_language_model import ServedLanguageModel

    model = ServedLanguageModel(directory)
    scored = model.score_stream(words, lambda done: say(f"scored {done} of {len(words)} words"))
    return metrics_of(words, [scored], samples)[0][0]


def metrics_of(words, systems, samples=1000):
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
    measured, p_values = [{} for _ in systems], {}
    for name, key, unknown in (
        ("perplexity", "log_probability", "all one word"),
        (
            "perplexity_with_copies",
            "log_probability_with_copies",
            "copied where they stand in the window",
        ),
    ):
        sentences = [_sentences(words, scored[key]) for scored in systems]
        texts = [""] * len(sentences[0])
        if len(systems) == 2:
            *found, compared = scoring.score_pair(
                "perplexity", texts, texts, texts, scores=sentences, bootstrap_samples=samples
            )
            p_values[name] = compared["perplexity"].p_value
        else:
            found = [
                scoring.score(
                    "perplexity", texts, texts, scores=sentences[0], bootstrap_samples=samples
                )
            ]
        for of_system, results, scored in zip(measured, found, systems):
            details = {
                "log_probability": results["perplexity"].details["log_probability"],
                "words": len(words),
                "unknown_words": int(np.sum(scored["unknown"])),
            }
            signature = (
                f"{resampled}|per:token|line ends:counted|unknown words:{unknown}|one "
                "stream, states and window carried"
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


def _beginnings(words):
    """Returns where each sentence begins, its line end included in it."""
    ends = [place + 1 for place, word in enumerate(words) if word == text_streams.LINE_END]
    return [0, *(end for end in ends if end < len(words))]


def _sentences(words, log_probability):
    """Returns (sum of log-probabilities, number of words) of each sentence."""
    begins = _beginnings(words)
    sums = np.add.reduceat(np.asarray(log_probability, "float64"), begins)
    return list(zip(sums.tolist(), np.diff([*begins, len(words)]).tolist()))


def extremes(words, systems, count):
    """Returns the sentences on which the first of two models gains and loses most against the
    second.

    Args:
        words: the stream, a list of strings.
        systems: for both models what `ServedLanguageModel.score_stream` returned of it.
        count: sentences of each kind, at most.

    Returns:
        {"wins": sentences, "losses": sentences}, the largest first, each {"gain": sum over its
        words of log p_1 - log p_2, in nats,
        "words": [str], "probabilities": [p_1, p_2] of each word}.
    """
    logs = np.stack(
        [np.asarray(scored["log_probability"], "float64") for scored in systems], axis=1
    )
    begins = _beginnings(words)
    gains = np.add.reduceat(logs[:, 0] - logs[:, 1], begins)
    spans = list(zip(begins, [*begins[1:], len(words)]))

    def sentences(sign):
        order = [
            number
            for number in np.argsort(-sign * gains, kind="stable").tolist()
            if sign * gains[number] > 0
        ]
        return [
            {
                "gain": float(gains[number]),
                "words": words[slice(*spans[number])],
                "probabilities": np.exp(logs[slice(*spans[number])]).tolist(),
            }
            for number in order[:count]
        ]

    return {"wins": sentences(1), "losses": sentences(-1)}


def by_frequency(words, scored, training_counts):
    """Returns the mean negative log-probability of words by how often training saw them (figure A1
    of Merity et al. 2016).

    Args:
        words: the stream, a list of strings; line ends are left out.
        scored: what `ServedLanguageModel.score_stream` returned of it.
        training_counts: mapping from each word to how often the training text has it.

    Returns:
        List of {"seen": range, "log_perplexity": float or None, "words": int}, rarest first.
    """
    totals = [[0.0, 0] for _ in buckets.FREQUENCY_BUCKETS]
    for word, log_probability in zip(
        words, np.asarray(scored["log_probability"]).tolist(), strict=True
    ):
        if word != text_streams.LINE_END:
            bucket = (
                bisect.bisect_right(buckets.FREQUENCY_BUCKETS, training_counts.get(word, 0)) - 1
            )
            totals[bucket][0] -= log_probability
            totals[bucket][1] += 1
    return [
        {"seen": seen, "log_perplexity": total / number if number else None, "words": number}
        for seen, (total, number) in zip(buckets.bucket_names(buckets.FREQUENCY_BUCKETS), totals)
    ]
