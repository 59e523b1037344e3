"""The links between the words of sentence pairs, and their pairs of word ids as one number."""

import typing
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Ids: typing.TypeAlias = npt.NDArray[np.int64]

#: The empty word's id; words have ids from 1.
NULL = 0
# A pair of ids is one int64: the source's in the high half.
_SHIFT = np.int64(32)


class Links(typing.NamedTuple):
    """All links of a shard's sentence pairs.

    Those of one target word are side by side, the empty word's first.

    Attributes:
        keys: int64 `[parameters]`, the pairs of words that are linked somewhere, rising; see
            `pair_keys`.
        parameter: int32 `[links]`, the place in `keys` of a link's pair.
        first: int64 `[target words]`, each target word's first link.
        distance: float32 `[links]`, |i / m - j / n|; 0 for the empty word.
        pair: int64 `[links]`, the place of a link in the sentence pair's own matrix, counted over
            the shard: the same number for the same two words in both directions. It is -1 for the
            empty word.
        sizes: int32 `[sentence pairs, 2]`, m target and n source words.
    """

    keys: Ids
    parameter: npt.NDArray[np.int32]
    first: Ids
    distance: npt.NDArray[np.float32]
    pair: Ids
    sizes: npt.NDArray[np.int32]


def pair_keys(sources: npt.ArrayLike, targets: npt.ArrayLike) -> Ids:
    """Returns one int64 for each pair of ids, which sorts by source, then target."""
    keys: Ids = (np.asarray(sources, np.int64) << _SHIFT) | np.asarray(targets, np.int64)
    return keys


def split_keys(keys: Ids) -> tuple[Ids, Ids]:
    """Returns source and target ids of what `pair_keys` gave."""
    return keys >> _SHIFT, keys & ((np.int64(1) << _SHIFT) - 1)


def make_links(sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> Links:
    """Links every target word of a shard to the source words of its sentence pair.

    It is linked to the empty word too.

    Args:
        sources, targets: word ids of each sentence, from 1; aligned. Pairs of which a side is empty
            have no links.
    """
    sizes = np.array(
        [(len(t), len(s)) for s, t in zip(sources, targets) if len(s) and len(t)], np.int32
    ).reshape(-1, 2)
    pairs = [(s, t) for s, t in zip(sources, targets) if len(s) and len(t)]
    if not pairs:
        empty = np.zeros(0, np.int64)
        return Links(empty, empty.astype(np.int32), empty, np.zeros(0, np.float32), empty, sizes)
    source_words = np.concatenate([np.concatenate([[NULL], s]) for s, _ in pairs]).astype(np.int64)
    target_words = np.concatenate([t for _, t in pairs]).astype(np.int64)
    grid = _grid(sizes)
    n = sizes[:, 1].astype(np.int64)
    source_start = np.cumsum(n + 1) - (n + 1)
    linked = source_words[source_start[grid.sentence] + grid.source]
    keys, parameter = np.unique(pair_keys(linked, target_words[grid.word]), return_inverse=True)
    return _links_of(keys, parameter.reshape(-1).astype(np.int32), grid, sizes)


class _Grid(typing.NamedTuple):
    """Where the links of sentence pairs are: int64 `[links]`, but for `first`.

    Attributes:
        sentence, word: the link's sentence pair and target word, counted over the shard.
        target: i - 1, the target word's place in its sentence.
        source: j, the source word's place in its sentence from 1; 0 is the empty word.
        first: `[target words]`, each target word's first link.
    """

    sentence: Ids
    word: Ids
    target: Ids
    source: Ids
    first: Ids


def _grid(sizes: npt.NDArray[np.int32]) -> _Grid:
    m, n = sizes[:, 0].astype(np.int64), sizes[:, 1].astype(np.int64)
    of = np.repeat(np.arange(len(sizes)), m)
    place = np.arange(len(of)) - np.repeat(np.cumsum(m) - m, m)
    number = n[of] + 1
    first = np.cumsum(number) - number
    word = np.repeat(np.arange(len(of)), number)
    return _Grid(of[word], word, place[word], np.arange(number.sum()) - first[word], first)


def links_of_sizes(
    keys: Ids, parameter: npt.NDArray[np.int32], sizes: npt.NDArray[np.int32]
) -> Links:
    """Returns links by their words; all else follows from the sizes of the sentence pairs."""
    return _links_of(keys, parameter, _grid(sizes), sizes)


def _links_of(
    keys: Ids, parameter: npt.NDArray[np.int32], grid: _Grid, sizes: npt.NDArray[np.int32]
) -> Links:
    m, n = sizes[:, 0].astype(np.int64), sizes[:, 1].astype(np.int64)
    of, i, j = grid.sentence, grid.target + 1, grid.source
    distance = np.where(j > 0, np.abs(i / m[of] - j / n[of]), 0.0).astype(np.float32)
    matrix_start = np.cumsum(m * n) - m * n
    pair = np.where(j > 0, matrix_start[of] + (i - 1) * n[of] + j - 1, -1)
    return Links(keys, parameter, grid.first, distance, pair, sizes)


def transposed(links: Links) -> Ids:
    """Returns the place of each real link in the other direction: `pair` of the transposed
    matrices."""
    m, n = links.sizes[:, 0].astype(np.int64), links.sizes[:, 1].astype(np.int64)
    starts = np.cumsum(m * n) - m * n
    pairs = links.pair[links.pair >= 0]
    of = np.searchsorted(starts, pairs, side="right") - 1
    row, column = np.divmod(pairs - starts[of], n[of])
    places: Ids = starts[of] + column * m[of] + row
    return places
