"""What a model that was trained with the terms of a glossary reads of them.

A term is one token, whose copy writes the translation. All terms have one class, so that token
alone would hide from the encoder which word stood there, and from the decoder which word it wrote.
So the phrase stays in the source, and the term follows it (Dinu et al. 2019, "Training Neural
Machine Translation to Apply Terminology Constraints", https://aclanthology.org/P19-1294, the
variant "append"). After a copy of the term, the decoder reads the last token of the translation.
"""

import tensorflow as tf

from pipeline.features.protected_classes import is_protected
from pipeline.features.table import Table
from pipeline.text import terms
from pipeline.text.tokenization import CLASS_TOKENS
from pipeline.text.units import GraphTokenizer


def behind_phrases(tokens: tf.RaggedTensor, tokenizer: GraphTokenizer) -> tf.RaggedTensor:
    """Writes each term's phrase before it.

    A placeholder or tag inside of a phrase is not repeated: an output holds each as often as the
    source does.

    Args:
        tokens: ragged string `[batch, (length)]`, of sources.
        tokenizer: cuts phrases.

    Returns:
        The same with the tokens of the phrases: ragged string `[batch, (length)]`.
    """
    flat = tokens.flat_values
    phrases = tokenizer.tokenize(tf.where(terms.is_term(flat), terms.phrases(flat), ""))
    kept = ~is_protected(phrases.flat_values, tokenizer.syntax)
    phrases = tf.ragged.boolean_mask(phrases, phrases.with_flat_values(kept))
    both = tf.concat([phrases, tf.expand_dims(flat, 1)], axis=1)
    return tokens.with_values(both).merge_dims(1, 2)


def fed_translations(
    tokens: tf.RaggedTensor, feed: tf.RaggedTensor, tokenizer: GraphTokenizer, table: Table
) -> tf.RaggedTensor:
    """Returns what the decoder reads after each token.

    Args:
        tokens: ragged string `[batch, (length)]`.
        feed: the ids that it reads without regard to terms, int64 of the same shape.
        tokenizer: cuts targets.
        table: the target vocabulary, -1 for unknown tokens.
    """
    flat = tokens.flat_values
    cut = tokenizer.tokenize(tf.where(terms.is_term(flat), terms.translations_of(flat), ""))
    last = tf.strings.reduce_join(cut[:, -1:], axis=-1)
    known = table.lookup(last)
    # A translation that reads `[PAD]` is a word.
    is_word = (last != "") & (known >= len(CLASS_TOKENS))
    return feed.with_flat_values(tf.where(is_word, known, feed.flat_values))
