"""Terms of a glossary in training pairs: words whose translation is known become terms.

So the model learns that a term stands for a word, and where its translation belongs (Dinu et al.
2019, "Training Neural Machine Translation to Apply Terminology Constraints",
https://aclanthology.org/P19-1294). `term_phrases` keeps the word beside its term.
"""

from collections.abc import Callable

import tensorflow as tf

from pipeline.features import matching
from pipeline.text import tokenization

# A word of four bytes or more: short ones are rarely terms.
_WORD = r"[\p{L}\p{M}\p{N}_\-]{2,}"
_LEAST_BYTES = 4
# A unit that continues the word before it.
_CONTINUATION = rf"(?s){tokenization.JOINER}[\p{{L}}\p{{M}}\p{{N}}_].*"
_BUCKETS = 1 << 20


def with_terms(
    source: tf.RaggedTensor,
    target: tf.RaggedTensor,
    lookup: Callable[[tf.Tensor], tf.Tensor],
    share: float,
    is_training: tf.Tensor,
) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
    """Replaces words by terms, on both sides.

    A word can become a term if it is once in the source, its likeliest translation is once in the
    target, and no other word has that translation. Of such words each becomes one with probability
    1/2, in the pairs that are chosen. The text decides it, so it is the same in every run.

    Args:
        source, target: ragged string `[batch, (length)]`, tokens.
        lookup: function from source words to their likeliest translations, "" for none.
        share: the share of pairs that are chosen.
        is_training: bool `[batch]`, which pairs may be.

    Returns:
        Source and target, of the same lengths.
    """
    words, rows = source.flat_values, source.value_rowids()
    translations = lookup(words)
    is_candidate = _is_word(source) & _is_whole(translations)
    # Words that cannot become a term have no translation that another could share.
    translations = tf.where(is_candidate, translations, "")
    own, _ = matching.token_keys(source, target)
    keys, target_keys = matching.token_keys(source.with_flat_values(translations), target)
    is_candidate &= (_count(own, own) == 1) & (_count(keys, keys) == 1)
    target_is_word = tf.cast(_is_word(target), tf.int32)
    is_candidate &= _count(keys, target_keys) == 1
    _, _, places = matching.first_occurrences(target_keys, keys)
    inside = tf.maximum(places, 0)
    padded = tf.concat([target_is_word, [0]], axis=0)
    is_candidate &= (places >= 0) & (tf.gather(padded, inside) > 0)

    text = tf.strings.reduce_join(source, axis=-1, separator=" ")
    drawn = tf.strings.to_hash_bucket_fast(text, _BUCKETS)
    is_chosen = (drawn < int(share * _BUCKETS)) & is_training
    coin = tf.strings.to_hash_bucket_fast(
        tf.strings.join([words, tf.gather(text, rows)], separator="\n"), 2
    )
    becomes = is_candidate & tf.gather(is_chosen, rows) & (coin == 0)
    terms = tf.strings.join(["\0", words, "\0", translations, "\0"])
    target_terms = tf.tensor_scatter_nd_update(
        target.flat_values,
        tf.boolean_mask(places, becomes)[:, tf.newaxis],
        tf.boolean_mask(terms, becomes),
    )
    return (
        source.with_flat_values(tf.where(becomes, terms, words)),
        target.with_flat_values(target_terms),
    )


def _is_whole(words: tf.Tensor) -> tf.Tensor:
    is_word = tf.strings.regex_full_match(words, _WORD)
    return is_word & (tf.strings.length(words) >= _LEAST_BYTES)


def _is_word(tokens: tf.RaggedTensor) -> tf.Tensor:
    """Returns which tokens are whole words; bool over the flat values."""
    flat, rows = tokens.flat_values, tokens.value_rowids()
    continues = tf.strings.regex_full_match(flat, _CONTINUATION)
    none = tf.zeros([tf.minimum(tf.size(flat), 1)], tf.bool)
    goes_on = tf.concat([continues[1:] & (rows[1:] == rows[:-1]), none], axis=0)
    return _is_whole(flat) & ~goes_on


def _count(keys: tf.Tensor, among: tf.Tensor) -> tf.Tensor:
    """Returns how often each key is among others."""
    largest = tf.reduce_max(tf.concat([keys, among, [0]], axis=0))
    counts = tf.math.unsorted_segment_sum(tf.ones_like(among), among, largest + 1)
    return tf.gather(counts, keys)
