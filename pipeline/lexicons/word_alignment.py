"""Word translation probabilities from sentence pairs, by expectation maximisation.

IBM Model 1, and Model 2 with a diagonal prior. It is sparse and vectorised: a shard is the links
between the words of its sentence pairs (`pipeline.lexicons.links`), and a pass over it is a few
NumPy operations. The counts of several shards add up (`add_counts`), so a corpus may be divided in
any way and processed by any number of workers. Links, counts and models are written to files
(`pipeline.lexicons.alignment_files`), so that no worker holds more than one shard.

A target word e_i is explained by a source word f_j or by the empty word f_0 (Brown et al. 1993):

    p(e_i, j) = d(j | i, m, n) t(e_i | f_j)
    Model 1:   d = 1 / (n + 1)
    diagonal:  d = p_0 for j = 0, else (1 - p_0) exp(-lambda |i / m - j / n|) / Z_i
               (Dyer et al. 2013, eq. 1 to 4)

    E step:  posterior(i, j) = p(e_i, j) / sum over j' of p(e_i, j')
    M step:  t(e | f) = c(f, e) / sum over e' of c(f, e')
             c(f, e) = sum of posteriors of links between f and e

References:
    - Brown et al. 1993, "The Mathematics of Statistical Machine Translation",
      https://aclanthology.org/J93-2003
    - Dyer et al. 2013, "A Simple, Fast, and Effective Reparameterization of IBM Model 2",
      https://aclanthology.org/N13-1073
    - Liang et al. 2006, "Alignment by Agreement", https://aclanthology.org/N06-1014
"""

import typing
from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from pipeline.lexicons.links import NULL, Ids, Links, split_keys, transposed

FloatArray: typing.TypeAlias = npt.NDArray[np.float64]

# As in Dyer et al.'s program: the step of the tension along its gradient, and its limits.
_TENSION_RATE, _TENSION_STEPS, _TENSION_RANGE = 20.0, 8, (0.1, 14.0)


class Counts(typing.NamedTuple):
    """Expected counts of a pass: what adds up over shards.

    Attributes:
        keys: int64 `[parameters]`, rising.
        values: float64 `[parameters]`.
        log_likelihood: of the target words, natural logarithm, under the probabilities that the
            pass began with.
        distance: sum of the distances of the links, each by its posterior.
        words: expected number of target words that a source word explains.
        sizes: from (m, n) to the number of sentence pairs of that size.
    """

    keys: Ids
    values: FloatArray
    log_likelihood: float
    distance: float
    words: float
    sizes: dict[tuple[int, int], int]


class Table(typing.NamedTuple):
    """Translation probabilities t(e | f).

    Attributes:
        keys: int64 `[entries]`, rising; see `links.pair_keys`.
        probabilities: float64 `[entries]`.
    """

    keys: Ids
    probabilities: FloatArray


class Prior(typing.NamedTuple):
    """The diagonal prior.

    Attributes:
        null_probability: p_0, the share of target words that the empty word explains.
        tension: lambda.
    """

    null_probability: float = 0.08
    tension: float = 4.0


def posteriors(
    links: Links, table: Table | None = None, prior: Prior | None = None
) -> tuple[FloatArray, FloatArray]:
    """Returns the E step: the probability of each link, and that of each target word.

    Args:
        links: those of a shard.
        table: a pair that is missing has probability 0; None for a uniform t.
        prior: None for Model 1.

    Returns:
        (float64 `[links]`, float64 `[target words]`).
    """
    if not len(links.first):
        return np.zeros(0), np.zeros(0)
    number = np.diff(np.append(links.first, len(links.parameter)))
    if table is None:
        joint = np.ones(len(links.parameter))
    else:
        joint = _lookup(table, links.keys)[links.parameter]
    if prior is None:
        joint = joint / np.repeat(number, number)
    else:
        weights = np.where(
            links.pair >= 0, np.exp(-prior.tension * links.distance.astype(np.float64)), 0.0
        )
        normalizer = np.add.reduceat(weights, links.first)
        share = (1 - prior.null_probability) * weights / np.repeat(normalizer, number)
        joint = joint * np.where(links.pair >= 0, share, prior.null_probability)
    total = np.add.reduceat(joint, links.first)
    # A word without an explanation (its pairs were left out of the table) does not count.
    return joint / np.repeat(np.where(total > 0, total, 1.0), number), total


def expected_counts(
    links: Links,
    table: Table | None = None,
    prior: Prior | None = None,
    weights: FloatArray | None = None,
) -> Counts:
    """Returns the counts of one pass over a shard.

    Args:
        links, table, prior: see `posteriors`.
        weights: float64 `[links]` that the posteriors are multiplied by, or None.
    """
    expected, total = posteriors(links, table, prior)
    real = links.pair >= 0
    if weights is not None:
        expected = expected * weights
    values: FloatArray = np.bincount(links.parameter, expected, minlength=len(links.keys)).astype(
        np.float64, copy=False
    )
    sizes, numbers = np.unique(links.sizes, axis=0, return_counts=True)
    return Counts(
        links.keys,
        values,
        float(np.log(total[total > 0]).sum()),
        float((expected * links.distance).sum()),
        float(expected[real].sum()),
        {(int(m), int(n)): int(number) for (m, n), number in zip(sizes, numbers)},
    )


