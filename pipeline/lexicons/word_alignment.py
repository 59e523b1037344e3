"""Word translation probabilities from sentence pairs, by expectation maximisation:
IBM Model 1, and Model 2 with a diagonal prior.

Sparse and vectorised: a shard is the links between the words of its sentence pairs, and a pass over
it is a few NumPy operations. What a pass finds of several shards is added (`add_counts`), so a
corpus may be cut up in any way and passed over by any number of workers. Links, counts and models
are written to files and read again (`write_links`, ...), so that no worker holds more than one
shard.

A target word e_i is explained by a source word f_j or by the empty word f_0 (Brown et al. 1993):

    p(e_i, j) = d(j | i, m, n) t(e_i | f_j)
    Model 1:   d = 1 / (n + 1)
    diagonal:  d = p_0 for j = 0, else (1 - p_0) exp(-lambda |i / m - j / n|) / Z_i          (Dyer
        et al. 2013, eq. 1 to 4)

    E step:  posterior(i, j) = p(e_i, j) / sum over j' of p(e_i, j')
    M step:  t(e | f) = c(f, e) / sum over e' of c(f, e'),   c(f, e) = sum of posteriors of links
    between f and e

References:
    Brown et al. 1993, "The Mathematics of Statistical Machine Translation",
    https://aclanthology.org/J93-2003 Dyer et al. 2013, "A Simple, Fast, and Effective
    Reparameterization of IBM Model 2", https://aclanthology.org/N13-1073 Liang et al. 2006,
    "Alignment by Agreement", https://aclanthology.org/N06-1014
"""

import typing

import numpy as np

NULL = 0  # the empty word's id; words have ids from 1
_SHIFT = np.int64(32)  # a pair of ids is one int64: the source's in the high half

# Of Dyer et al.'s program: how fast the tension follows its gradient, and where it stays.
_TENSION_RATE, _TENSION_STEPS, _TENSION_RANGE = 20.0, 8, (0.1, 14.0)


class Links(typing.NamedTuple):
    """All links of a shard's sentence pairs, those of one target word side by side, the empty
    word's first.

    keys: int64 `[parameters]`, the pairs of words that are linked somewhere, rising; see
    `pair_keys`. parameter: int32 `[links]`, the place in `keys` of a link's pair. first: int64
    `[target words]`, each target word's first link. distance: float32 `[links]`, |i / m - j / n|; 0
    for the empty word. pair: int64 `[links]`, the place of a link in the sentence pair's own
    matrix, counted over the shard, or -1 for the empty
        word: the same number for the same two words in both directions.
    sizes: int32 `[sentence pairs, 2]`, m target and n source words.
    """

    keys: np.ndarray
    parameter: np.ndarray
    first: np.ndarray
    distance: np.ndarray
    pair: np.ndarray
    sizes: np.ndarray


class Counts(typing.NamedTuple):
    """Expected counts of a pass: what adds up over shards.

    keys: int64 `[parameters]`, rising.
    values: float64 `[parameters]`.
    log_likelihood: of the target words, natural logarithm, under the probabilities that the pass
    began with. distance: sum of the distances of the links, each by its posterior. words: expected
    number of target words that a source word explains. sizes: dict from (m, n) to the number of
    sentence pairs of that size.
    """

    keys: np.ndarray
    values: np.ndarray
    log_likelihood: float
    distance: float
    words: float
    sizes: dict


class Table(typing.NamedTuple):
    """Translation probabilities t(e | f).

    keys: int64 `[entries]`, rising; see `pair_keys`.
    probabilities: float64 `[entries]`.
    """

    keys: np.ndarray
    probabilities: np.ndarray


class Prior(typing.NamedTuple):
    """The diagonal prior:
    p_0, the share of target words that the empty word explains, and lambda, the tension.
    """

    null_probability: float = 0.08
    tension: float = 4.0


def pair_keys(sources, targets):
    """Returns one int64 for each pair of ids, which sorts by source, then target."""
    return (np.asarray(sources, np.int64) << _SHIFT) | np.asarray(targets, np.int64)


def split_keys(keys):
    """Returns source and target ids of what `pair_keys` gave."""
    return keys >> _SHIFT, keys & ((np.int64(1) << _SHIFT) - 1)


def make_links(sources, targets):
    """Links every target word of a shard's sentence pairs to every source word of its own, and to
    the empty word.

    Args:
        sources, targets: lists of lists of word ids, from 1; aligned. Pairs of which a side is
            empty have no links.

    Returns:
        `Links`.
    """
    sizes = np.array(
        [(len(t), len(s)) for s, t in zip(sources, targets) if len(s) and len(t)], np.int32
    ).reshape(-1, 2)
    kept = [(s, t) for s, t in zip(sources, targets) if len(s) and len(t)]
    if not kept:
        empty = np.zeros(0, np.int64)
        return Links(empty, empty.astype(np.int32), empty, np.zeros(0, np.float32), empty, sizes)
    source_words = np.concatenate([np.concatenate([[NULL], s]) for s, _ in kept]).astype(np.int64)
    target_words = np.concatenate([t for _, t in kept]).astype(np.int64)
    grid = _grid(sizes)
    n = sizes[:, 1].astype(np.int64)
    source_start = np.cumsum(n + 1) - (n + 1)
    linked = source_words[source_start[grid.sentence] + grid.source]
    keys, parameter = np.unique(pair_keys(linked, target_words[grid.word]), return_inverse=True)
    return _links_of(keys, parameter.reshape(-1).astype(np.int32), grid, sizes)


