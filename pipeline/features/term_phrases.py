"""Terms of a glossary beside their phrases, for a model that was trained with terms.

A term is one token, whose copy writes the translation. All terms have one class, so that token
alone would hide from the encoder which word stood there. The phrase stays, and the term follows it
(Dinu et al. 2019, "Training Neural Machine Translation to Apply Terminology Constraints",
https://aclanthology.org/P19-1294, the variant "append").
"""

import tensorflow as tf

from pipeline.features.protected_classes import is_protected
from pipeline.text import terms
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