def add_counts(parts: Iterable[Counts]) -> Counts:
    """Returns the sum of the counts of shards."""
    parts = list(parts)
    if not parts:
        return Counts(np.zeros(0, np.int64), np.zeros(0), 0.0, 0.0, 0.0, {})
    if len(parts) == 1:
        return parts[0]
    keys = np.concatenate([part.keys for part in parts])
    # A stable sort finds the parts' own rising runs and merges them in linear time.
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    is_first = np.concatenate([[True], keys[1:] != keys[:-1]])[: len(keys)]
    values = np.concatenate([part.values for part in parts])[order]
    sums = np.bincount(np.cumsum(is_first) - 1, values, minlength=int(is_first.sum()))
    keys = keys[is_first]
    sizes: dict[tuple[int, int], int] = {}
    for part in parts:
        for size, number in part.sizes.items():
            sizes[size] = sizes.get(size, 0) + number
    return Counts(
        keys,
        sums.astype(np.float64, copy=False),
        sum(part.log_likelihood for part in parts),
        sum(part.distance for part in parts),
        sum(part.words for part in parts),
        sizes,
    )


def normalize(counts: Counts, with_null: bool = True) -> Table:
    """Returns the M step: t(e | f) of the pairs whose count is above 0.

    Args:
        counts: those of all shards.
        with_null: whether the empty word's entries stay.
    """
    keys, values = counts.keys, counts.values
    sources = split_keys(keys)[0]
    chosen = values > 0 if with_null else (values > 0) & (sources != NULL)
    keys, values, sources = keys[chosen], values[chosen], sources[chosen]
    if not len(keys):
        return Table(keys, values)
    starts = np.flatnonzero(np.concatenate([[True], sources[1:] != sources[:-1]]))
    totals = np.add.reduceat(values, starts)
    return Table(keys, values / np.repeat(totals, np.diff(np.append(starts, len(keys)))))


def likeliest(table: Table, top_k: int, min_probability: float) -> Table:
    """Returns the `top_k` likeliest entries of each source word, without the improbable ones.

    An entry as probable as the last one stays too, and the likeliest stays even below
    `min_probability`. Probabilities stay as they are.
    """
    sources = split_keys(table.keys)[0]
    if not len(sources):
        return table
    order = np.lexsort((-table.probabilities, sources))
    ranked = table.probabilities[order]
    starts = np.flatnonzero(np.concatenate([[True], sources[1:] != sources[:-1]]))
    number = np.diff(np.append(starts, len(sources)))
    last = ranked[starts + np.minimum(number, top_k) - 1]
    at_least = np.minimum(np.maximum(last, min_probability), ranked[starts])
    chosen = table.probabilities >= np.repeat(at_least, number)
    return Table(table.keys[chosen], table.probabilities[chosen])


def update_prior(prior: Prior, counts: Counts) -> Prior:
    """Returns the prior after some steps along the likelihood's gradient.

    Its expected distance is nearer to the one that a pass counted.
    """
    if counts.words <= 0:
        return prior
    empirical = counts.distance / counts.words
    tension = prior.tension
    for _ in range(_TENSION_STEPS):
        expected = _expected_distance(counts.sizes, tension)
        tension = float(np.clip(tension + _TENSION_RATE * (expected - empirical), *_TENSION_RANGE))
    return prior._replace(tension=tension)


def _expected_distance(sizes: Mapping[tuple[int, int], int], tension: float) -> float:
    """Returns the mean over target words of the distance that the diagonal prior expects."""
    total, words = 0.0, 0
    for (m, n), number in sizes.items():
        distance = np.abs(np.arange(1, m + 1)[:, np.newaxis] / m - np.arange(1, n + 1) / n)
        weights = np.exp(-tension * distance)
        total += number * float(((weights * distance).sum(1) / weights.sum(1)).sum())
        words += number * m
    return total / words


def _lookup(table: Table, keys: Ids) -> FloatArray:
    place = np.minimum(np.searchsorted(table.keys, keys), max(len(table.keys) - 1, 0))
    if not len(table.keys):
        return np.zeros(len(keys))
    return np.where(table.keys[place] == keys, table.probabilities[place], 0.0)


def agreement_weights(
    links: Links,
    other_links: Links,
    other_table: Table | None,
    other_prior: Prior | None = None,
) -> FloatArray:
    """Returns the other direction's posteriors of the same two words; 1 for the empty word.

    Counts with these weights are those of links that both directions agree on: the product of their
    posteriors (Liang et al. 2006).

    Args:
        links: those of the direction that is counted.
        other_links: of the same sentence pairs, source and target exchanged.
        other_table, other_prior: of the other direction.

    Returns:
        float64 `[links]`.
    """
    of_others, _ = posteriors(other_links, other_table, other_prior)
    real = other_links.pair >= 0
    by_pair = np.zeros(int(real.sum()))
    by_pair[transposed(other_links)] = of_others[real]
    return np.where(
        links.pair >= 0, by_pair[np.maximum(links.pair, 0)] if len(by_pair) else 1.0, 1.0
    )
