"""Units of a pre-trained model: the pieces that its own sentencepiece model cuts texts into.

A piece that begins a word is written without sentencepiece's mark `▁`, and one that continues a
word with the joiner: `▁Zan zi bar` is `Zan ￭zi ￭bar`. The mark alone, which stands before a
character that the model does not know, is a unit of its own.

Texts are cut at white space and at protected tokens, which stay whole; each part between is cut as
the pre-trained model cuts it. Only sentencepiece's normalisation is left out, so that a copied unit
is spelled as in the source: a character that it would replace is an unknown one.
"""

from typing import TYPE_CHECKING

from pipeline.text import tokenization
from pipeline.text.segmenting_tokenizer import SegmentingTokenizer

if TYPE_CHECKING:
    import tensorflow as tf

#: Sentencepiece's mark of a word's beginning.
MARK = "▁"
# The replacement of a mark in the text; equally long in UTF-8.
_MARK_IN_TEXT = "▂"

# The field `normalizer_spec` of a model's protocol buffer: identity, without a table of
# characters; `add_dummy_prefix` and `remove_extra_whitespaces` are false. Behind a message it
# replaces what that has (https://protobuf.dev/programming-guides/encoding/#last-one-wins).
_NORMALIZER_SPEC = b"\x1a\x10" + b"\x0a\x08identity" + b"\x12\x00" + b"\x18\x00" + b"\x20\x00"


def unit_of(piece: str) -> str:
    """Returns a piece as a unit."""
    if piece.startswith(MARK):
        return piece if piece == MARK else piece[1:]
    return tokenization.JOINER + piece


def possible_units(model: bytes) -> dict[str, int]:
    """Returns the units of a sentencepiece model, each with the number of its piece."""
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    return {
        unit_of(processor.id_to_piece(number)): number
        for number in range(processor.get_piece_size())
        if not (processor.is_unknown(number) or processor.is_control(number))
    }


def without_normalisation(model: bytes) -> bytes:
    """Returns a sentencepiece model that cuts texts likewise, but leaves their characters alone.

    It adds no mark before a text: `PresetTokenizer` says where words begin.
    """
    return model + _NORMALIZER_SPEC


class PresetTokenizer(SegmentingTokenizer):
    """Cuts texts into the units of a pre-trained model, in a TensorFlow graph.

    Args:
        tokenizer: says what is protected, and whether texts are lowercased.
        model: the bytes of what `without_normalisation` returned.
    """

    def tokenize(self, texts: "tf.Tensor") -> "tf.RaggedTensor":
        """Returns the units of string `[batch]`, ragged string `[batch, (units)]`."""
        import tensorflow as tf

        return super().tokenize(tf.strings.regex_replace(texts, MARK, _MARK_IN_TEXT))

    def _tokens(self, texts: "tf.Tensor") -> "tf.RaggedTensor":
        return self._tokenizer.chunks(texts)

    def _pieces_of(self, bare: "tf.Tensor", touches: "tf.Tensor") -> "tf.RaggedTensor":
        import tensorflow as tf

        # A part that touches what is before it begins no word.
        words = tf.where(touches | tf.equal(bare, ""), bare, " " + bare)
        pieces = self._pieces.tokenize(words)
        flat = pieces.flat_values
        return pieces.with_flat_values(tf.strings.regex_replace(flat, f"^{MARK}(.)", r"\1"))


def drop_marks(units: "tf.RaggedTensor") -> "tf.RaggedTensor":
    """Returns units without lone marks; the unit behind one begins a word.

    Args:
        units: ragged string `[batch, (units)]`.
    """
    import tensorflow as tf

    flat, rows = units.flat_values, units.value_rowids()
    marks = tf.equal(flat, MARK)
    none = tf.zeros([tf.minimum(tf.size(flat), 1)], tf.bool)
    behind = tf.concat([none, marks[:-1] & (rows[1:] == rows[:-1])], axis=0)
    flat = tf.where(behind, tf.strings.regex_replace(flat, f"^{tokenization.JOINER}", ""), flat)
    return tf.ragged.boolean_mask(units.with_flat_values(flat), units.with_flat_values(~marks))