class _Grid(typing.NamedTuple):
    """Where the links of sentence pairs of given sizes are;
    each array is int64 `[links]` but `first`, `[target words]`.

    sentence, word: the link's sentence pair and target word, counted over the shard.
    target: i - 1, the target word's place in its sentence.
    source: j, the source word's place in its sentence from 1; 0 is the empty word.
    first: each target word's first link.
    """

    sentence: np.ndarray
    word: np.ndarray
    target: np.ndarray
    source: np.ndarray
    first: np.ndarray


def _grid(sizes):
    m, n = sizes[:, 0].astype(np.int64), sizes[:, 1].astype(np.int64)
    of = np.repeat(np.arange(len(sizes)), m)
    place = np.arange(len(of)) - np.repeat(np.cumsum(m) - m, m)
    number = n[of] + 1
    first = np.cumsum(number) - number
    word = np.repeat(np.arange(len(of)), number)
    return _Grid(of[word], word, place[word], np.arange(number.sum()) - first[word], first)


def _links_of(keys, parameter, grid, sizes):
    """Returns `Links`, of which all but the words follows from the sizes of the sentence pairs."""
    m, n = sizes[:, 0].astype(np.int64), sizes[:, 1].astype(np.int64)
    of, i, j = grid.sentence, grid.target + 1, grid.source
    distance = np.where(j > 0, np.abs(i / m[of] - j / n[of]), 0.0).astype(np.float32)
    matrix_start = np.cumsum(m * n) - m * n
    pair = np.where(j > 0, matrix_start[of] + (i - 1) * n[of] + j - 1, -1)
    return Links(keys, parameter, grid.first, distance, pair, sizes)


def posteriors(links, table=None, prior=None):
    """The E step:
    the probability of each link, float64 `[links]`, and that of each target word, `[target words]`.

    Args:
        links: `Links`.
        table: `Table`, in which a pair that is missing has probability 0; None for a uniform t.
        prior: `Prior`, or None for Model 1.
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
    # A word without an explanation (its pairs were left out of the table) counts for nothing.
    return joint / np.repeat(np.where(total > 0, total, 1.0), number), total


def expected_counts(links, table=None, prior=None, weights=None):
    """One pass over a shard.

    Args:
        links, table, prior: see `posteriors`.
        weights: float64 `[links]` that the posteriors are multiplied by, or None.

    Returns:
        `Counts`.
    """
    found, total = posteriors(links, table, prior)
    real = links.pair >= 0
    if weights is not None:
        found = found * weights
    values = np.bincount(links.parameter, found, minlength=len(links.keys))
    sizes, numbers = np.unique(links.sizes, axis=0, return_counts=True)
    return Counts(
        links.keys,
        values,
        float(np.log(total[total > 0]).sum()),
        float((found * links.distance).sum()),
        float(found[real].sum()),
        {(int(m), int(n)): int(number) for (m, n), number in zip(sizes, numbers)},
    )


def add_counts(parts):
    """Adds up the `Counts` of shards."""
    parts = list(parts)
    if not parts:
        return Counts(np.zeros(0, np.int64), np.zeros(0), 0.0, 0.0, 0.0, {})
    if len(parts) == 1:
        return parts[0]
    keys = np.concatenate([part.keys for part in parts])
    # A stable sort finds the parts' own rising runs and merges them, in time that is linear in
    # their lengths.
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    is_first = np.concatenate([[True], keys[1:] != keys[:-1]])[: len(keys)]
    values = np.concatenate([part.values for part in parts])[order]
    keys, values = (
        keys[is_first],
        np.bincount(np.cumsum(is_first) - 1, values, minlength=int(is_first.sum())),
    )
    sizes = {}
    for part in parts:
        for size, number in part.sizes.items():
            sizes[size] = sizes.get(size, 0) + number
    scalars = [
        sum(getattr(part, name) for part in parts)
        for name in ("log_likelihood", "distance", "words")
    ]
    return Counts(keys, values, *scalars, sizes)


def normalize(counts, with_null=True):
    """The M step: t(e | f) from counts.

    Args:
        counts: `Counts`.
        with_null: whether the empty word's entries stay.

    Returns:
        `Table` of the pairs whose count is above 0.
    """
    keys, values = counts.keys, counts.values
    sources = split_keys(keys)[0]
    kept = values > 0 if with_null else (values > 0) & (sources != NULL)
    keys, values, sources = keys[kept], values[kept], sources[kept]
    if not len(keys):
        return Table(keys, values)
    starts = np.flatnonzero(np.concatenate([[True], sources[1:] != sources[:-1]]))
    totals = np.add.reduceat(values, starts)
    return Table(keys, values / np.repeat(totals, np.diff(np.append(starts, len(keys)))))


def likeliest(table, top_k, min_probability):
    """Leaves out of a `Table` what cannot be among the `top_k` likeliest of its source word, or is
    rarer than `min_probability`.

    Each source word keeps its likeliest entries, and all that are as probable as its last one kept.
    Probabilities stay as they are.
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
    kept = table.probabilities >= np.repeat(at_least, number)
    return Table(table.keys[kept], table.probabilities[kept])


