"""Prevents an output from repeating n tokens."""

from keras import ops

from keras_models.decoding import actions as action_space
from keras_models.layers.gathering import take_along


def repeating_actions(tokens, index, extended_ids, vocabulary_size, ngram, max_span=1, exempt=None):
    """Tells which actions would complete an n-gram that the output already has (Paulus et al. 2017,
    section 2.5).

    Tokens are compared by their text: a word is the same generated or copied, and from any
    position. A span repeats if any of its tokens completes such an n-gram, with the output so far
    or inside the span.

    Args:
        tokens: int32 `[rows, max_length]`, extended ids output so far, the first `index` of them.
        index: how many these are, a scalar.
        extended_ids: int32 `[rows, source_length]`.
        vocabulary_size: V.
        ngram: n, an int above 0.
        max_span: L, the longest span that is one action.
        exempt: bool `[rows, source_length]`, source tokens that may repeat; or None.

    Returns:
        bool `[rows, V + L * source_length]`.

    References:
        Paulus, Xiong, Socher 2017, "A Deep Reinforced Model for Abstractive Summarization",
        https://arxiv.org/abs/1705.04304
    """
    rows, source_length = ops.shape(extended_ids)
    ids = ops.cast(extended_ids, "int32")
    said = action_space.surfaces(tokens, ids, vocabulary_size)
    times = ops.arange(ops.shape(said)[1], dtype="int32")
    size = vocabulary_size + source_length
    if exempt is None:
        exempt = ops.zeros((rows, source_length), dtype="bool")

    def before(places):
        """`[rows, 1]`: the token said `places` before the next one."""
        return ops.take(said, ops.expand_dims(ops.maximum(index - places, 0), 0), axis=1)

    def earlier(places):
        """`[rows, max_length]`: for each time the token said `places` before it."""
        return ops.take(said, ops.maximum(times - places, 0), axis=1)

    # Whole n-grams end at these times.
    whole = ops.expand_dims(ops.logical_and(times >= ngram - 1, times < index), 0)
    # The next token repeats where the n - 1 tokens before it stood before another one.
    after_same = ops.broadcast_to(whole, ops.shape(said))
    for back in range(1, ngram):
        after_same = ops.logical_and(after_same, ops.equal(earlier(back), before(back)))
    repeating = action_space.flagged_ids(after_same, said, size)
    repeating = ops.logical_and(
        repeating, ops.logical_not(action_space.flagged_ids(exempt, ids, size))
    )
    parts = [repeating[:, :vocabulary_size]]
    spans = take_along(repeating, ids)
    parts.append(spans)

    def token(place):
        """The token at `place` of the span from each position, before 0 what was output.

        `[rows, source_length or 1]`.
        """
        return action_space.shifted(ids, place, 0) if place >= 0 else before(-place)

    for last in range(1, max_span):
        # The n-gram that ends in the span's token `last`, against those that were said ...
        same = ops.expand_dims(whole, 1)
        for back in range(ngram):
            pair = ops.equal(
                ops.expand_dims(token(last - back), -1), ops.expand_dims(earlier(back), 1)
            )
            same = ops.logical_and(same, pair)
        repeats = ops.any(same, axis=-1)
        # ... and those that end earlier in the span.
        for end in range(last):
            same = index + end >= ngram - 1
            for back in range(ngram):
                same = ops.logical_and(same, ops.equal(token(last - back), token(end - back)))
            repeats = ops.logical_or(repeats, same)
        may = action_space.shifted(exempt, last, False)
        spans = ops.logical_or(spans, ops.logical_and(repeats, ops.logical_not(may)))
        parts.append(spans)
    return ops.concatenate(parts, axis=1)
