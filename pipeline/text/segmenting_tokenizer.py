"""A tokenizer whose words are cut into units by a sentencepiece model, in a TensorFlow graph."""

import hashlib
from typing import TYPE_CHECKING

from pipeline.text import tokenization, white_space

if TYPE_CHECKING:
    import tensorflow as tf


class SegmentingTokenizer:
    """A `tokenization.Tokenizer` whose words are cut into units, in a TensorFlow graph.

    Args:
        tokenizer: cuts texts into words.
        model: the bytes of a sentencepiece model.

    Attributes:
        syntax: what is protected, hence never cut.
    """

    def __init__(self, tokenizer: tokenization.Tokenizer, model: bytes) -> None:
        self._tokenizer = tokenizer
        self.syntax = tokenizer.syntax
        self._load(model)

    def _load(self, model: bytes) -> None:
        """Makes what cuts tokens, out of the model."""
        import tensorflow_text as tf_text

        # Once a graph is saved and loaded, the model is found by the name of its node among all
        # loaded graphs of a process. Without a name of its own, the model that was loaded first
        # would be used by all of them.
        name = f"sentencepiece_{hashlib.sha256(model).hexdigest()[:32]}"
        self._pieces = tf_text.SentencepieceTokenizer(model=model, out_type="string", name=name)

    def words(self, texts: "tf.Tensor") -> "tf.RaggedTensor":
        """Returns the tokens of string `[batch]` before they are cut, ragged string."""
        import tensorflow as tf

        if self._tokenizer.kind != "text":
            # A joiner of the text itself; kind `text` replaces it itself.
            texts = tf.strings.regex_replace(
                texts, tokenization.JOINER, tokenization.JOINER_IN_TEXT
            )
        return self._tokens(texts)

    def tokenize(self, texts: "tf.Tensor") -> "tf.RaggedTensor":
        """Returns the units of string `[batch]`, ragged string `[batch, (units)]`."""
        import tensorflow as tf

        tokens = self.words(texts)
        units = self._cut(tokens.flat_values)
        splits = tf.gather(units.row_splits, tokens.row_splits)
        return tf.RaggedTensor.from_row_splits(units.flat_values, splits, validate=False)

    def _tokens(self, texts: "tf.Tensor") -> "tf.RaggedTensor":
        """Returns what is cut into units."""
        return self._tokenizer.tokenize(texts)

    def _pieces_of(self, bare: "tf.Tensor", touches: "tf.Tensor") -> "tf.RaggedTensor":
        """Returns the pieces of tokens without joiners, of which some touch what is before them."""
        return self._pieces.tokenize(bare)

    def _cut(self, tokens: "tf.Tensor") -> "tf.RaggedTensor":
        """string `[tokens]` to ragged string `[tokens, (units)]`."""
        import tensorflow as tf

        joiner = tokenization.JOINER
        alone = tf.equal(tokens, joiner)
        before = tf.strings.regex_full_match(tokens, f"{joiner}(?s:.*)") & ~alone
        behind = tf.strings.regex_full_match(tokens, f"(?s:.*){joiner}") & ~alone
        bare = tf.strings.regex_replace(tokens, f"^{joiner}|{joiner}$", "")
        protected = tf.strings.regex_full_match(tokens, self.syntax.pattern)
        protected |= white_space.is_white_space_in_graph(tokens)
        pieces = self._pieces_of(tf.where(protected | alone, "", bare), before)
        # A token that sentencepiece cuts into nothing stays as it is.
        whole = pieces.row_lengths() == 0
        unchanged = tf.RaggedTensor.from_row_lengths(
            tf.boolean_mask(tf.where(alone | protected, tokens, bare), whole),
            tf.cast(whole, tf.int64),
            validate=False,
        )
        units = tf.concat([unchanged, pieces], axis=1)
        rows = units.value_rowids()
        places = tf.range(tf.size(rows, tf.int64))
        first = places == tf.gather(units.row_starts(), rows)
        last = places == tf.gather(units.row_limits(), rows) - 1
        flat = units.flat_values
        flat = tf.where(~first | tf.gather(before, rows), joiner + flat, flat)
        flat = tf.where(last & tf.gather(behind, rows), flat + joiner, flat)
        return units.with_flat_values(flat)
