"""Features of source tokens beside the word: columns of tags, and what the surface itself shows.

The encoder embeds each and joins it to the word's embedding (the feature-rich encoder of Zhou et
al. 2017).
"""

from collections.abc import Mapping

import tensorflow as tf

from pipeline.features.table import Table
from pipeline.text import tokenization

SURFACE_FEATURES = ("case",)
# Their ids: 0 is padding, as everywhere.
CASES = ("[PAD]", "none", "lower", "upper", "title", "mixed")
TAG_SPECIALS = (tokenization.PAD, tokenization.UNK)


def tags_file(name: str) -> str:
    """Returns the name of the file that holds the tags of a column, one per line."""
    return f"tags_{name}.txt"


def ranked_tags(counts: Mapping[str, int]) -> list[str]:
    """Returns the lines of `tags_file`: the specials, then tags by falling count."""
    tags = set(counts) - set(TAG_SPECIALS)
    return [*TAG_SPECIALS, *sorted(tags, key=lambda tag: (-counts[tag], tag))]


def feature_name(name: str) -> str:
    """Returns the name of a feature in the examples and of the model's input."""
    return f"source_{name}"


def tag_ids(texts: tf.Tensor, table: Table) -> tf.RaggedTensor:
    """Returns the ids of tags.

    Args:
        texts: string `[batch]`, tags separated by white space.
        table: lookup table of the tags, -1 for unknown ones.

    Returns:
        ragged int64 `[batch, (tags)]`; an unknown tag has the id of `[UNK]`.
    """
    tags = split_tags(texts)
    known = table.lookup(tags.flat_values)
    return tags.with_flat_values(tf.where(known >= len(TAG_SPECIALS), known, tokenization.UNK_ID))


def split_tags(texts: tf.Tensor) -> tf.RaggedTensor:
    """Returns the tags of string `[batch]`, ragged string `[batch, (tags)]`."""
    return tokenization.Tokenizer("whitespace").tokenize(texts)


def case_ids(tokens: tf.Tensor) -> tf.Tensor:
    """Returns how each token is written: without cased letters, lower, UPPER, Title, or miXed.

    Args:
        tokens: string `[tokens]`. One capital letter alone is upper.

    Returns:
        int64 `[tokens]`, indices of `CASES`.
    """
    ids = tf.fill(tf.shape(tokens), tf.constant(CASES.index("mixed"), tf.int64))
    # The last that matches counts: a token without cased letters has no capital either, …
    for name, pattern in (
        ("title", r"[^\p{Lu}\p{Ll}\p{Lt}]*[\p{Lu}\p{Lt}][^\p{Lu}\p{Lt}]*"),
        ("upper", r"[^\p{Ll}\p{Lt}]*"),
        ("lower", r"[^\p{Lu}\p{Lt}]*"),
        ("none", r"[^\p{Lu}\p{Ll}\p{Lt}]*"),
    ):
        matches = tf.strings.regex_full_match(tokens, pattern)
        ids = tf.where(matches, tf.constant(CASES.index(name), tf.int64), ids)
    return ids