def update_prior(prior, counts):
    """The prior whose expected distance is nearer to the one that a pass found:
    some steps along the likelihood's gradient.
    """
    if counts.words <= 0:
        return prior
    empirical = counts.distance / counts.words
    tension = prior.tension
    for _ in range(_TENSION_STEPS):
        expected = _expected_distance(counts.sizes, tension)
        tension = float(np.clip(tension + _TENSION_RATE * (expected - empirical), *_TENSION_RANGE))
    return prior._replace(tension=tension)


def _expected_distance(sizes, tension):
    """Mean over target words of the distance that the diagonal prior expects."""
    total = words = 0
    for (m, n), number in sizes.items():
        distance = np.abs(np.arange(1, m + 1)[:, np.newaxis] / m - np.arange(1, n + 1) / n)
        weights = np.exp(-tension * distance)
        total += number * float(((weights * distance).sum(1) / weights.sum(1)).sum())
        words += number * m
    return total / words


def _lookup(table, keys):
    place = np.minimum(np.searchsorted(table.keys, keys), max(len(table.keys) - 1, 0))
    if not len(table.keys):
        return np.zeros(len(keys))
    return np.where(table.keys[place] == keys, table.probabilities[place], 0.0)


def agreement_weights(links, other_links, other_table, other_prior=None):
    """The other direction's posteriors of the same two words, float64 `[links]`; 1 for the empty
    word.

    Counts weighted so are those of links that both directions believe in: the product of their
    posteriors (Liang et al. 2006).

    Args:
        links: `Links` of the direction that is counted.
        other_links: of the same sentence pairs, source and target exchanged.
        other_table, other_prior: of the other direction.
    """
    found, _ = posteriors(other_links, other_table, other_prior)
    real = other_links.pair >= 0
    by_pair = np.zeros(int(real.sum()))
    by_pair[_transposed(other_links)] = found[real]
    return np.where(
        links.pair >= 0, by_pair[np.maximum(links.pair, 0)] if len(by_pair) else 1.0, 1.0
    )


def _transposed(links):
    """Where the other direction has each real link: `pair` of the transposed matrices."""
    m, n = links.sizes[:, 0].astype(np.int64), links.sizes[:, 1].astype(np.int64)
    starts = np.cumsum(m * n) - m * n
    pairs = links.pair[links.pair >= 0]
    of = np.searchsorted(starts, pairs, side="right") - 1
    row, column = np.divmod(pairs - starts[of], n[of])
    return starts[of] + column * m[of] + row


def write_links(file, links):
    """Writes `Links` to a binary file, but for what follows from the sizes of the sentence pairs."""
    np.savez(file, keys=links.keys, parameter=links.parameter, sizes=links.sizes)


def read_links(file):
    """Reads what `write_links` wrote."""
    with np.load(file, allow_pickle=False) as arrays:
        keys, parameter, sizes = (arrays[name] for name in ("keys", "parameter", "sizes"))
    return _links_of(keys, parameter, _grid(sizes), sizes)


def write_counts(file, counts):
    """Writes `Counts` to a binary file."""
    scalars = np.array([counts.log_likelihood, counts.distance, counts.words])
    sizes = np.array([(*size, number) for size, number in counts.sizes.items()], np.int64).reshape(
        -1, 3
    )
    np.savez(file, keys=counts.keys, values=counts.values, scalars=scalars, sizes=sizes)


def read_counts(file):
    """Reads what `write_counts` wrote."""
    with np.load(file, allow_pickle=False) as arrays:
        sizes = {(int(m), int(n)): int(number) for m, n, number in arrays["sizes"]}
        return Counts(arrays["keys"], arrays["values"], *map(float, arrays["scalars"]), sizes)


def write_model(file, table, prior=None):
    """Writes a `Table`, and a `Prior` if there is one, to a binary file."""
    np.savez(
        file,
        keys=table.keys,
        probabilities=table.probabilities,
        prior=np.array([] if prior is None else prior),
    )


def read_model(file):
    """Reads what `write_model` wrote; returns (table, prior)."""
    with np.load(file, allow_pickle=False) as arrays:
        prior = arrays["prior"]
        return Table(arrays["keys"], arrays["probabilities"]), Prior(*map(float, prior)) if len(
            prior
        ) else None
