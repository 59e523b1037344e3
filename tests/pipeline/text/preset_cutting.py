"""Texts to units of a pre-trained model, and back."""

from pipeline.text import preset_units, tokenization, units


def cut(tokenizer, texts):
    """The units as the tokenizer gives them, and as lists of strings."""
    import tensorflow as tf

    made = tokenizer.tokenize(tf.constant(texts))
    return made, [[unit.decode() for unit in row] for row in made.to_list()]


def join(made):
    """The texts of units."""
    joined = units.detokenize(
        preset_units.drop_marks(made), units.byte_table(), tokenization.Tokenizer()
    )
    return [text.decode() for text in joined.numpy()]
