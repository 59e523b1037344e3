"""Labels of sequential copying, for head `span_copy`: the spans that a target is made of."""

import tensorflow as tf

from pipeline.features.matching import first_occurrences, token_keys


def longest_matches(
    source_tokens: tf.RaggedTensor, target_tokens: tf.RaggedTensor, max_span: int
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Finds, from each target token on, the longest run of tokens that occurs in its source too.

    Runs of l tokens get numbers out of those of l - 1 and of their last token, so that time and
    memory are linear in max_span times the tokens.

    Args:
        source_tokens, target_tokens: ragged string `[batch, (length)]`.
        max_span: the longest run looked for.

    Returns:
        Three int64 tensors over the target's flat values: the first place of the longest run in the
        source, its length (both 0 if not even the first token is in the source), and the first
        place of the token alone (0 if it is not there).
    """
    tokens = [token_keys(source_tokens, target_tokens)[side] for side in (0, 1)]
    ends = [
        tf.gather(ragged.row_limits(), ragged.value_rowids())
        for ragged in (source_tokens, target_tokens)
    ]
    row_start = tf.gather(source_tokens.row_starts(), target_tokens.value_rowids())
    size = tf.reduce_max(tf.concat([*tokens, [0]], axis=0)) + 1
    runs = tokens
    start = length = alone = tf.zeros_like(tokens[1])
    for span in range(1, max_span + 1):
        keys = []
        for side in (0, 1):
            places = tf.range(tf.size(runs[side], out_type=tf.int64))
            last = places + span - 1
            inside = last < ends[side]
            token = tf.gather(tokens[side], tf.where(inside, last, places))
            # A run longer than the rest of the text has a key of its own: below 0, odd in the
            # target, even in the source.
            keys.append(tf.where(inside, runs[side] * size + token, -(2 * places + side) - 1))
        *runs, first = first_occurrences(*keys)
        matches = first >= 0
        start = tf.where(matches, first - row_start, start)
        length = tf.where(matches, tf.constant(span, tf.int64), length)
        # The numbers of runs are new ones: at most as many as there are runs.
        if span == 1:
            alone = start
    return start, length, alone


def reached(jumps: tf.Tensor, starts: tf.Tensor) -> tf.Tensor:
    """Marks the places that are visited when each place leads to a later one, by doubling the
    jumps.

    Args:
        jumps: int64 `[places]`: where each place leads to, at most `places`, which is the end.
        starts: bool `[places]`.

    Returns:
        bool `[places]`: whether a place is a start, or a place led to it that is itself reached.
    """
    number = tf.size(jumps, out_type=tf.int64)
    jumps = tf.concat([jumps, [number]], axis=0)
    marks = tf.cast(tf.concat([starts, [True]], axis=0), tf.int32)

    def more(jumps: tf.Tensor, marks: tf.Tensor, steps: tf.Tensor) -> tf.Tensor:
        del jumps, marks
        return steps < number

    def double(
        jumps: tf.Tensor, marks: tf.Tensor, steps: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        marks = tf.tensor_scatter_nd_max(marks, jumps[:, tf.newaxis], marks)
        return tf.gather(jumps, jumps), marks, 2 * steps

    _, marks, _ = tf.while_loop(more, double, (jumps, marks, tf.constant(1, tf.int64)))
    return tf.cast(marks[:-1], tf.bool)


def span_labels(
    source_tokens: tf.RaggedTensor,
    target_tokens: tf.RaggedTensor,
    unknown: tf.Tensor,
    max_span: int,
    min_span: int = 1,
) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
    """Divides each target into generated words and copied spans, from left to right.

    A span is the longest match, and of those the first.

    At target token t the longest l <= max_span is taken for which target[t : t + l] stands in the
    source; if l is below min_span, t is generated, unless the vocabulary lacks it: then it is
    copied alone. Zhou et al. 2018 copy spans of at most 5 tokens and leave open how the spans of a
    target are found; the greedy choice is ours.

    Args:
        source_tokens, target_tokens: ragged string `[batch, (length)]`.
        unknown: bool, over the target's flat values: whether the vocabulary lacks it.
        max_span, min_span: longest and shortest span in tokens.

    Returns:
        starts and lengths, ragged int64 `[batch, (length + 1)]`, the end's step included: at a
        span's first token (first source position, length), at its others (-1, -1), at generated
        tokens and the end (-1, 0).
    """
    start, length, alone = longest_matches(source_tokens, target_tokens, max_span)
    short = length < min_span
    single = short & unknown & (length > 0)
    start = tf.where(single, alone, start)
    length = tf.where(short, tf.cast(single, tf.int64), length)
    places = tf.range(tf.size(length, out_type=tf.int64))
    row_start = tf.gather(target_tokens.row_starts(), target_tokens.value_rowids())
    # A span never leaves its row, so that the end of one row leads to the next, which is a start
    # anyway.
    first = reached(places + tf.maximum(length, 1), tf.equal(places, row_start))
    starts = tf.where(first & (length > 0), start, -1)
    lengths = tf.where(first, length, -1)
    column = tf.ones([target_tokens.nrows(), 1], tf.int64)
    return (
        tf.concat([target_tokens.with_flat_values(starts), -column], axis=1),
        tf.concat([target_tokens.with_flat_values(lengths), 0 * column], axis=1),
    )
