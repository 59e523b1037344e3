"""Labels of pointer softmax: where in the source each target token points.

Source: Gulcehre et al. 2016, sections 5.2 and 5.3.
"""

from collections.abc import Callable

import tensorflow as tf

from pipeline.features import matching
from pipeline.text import tokenization

GENERATED, MOST_ATTENDED = -1, -2
POINTERS = ("unknown", "dictionary", "entities")


def _with_end(target_tokens: tf.RaggedTensor, pointers: tf.Tensor) -> tf.RaggedTensor:
    """Returns ragged `[batch, (length + 1)]`: the end is generated."""
    end = GENERATED * tf.ones([target_tokens.nrows(), 1], tf.int64)
    return tf.concat([target_tokens.with_flat_values(pointers), end], axis=1)


def dictionary_pointers(
    source_tokens: tf.RaggedTensor,
    target_tokens: tf.RaggedTensor,
    unknown: tf.Tensor,
    lookup: Callable[[tf.Tensor], tf.Tensor],
) -> tf.RaggedTensor:
    """Returns pointers for translation (section 5.3).

    A target word outside the shortlist points to itself in the source; else to one of its
    translations in the source; each at its first position; else to the position with the highest
    attention. Of several translations that the source holds it is the first of the dictionary; the
    paper leaves that open.

    Args:
        source_tokens, target_tokens: ragged string `[batch, (length)]`.
        unknown: bool, over the target's flat values: whether the shortlist lacks it.
        lookup: function from string `[tokens]`, target words, to string `[tokens]`, their
            translations in the dictionary's order, separated by spaces, "" for none.

    Returns:
        ragged int64 `[batch, (length + 1)]`, the end's step included: a source position,
        `GENERATED` or `MOST_ATTENDED`.
    """
    row_starts = tf.gather(source_tokens.row_starts(), target_tokens.value_rowids())
    source_keys, target_keys = matching.token_keys(source_tokens, target_tokens)
    _, _, itself = matching.first_occurrences(source_keys, target_keys)
    # Only words that need a translation are looked up.
    needs_translation = unknown & (itself < 0)
    translations = tf.strings.split(
        tf.where(needs_translation, lookup(target_tokens.flat_values), ""), " "
    )
    translations = tf.ragged.boolean_mask(translations, translations != "")
    # Which target token each translation is of.
    words = translations.value_rowids()
    rows = tf.gather(target_tokens.value_rowids(), words)
    by_row = tf.RaggedTensor.from_value_rowids(
        translations.flat_values, rows, nrows=target_tokens.nrows()
    )
    _, _, places = matching.first_occurrences(*matching.token_keys(source_tokens, by_row))
    # The first translation, in the dictionary's order, that the source holds.
    order = tf.range(tf.size(places, out_type=tf.int64))
    number = tf.size(unknown, out_type=tf.int64)
    nowhere = tf.size(places, out_type=tf.int64)
    first = tf.math.unsorted_segment_min(tf.where(places >= 0, order, nowhere), words, number)
    # A word without translations has the largest integer.
    is_translated = first < nowhere
    translated = tf.gather(tf.concat([places, [-1]], axis=0), tf.minimum(first, nowhere))
    pointers = tf.where(
        itself >= 0,
        itself - row_starts,
        tf.where(is_translated, translated - row_starts, MOST_ATTENDED),
    )
    return _with_end(target_tokens, tf.where(unknown, pointers, GENERATED))


def is_entity(tags: tf.Tensor) -> tf.Tensor:
    """Returns which tags mark entities.

    They are all but `O` (outside, in schemes such as BIO), `-`, `_` and `0`.
    """
    return tf.logical_not(tf.strings.regex_full_match(tags, "[O0_-]"))


def entity_labels(
    source_tokens: tf.RaggedTensor, target_tokens: tf.RaggedTensor, entities: tf.Tensor
) -> tuple[tf.Tensor, tf.RaggedTensor]:
    """Returns ids of a text's entities and pointers to them (section 5.2).

    Entities are numbered from left to right, token by token, so that a part of an entity can match;
    the same token has the same number. A target token that is such an entity points to the first,
    even if the vocabulary has the word.

    Args:
        source_tokens, target_tokens: ragged string `[batch, (length)]`.
        entities: bool, over the source's flat values: whether it is (part of) an entity.

    Returns:
        int64 over the source's flat values: the entity's number from 1, 0 for other tokens; and
        ragged int64 `[batch, (length + 1)]`: a source position or `GENERATED`.
    """
    source_keys, target_keys = matching.token_keys(source_tokens, target_tokens)
    # A token that is not an entity gets a key that no target token has.
    places = tf.range(tf.size(source_keys, out_type=tf.int64))
    keys = tf.where(entities, source_keys, -1 - places)
    _, _, first = matching.first_occurrences(keys, keys)
    # Numbers of the row: how many entities are new up to here, less those of the rows before.
    new = tf.cast(entities & tf.equal(first, places), tf.int64)
    before = tf.gather(tf.concat([[0], tf.cumsum(new)], axis=0), source_tokens.row_starts())
    ranks = tf.cumsum(new) - tf.gather(before, source_tokens.value_rowids())
    numbers = tf.where(entities, tf.gather(ranks, first), 0)
    _, _, pointed = matching.first_occurrences(keys, target_keys)
    row_starts = tf.gather(source_tokens.row_starts(), target_tokens.value_rowids())
    return numbers, _with_end(
        target_tokens, tf.where(pointed >= 0, pointed - row_starts, GENERATED)
    )


def entity_name(number: int) -> str:
    """Returns the source vocabulary's word for a text's entity of that number, from 1."""
    return f"[ENTITY_{number}]"


def entity_ids(
    known_ids: tf.Tensor, numbers: tf.Tensor, source_size: tf.Tensor, number_of_entities: int
) -> tf.Tensor:
    """Replaces the ids of entities by those of `[ENTITY_1]`, …, the last of the source vocabulary.

    Args:
        known_ids: int64 `[tokens]`, source vocabulary ids.
        numbers: int64 `[tokens]`, see `entity_labels`.
        source_size: number of source ids, those of entities included.
        number_of_entities: how many of them are entities'; one that is beyond is unknown.
    """
    first = source_size - number_of_entities
    ids = tf.where(numbers <= number_of_entities, first + numbers - 1, tokenization.UNK_ID)
    return tf.where(numbers > 0, ids, known_ids)
