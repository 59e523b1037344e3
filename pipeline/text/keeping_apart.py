"""Keeps tokens of an answer apart that would make a protected token where they touch.

`5 ￭% ￭d'un` would be written `5%d'un`, in which `%d` is a placeholder that the source lacks; so a
blank comes between: `5% d'un`. If a blank does not help, as in the words `{ name }`, the
punctuation is dropped. Among tags no `<` of the text touches the next token: browsers would read a
tag.
"""

from typing import TYPE_CHECKING, NamedTuple

from pipeline.text import white_space
from pipeline.text.placeholders.protected_syntax import BEGIN_MARK, END_MARK
from pipeline.text.tokenization import JOINER, Tokenizer

if TYPE_CHECKING:
    import tensorflow as tf

# Marks the beginning of each token temporarily; no text contains it.
_PIECE = "\x1e"
_CAN_GO = r"[^\p{L}\p{M}\p{N}]*"


class _Spans(NamedTuple):
    """Protected tokens of texts, as offsets in bytes of all texts concatenated; int64 each."""

    begins: "tf.Tensor"
    ends: "tf.Tensor"


def keep_apart(
    tokens: "tf.RaggedTensor", tokenizer: Tokenizer, fixed: "tf.Tensor | None" = None
) -> "tf.RaggedTensor":
    """Changes tokens so that their text, cut again, holds their protected tokens and no others.

    Args:
        tokens: ragged string `[batch, (tokens)]`, with joiners where they touch.
        tokenizer: what joins them.
        fixed: bool, over the flat values: tokens that are never dropped; by default none.

    Returns:
        Like `tokens`: with fewer joiners where they would make other protected tokens.
    """
    import tensorflow as tf

    if tokenizer.kind == "whitespace":
        return tokens

    spec = tf.TensorShape([None])

    def step(
        values: "tf.Tensor",
        protected: "tf.Tensor",
        fixed: "tf.Tensor",
        splits: "tf.Tensor",
        _: "tf.Tensor",
    ) -> tuple["tf.Tensor", "tf.Tensor", "tf.Tensor", "tf.Tensor", "tf.Tensor"]:
        ragged = tf.RaggedTensor.from_row_splits(values, splits, validate=False)
        apart, keep, changed = _part(ragged, protected, fixed, tokenizer)
        protected, fixed = tf.boolean_mask(protected, keep), tf.boolean_mask(fixed, keep)
        changed &= _is_unsafe(apart, protected, tokenizer)
        return apart.flat_values, protected, fixed, apart.row_splits, changed

    # Protected tokens are known now: a punctuation mark without its joiners may look like one.
    protected = tf.strings.regex_full_match(tokens.flat_values, tokenizer.syntax.pattern)
    if fixed is None:
        fixed = tf.zeros_like(protected)
    values, _, _, splits, _ = tf.while_loop(
        lambda values, protected, fixed, splits, changed: changed,
        step,
        (
            tokens.flat_values,
            protected,
            fixed,
            tokens.row_splits,
            _is_unsafe(tokens, protected, tokenizer),
        ),
        shape_invariants=(spec, spec, spec, tokens.row_splits.shape, tf.TensorShape([])),
    )
    return tf.RaggedTensor.from_row_splits(values, splits, validate=False)


def _marked(tokens: "tf.RaggedTensor", protected: "tf.Tensor", tokenizer: Tokenizer) -> "tf.Tensor":
    """Returns texts with the marks of `ProtectedSyntax.mark` around protected tokens."""
    import tensorflow as tf

    flat = tokens.flat_values
    marked = tf.where(protected, BEGIN_MARK + flat + END_MARK, flat)
    return tokenizer.detokenize(tokens.with_flat_values(marked))


def _is_unsafe(
    tokens: "tf.RaggedTensor", protected: "tf.Tensor", tokenizer: Tokenizer
) -> "tf.Tensor":
    """Returns whether any text, cut again, holds other protected tokens; a bool scalar."""
    import tensorflow as tf

    read = tokenizer.syntax.mark_in_graph(tokenizer.detokenize(tokens))
    stray = _touches_next(tokens, tokenizer) & _is_stray(tokens, protected)
    return tf.reduce_any(read != _marked(tokens, protected, tokenizer)) | tf.reduce_any(stray)


def _is_stray(tokens: "tf.RaggedTensor", protected: "tf.Tensor") -> "tf.Tensor":
    """Returns which tokens are a `<` outside of tags, in a row with tags."""
    import tensorflow as tf

    flat, rows = tokens.flat_values, tokens.value_rowids()
    is_tag = protected & (tf.strings.substr(flat, 0, 1) == "<")
    tags = tf.math.unsorted_segment_sum(tf.cast(is_tag, tf.int32), rows, tokens.nrows())
    is_angle = ~protected & tf.strings.regex_full_match(flat, f"(?s).*<{JOINER}?")
    return is_angle & (tf.gather(tags, rows) > 0)


def _touches_next(tokens: "tf.RaggedTensor", tokenizer: Tokenizer) -> "tf.Tensor":
    """Returns which tokens touch the token behind them."""
    import tensorflow as tf

    flat, rows = tokens.flat_values, tokens.value_rowids()
    if tokenizer.kind == "characters":
        touches = ~tf.strings.regex_full_match(flat[1:], "(?s) .*")
    else:
        touches = tf.strings.regex_full_match(flat[:-1], f"(?s).*{JOINER}")
        touches |= tf.strings.regex_full_match(flat[1:], f"(?s){JOINER}.*")
    none = tf.zeros([tf.minimum(tf.size(flat), 1)], tf.bool)
    return tf.concat([touches & (rows[1:] == rows[:-1]), none], axis=0)


