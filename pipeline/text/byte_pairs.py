"""Byte pairs, the tokens of BART: the units of a pre-trained model, in a TensorFlow graph.

A word with the blank before it is a row of bytes. The pair of neighbours that comes first in the
list of merges becomes one piece, until no pair is in the list (Sennrich et al. 2016, over bytes as
in Radford et al. 2019). Units are written as those of sentencepiece (see `preset_units`):

- A piece that begins with the blank is written without it: ` Zan`, `zi`, `bar` is `Zan ￭zi ￭bar`.
  So the first word of a text, which no blank precedes, begins with a joiner. A blank alone is
  `preset_units.MARK`.
- A piece that is no whole characters is written byte by byte: `￭<0xE2><0x80>`.
- White space that is a token (see `white_space`) is a unit. Its last blank belongs to the word
  behind it.

References:
    Sennrich et al. 2016, https://arxiv.org/abs/1508.07909; Radford et al. 2019, "Language Models
    are Unsupervised Multitask Learners"
"""

import dataclasses
import functools
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import regex
from numpy.typing import NDArray

from pipeline.text import tokenization, white_space
from pipeline.text.character_cut import BREAK
from pipeline.text.preset_units import MARK, PresetTokenizer

if TYPE_CHECKING:
    import tensorflow as tf

#: A longer word is cut first, so that the time for a text stays in proportion to its length.
LONGEST = 1000
# Where the first pass of GPT-2's tokenizer cuts: at changes between letters, numbers and other
# characters. Of several wide spaces the last stands alone; keras-hub knows these four.
_WIDE = r"\x{a0}\x{2009}\x{202f}\x{3000}"
_WORD = (
    r"'s|'t|'re|'ve|'m|'ll|'d"
    rf"| ?\p{{L}}+| ?\p{{N}}+| ?[^ \p{{L}}\p{{N}}{_WIDE}]+|[ {_WIDE}]"
)
_WORDS = rf"([ {_WIDE}]+)([{_WIDE}])|({_WORD})"
# What no unit of a text contains.
_FOREIGN = rf"[\x00-\x20\x7f{tokenization.JOINER}{MARK}␠␉␊␋␌␍]"
_NO_RANK = np.iinfo(np.int32).max


def byte_characters() -> list[str]:
    """Returns the characters that stand for the 256 bytes in vocabularies and merges."""
    shown = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    hidden = [number for number in range(256) if number not in shown]
    return [chr(number if number in shown else 256 + hidden.index(number)) for number in range(256)]


def spelled(raw: bytes) -> str:
    """Returns bytes as text: their characters, or each byte as `<0xE2>` if they are not whole."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return "".join(f"<0x{byte:02X}>" for byte in raw)


def unit_of(raw: bytes) -> str:
    """Returns the bytes of a piece as a unit."""
    if raw.startswith(b" "):
        return spelled(raw[1:]) or MARK
    return tokenization.JOINER + spelled(raw)


@dataclasses.dataclass(frozen=True)
class BytePairs:
    """The vocabulary and the merges of a tokenizer of byte pairs.

    Attributes:
        vocabulary: from each piece to its id.
        merges: pairs of pieces with a blank between them, the first to be merged first.
    """

    vocabulary: Mapping[str, int]
    merges: Sequence[str]

    @staticmethod
    def are_in(model: bytes) -> bool:
        """Whether `to_bytes` wrote a model; sentencepiece's begin otherwise."""
        return model.startswith(b"{")

    def to_bytes(self) -> bytes:
        """Returns what `from_bytes` reads."""
        made = {"vocabulary": dict(self.vocabulary), "merges": list(self.merges)}
        return json.dumps(made, ensure_ascii=False, sort_keys=True).encode()

    @classmethod
    def from_bytes(cls, model: bytes) -> "BytePairs":
        """Returns what `to_bytes` wrote."""
        return cls(**json.loads(model))

    @functools.cached_property
    def pairs(self) -> dict[tuple[str, str], int]:
        """From each pair to its place in the list of merges."""
        pairs = [tuple(merge.split(" ")) for merge in self.merges]
        return {pair: rank for rank, pair in enumerate(pairs) if len(pair) == 2}

    @functools.cached_property
    def pieces(self) -> list[str]:
        """All pieces that a word can be cut into, those of single bytes first, in their order."""
        merged = ["".join(pair) for pair in self.pairs]
        parts = [part for pair in self.pairs for part in pair]
        return list(dict.fromkeys([*byte_characters(), *merged, *parts]))

    @functools.cached_property
    def raw_pieces(self) -> list[bytes]:
        """The bytes of `pieces`."""
        numbers = {character: number for number, character in enumerate(byte_characters())}
        # A line that is no merge, such as a title, may have other characters.
        return [
            bytes(numbers[character] for character in piece if character in numbers)
            for piece in self.pieces
        ]

    def units(self) -> dict[str, int]:
        """Returns the units that texts can have, each with the id of its piece."""
        units: dict[str, int] = {}
        for piece, raw in zip(self.pieces, self.raw_pieces):
            number = self.vocabulary.get(piece)
            if number is None:
                continue
            if regex.fullmatch(rb"[\t-\r ]+", raw):
                run = raw.decode()
                # The blank behind it is the next word's.
                units[white_space.to_token(run + " ")] = number
                if not run.endswith(" "):
                    units[white_space.to_token(run)] = number
            unit = unit_of(raw)
            bare = unit.removeprefix(tokenization.JOINER)
            if unit == MARK or not regex.search(_FOREIGN, bare):
                units[unit] = number
        return units


