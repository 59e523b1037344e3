"""The files that the passes of an alignment exchange: links, counts and models."""

from typing import IO

import numpy as np

from pipeline.lexicons.links import Links, links_of_sizes
from pipeline.lexicons.word_alignment import Counts, Prior, Table


def write_links(file: IO[bytes], links: Links) -> None:
    """Writes links to a binary file, without data that follow from the sizes of the sentence
    pairs."""
    np.savez(file, keys=links.keys, parameter=links.parameter, sizes=links.sizes)


def read_links(file: IO[bytes]) -> Links:
    """Reads what `write_links` wrote."""
    with np.load(file, allow_pickle=False) as arrays:
        keys, parameter, sizes = (arrays[name] for name in ("keys", "parameter", "sizes"))
    return links_of_sizes(keys, parameter, sizes)


def write_counts(file: IO[bytes], counts: Counts) -> None:
    """Writes counts to a binary file."""
    scalars = np.array([counts.log_likelihood, counts.distance, counts.words])
    sizes = np.array([(*size, number) for size, number in counts.sizes.items()], np.int64).reshape(
        -1, 3
    )
    np.savez(file, keys=counts.keys, values=counts.values, scalars=scalars, sizes=sizes)


def read_counts(file: IO[bytes]) -> Counts:
    """Reads what `write_counts` wrote."""
    with np.load(file, allow_pickle=False) as arrays:
        sizes = {(int(m), int(n)): int(number) for m, n, number in arrays["sizes"]}
        log_likelihood, distance, words = map(float, arrays["scalars"])
        return Counts(arrays["keys"], arrays["values"], log_likelihood, distance, words, sizes)


def write_model(file: IO[bytes], table: Table, prior: Prior | None = None) -> None:
    """Writes a table, and a prior if there is one, to a binary file."""
    np.savez(
        file,
        keys=table.keys,
        probabilities=table.probabilities,
        prior=np.array([] if prior is None else prior),
    )


def read_model(file: IO[bytes]) -> tuple[Table, Prior | None]:
    """Reads what `write_model` wrote; returns (table, prior)."""
    with np.load(file, allow_pickle=False) as arrays:
        table = Table(arrays["keys"], arrays["probabilities"])
        numbers = arrays["prior"].tolist()
    return table, Prior(*numbers) if numbers else None