def _part(
    tokens: "tf.RaggedTensor", protected: "tf.Tensor", fixed: "tf.Tensor", tokenizer: Tokenizer
) -> tuple["tf.RaggedTensor", "tf.Tensor", "tf.Tensor"]:
    """Separates tokens once, where they make other protected ones.

    Returns the tokens, which of the former ones they are, and whether anything changed.
    """
    import tensorflow as tf

    flat = tokens.flat_values
    number = tf.size(flat, out_type=tf.int64)
    alone = flat == JOINER
    # White space separates its neighbours: it begins no piece.
    bare = tf.strings.regex_replace(flat, f"^ |{JOINER}", "")
    is_piece = ~alone & ~white_space.is_white_space_in_graph(flat) & ~_continues_character(bare)
    piece = tf.cumsum(tf.cast(is_piece, tf.int64), exclusive=True)

    begun = tf.strings.regex_replace(flat, f"^({JOINER}?)", rf"\1{_PIECE}")
    texts = tokenizer.detokenize(tokens.with_flat_values(tf.where(is_piece, begun, flat)))
    starts, _ = _offsets(texts, _PIECE)
    read = tokenizer.syntax.mark_in_graph(tf.strings.regex_replace(texts, _PIECE, ""))
    found = _Spans(_offsets(read, BEGIN_MARK)[0], _offsets(read, END_MARK)[0])
    made = _marked(tokens, protected, tokenizer)
    meant = _Spans(_offsets(made, BEGIN_MARK)[0], _offsets(made, END_MARK)[0])

    foreign, lost = _without(found, meant), _without(meant, found)
    inside = _any((foreign.begins < starts[:, tf.newaxis]) & (starts[:, tf.newaxis] < foreign.ends))
    at_edge = _any((starts[:, tf.newaxis] == lost.begins) | (starts[:, tf.newaxis] == lost.ends))
    # One more, for the text after the last piece.
    apart = tf.concat([inside | at_edge, [False]], axis=0)
    stray = tf.boolean_mask(_is_stray(tokens, protected), is_piece)
    apart |= tf.concat([[False], stray], axis=0)
    # No token precedes the first piece of a row.
    first = tf.gather(piece, tf.gather(tokens.row_starts(), tokens.value_rowids()))
    before = tf.gather(apart, piece) & (piece > first)
    behind = tf.gather(apart, tf.minimum(piece + 1, tf.size(starts, tf.int64))) & is_piece

    if tokenizer.kind == "characters":
        new = tf.where(before & ~tf.strings.regex_full_match(flat, "(?s) .*"), " " + flat, flat)
        removed = tf.zeros_like(alone)
    else:
        new = tf.where(before & is_piece, tf.strings.regex_replace(flat, f"^{JOINER}", ""), flat)
        new = tf.where(behind, tf.strings.regex_replace(new, f"{JOINER}$", ""), new)
        removed = alone & before
    parted = tf.reduce_any(new != flat) | tf.reduce_any(removed)

    # No tokens touch any more: drop the punctuation inside the text that is read as one token.
    in_foreign = _any(
        (foreign.begins <= starts[:, tf.newaxis]) & (starts[:, tf.newaxis] < foreign.ends)
    )
    goes = tf.gather(tf.concat([in_foreign, [False]], axis=0), piece) & is_piece & ~protected
    goes &= tf.strings.regex_full_match(bare, _CAN_GO) & ~parted & ~fixed
    keep = ~(removed | goes)
    kept = tf.RaggedTensor.from_row_splits(
        tf.boolean_mask(new, keep),
        tf.gather(tf.concat([[0], tf.cumsum(tf.cast(keep, tf.int64))], axis=0), tokens.row_splits),
        validate=False,
    )
    return kept, keep, (parted | tf.reduce_any(goes)) & (number > 0)


def _offsets(texts: "tf.Tensor", mark: str) -> tuple["tf.Tensor", "tf.Tensor"]:
    """Returns the places of a mark in concatenated texts, in bytes, without counting other
    marks."""
    import tensorflow as tf

    joined = tf.strings.reduce_join(texts)
    others = "".join({BEGIN_MARK, END_MARK, _PIECE} - {mark})
    parts = tf.strings.split(tf.strings.regex_replace(joined, f"[{others}]", ""), mark)
    ends = tf.cumsum(tf.cast(tf.strings.length(parts), tf.int64))
    return ends[:-1], ends[-1:]


def _continues_character(bare: "tf.Tensor") -> "tf.Tensor":
    """Returns which tokens begin inside a character that is spelled in bytes."""
    import tensorflow as tf

    inner = tf.constant([bytes([number]) for number in range(0x80, 0xC0)])
    return _any(tf.strings.substr(bare, 0, 1)[:, tf.newaxis] == inner)


def _without(spans: _Spans, others: _Spans) -> _Spans:
    """Returns the spans that are not among others."""
    import tensorflow as tf

    same = (spans.begins[:, tf.newaxis] == others.begins) & (
        spans.ends[:, tf.newaxis] == others.ends
    )
    rest = ~_any(same)
    return _Spans(tf.boolean_mask(spans.begins, rest), tf.boolean_mask(spans.ends, rest))


def _any(flags: "tf.Tensor") -> "tf.Tensor":
    import tensorflow as tf

    return tf.reduce_any(flags, axis=1)