class _Merger:
    """Merges bytes to pieces, in a TensorFlow graph, without any state.

    Args:
        model: the merges.
    """

    def __init__(self, model: BytePairs) -> None:
        numbers = {piece: number for number, piece in enumerate(model.pieces)}
        self._units = [
            # `SegmentingTokenizer` writes the joiners.
            unit_of(raw).removeprefix(tokenization.JOINER).encode()
            for raw in model.raw_pieces
        ]
        self._count = len(numbers)
        keys = [numbers[one] * self._count + numbers[two] for one, two in model.pairs]
        order = np.argsort(np.array(keys, np.int64), kind="stable")
        # Searched for, as a table would be state that whoever exports the graph must keep.
        self._keys: NDArray[np.int64] = np.array(keys, np.int64)[order]
        self._ranks: NDArray[np.int32] = order.astype(np.int32)
        self._merged = np.array([numbers[one + two] for one, two in model.pairs], np.int32)

    def pieces(self, words: "tf.Tensor") -> "tf.RaggedTensor":
        """Returns the pieces of words, as units without joiners.

        Args:
            words: string `[words]`, none empty.

        Returns:
            Ragged string `[words, (pieces)]`.
        """
        import tensorflow as tf

        lengths = tf.strings.length(words)
        numbers = tf.cast(tf.io.decode_raw(tf.strings.reduce_join(words), tf.uint8), tf.int32)
        rows = tf.repeat(tf.range(tf.size(words)), lengths)
        places = tf.range(tf.size(rows)) - tf.gather(tf.cumsum(lengths, exclusive=True), rows)
        starts = tf.where(places % LONGEST == 0)[:, 0]
        parts = tf.RaggedTensor.from_row_starts(numbers, starts, validate=False)
        if len(self._keys):
            # A pair at least, whatever the words.
            padded = tf.pad(parts.to_tensor(-1), [[0, 0], [0, 2]], constant_values=-1)
            merged = self._merge(padded)
            parts = tf.ragged.boolean_mask(merged, merged >= 0)
        words_of_pieces = tf.cast(tf.repeat(tf.gather(rows, starts), parts.row_lengths()), tf.int64)
        return tf.RaggedTensor.from_value_rowids(
            tf.gather(tf.constant(self._units), parts.flat_values),
            words_of_pieces,
            nrows=tf.size(words, tf.int64),
            validate=False,
        )

    def _rank(self, one: "tf.Tensor", two: "tf.Tensor") -> "tf.Tensor":
        """Returns the places of pairs in the list, int32; pieces are int32, -1 behind a word."""
        import tensorflow as tf

        key = tf.cast(one, tf.int64) * self._count + tf.cast(two, tf.int64)
        keys = tf.constant(self._keys)
        found = tf.searchsorted(keys, tf.reshape(key, [-1]))
        found = tf.reshape(tf.minimum(found, len(self._keys) - 1), tf.shape(key))
        known = (tf.gather(keys, found) == key) & (one >= 0) & (two >= 0)
        return tf.where(known, tf.gather(tf.constant(self._ranks), found), _NO_RANK)

    def _merge(self, symbols: "tf.Tensor") -> "tf.Tensor":
        """Merges int32 `[words, longest]`, padded with -1, as long as a word has a pair."""
        import tensorflow as tf

        width = tf.shape(symbols)[1]

        def step(symbols: "tf.Tensor", ranks: "tf.Tensor") -> tuple["tf.Tensor", "tf.Tensor"]:
            unfinished = tf.where(tf.reduce_min(ranks, axis=1) < _NO_RANK)
            row, rank = tf.gather_nd(symbols, unfinished), tf.gather_nd(ranks, unfinished)
            best = tf.argmin(rank, axis=1, output_type=tf.int32)[:, tf.newaxis]
            new = tf.gather(tf.constant(self._merged), tf.gather(rank, best, batch_dims=1))
            # What stands behind the pair moves to the left.
            places = tf.range(width)[tf.newaxis]
            behind = tf.pad(row[:, 1:], [[0, 0], [0, 1]], constant_values=-1)
            row = tf.where(places < best, row, tf.where(places == best, new, behind))
            pairs = places[:, :-1]
            behind = tf.pad(rank[:, 1:], [[0, 0], [0, 1]], constant_values=_NO_RANK)
            rank = tf.where(pairs < best, rank, behind)
            # Two pairs are new: the one before the merged piece, and the one that it begins.
            before = tf.gather(row, tf.maximum(best - 1, 0), batch_dims=1)
            after = tf.gather(row, best + 1, batch_dims=1)
            rank = tf.where(pairs == best - 1, self._rank(before, new), rank)
            rank = tf.where(pairs == best, self._rank(new, after), rank)
            return (
                tf.tensor_scatter_nd_update(symbols, unfinished, row),
                tf.tensor_scatter_nd_update(ranks, unfinished, rank),
            )

        merged, _ = tf.while_loop(
            lambda symbols, ranks: tf.reduce_any(ranks < _NO_RANK),
            step,
            (symbols, self._rank(symbols[:, :-1], symbols[:, 1:])),
            shape_invariants=(tf.TensorShape([None, None]), tf.TensorShape([None, None])),
        )
        return merged


class BytePairTokenizer(PresetTokenizer):
    """Cuts texts into byte pairs, in a TensorFlow graph.

    Args:
        tokenizer: says what is protected, and whether texts are lowercased.
        model: what `BytePairs.to_bytes` returned.
    """

    def _load(self, model: bytes) -> None:
        self._merger = _Merger(BytePairs.from_bytes(model))

    def _tokens(self, texts: "tf.Tensor") -> "tf.RaggedTensor":
        """Returns what is cut; what no blank precedes begins with a joiner."""
        import tensorflow as tf

        tokens = super()._tokens(texts)
        flat = tokens.flat_values
        rows = tokens.value_rowids()
        none = tf.zeros([tf.minimum(tf.size(flat), 1)], tf.bool)
        is_space = white_space.is_white_space_in_graph(flat)
        no_blank = is_space & ~tf.strings.regex_full_match(flat, ".*␠")
        first = tf.concat([~none, rows[1:] != rows[:-1]], axis=0)
        touches = first | tf.concat([none, no_blank[:-1]], axis=0)
        touches &= ~is_space & ~tf.strings.regex_full_match(flat, self.syntax.pattern)
        touches &= ~tf.strings.regex_full_match(flat, f"{tokenization.JOINER}(?s:.*)")
        return tokens.with_flat_values(tf.where(touches, tokenization.JOINER + flat, flat))

    def _pieces_of(self, bare: "tf.Tensor", touches: "tf.Tensor") -> "tf.RaggedTensor":
        import tensorflow as tf

        parts = tf.where(touches | tf.equal(bare, ""), bare, " " + bare)
        marked = tf.strings.regex_replace(parts, _WORDS, rf"\1{BREAK}\2\3{BREAK}")
        words = tf.strings.split(marked, BREAK)
        words = tf.ragged.boolean_mask(words, words != "")
        unique, places = tf.unique(words.flat_values)
        pieces = tf.gather(self._merger.pieces(unique), places)
        splits = tf.gather(pieces.row_splits, words.row_splits)
        return tf.RaggedTensor.from_row_splits(pieces.flat_values, splits, validate=False)
