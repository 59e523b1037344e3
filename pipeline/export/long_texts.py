"""Texts longer than a model takes: cut into sentences, whose answers are joined again.

The recipe says so with `decoding.long_texts = "split"`. A text that the model takes stays whole.
"""

import tensorflow as tf

#: The output that counts the sentences into which a long text was cut; 1 if it stayed whole.
PARTS = "parts"
#: The output that counts the tokens that were cut off a long text.
DROPPED = "tokens_dropped"
#: Outputs with one row for each text, however many answers it has.
OF_TEXTS = ("source_tokens", PARTS, DROPPED)
#: The outputs of a signature, by name.
Outputs = dict[str, tf.Tensor]


def joined(answers: Outputs, splits: tf.Tensor) -> Outputs:
    """Joins the answers of parts to those of texts.

    The best answers of the parts make the best one of a text, and so on. `copied_from` counts the
    source tokens of the whole text. The score is the mean of the parts' scores, each weighted with
    the number of its tokens and its end.

    Args:
        answers: those of an `AnswerWriter`, and `unknown_not_copied`, of M parts, K each.
        splits: int64 `[N + 1]`, the row splits of the parts of N texts.
    """
    tokens = answers["tokens"]
    parts, best = tf.shape(tokens)[0], tf.shape(tokens)[1]
    source_splits, starts = _source_rows(answers["source_tokens"], splits)
    # Rows of all best answers, then of all second best, and so on.
    ranks = tf.cast(tf.range(best) * parts, tf.int64)
    groups = tf.concat(
        [
            tf.reshape(ranks[:, tf.newaxis] + splits[:-1], [-1]),
            [tf.cast(best * parts, tf.int64)],
        ],
        axis=0,
    )

    def rows(values: tf.Tensor) -> tf.Tensor:
        """`[M, K, ...]` to `[K * M, ...]`."""
        order = [1, 0, *range(2, values.shape.rank)]
        shape = tf.concat([[best * parts], tf.shape(values)[2:]], axis=0)
        return tf.reshape(tf.transpose(values, order), shape)

    def of_texts(values: tf.Tensor) -> tf.Tensor:
        """`[K * N, ...]` to `[N, K, ...]`."""
        shape = tf.concat([[best, tf.size(splits) - 1], tf.shape(values)[1:]], axis=0)
        return tf.transpose(tf.reshape(values, shape), [1, 0, *range(2, values.shape.rank + 1)])

    lengths = tf.reduce_sum(tf.cast(rows(tokens) != "", tf.int64), axis=1)

    def sequence(values: tf.Tensor, filling: int | str) -> tf.Tensor:
        ragged = tf.RaggedTensor.from_tensor(rows(values), lengths)
        whole = tf.RaggedTensor.from_row_splits(
            ragged.flat_values, tf.gather(ragged.row_splits, groups), validate=False
        )
        return of_texts(whole.to_tensor(filling))

    def of_groups(values: tf.Tensor) -> tf.RaggedTensor:
        return tf.RaggedTensor.from_row_splits(values, groups, validate=False)

    copied_from = answers["copied_from"]
    moved = copied_from + tf.cast(starts, tf.int32)[:, tf.newaxis, tf.newaxis]
    weights = tf.cast(lengths + 1, tf.float32)
    scores = of_groups(rows(answers["score"]) * weights)
    mean = tf.reduce_sum(scores, axis=1) / tf.reduce_sum(of_groups(weights), axis=1)
    first = tf.gather(rows(answers["score"]), groups[:-1])
    is_whole = of_groups(weights).row_lengths() == 1
    unknown = of_groups(rows(answers["unknown_not_copied"]))
    return {
        "text": of_texts(tf.strings.reduce_join(of_groups(rows(answers["text"])), axis=1)),
        "score": of_texts(tf.where(is_whole, first, mean)),
        "tokens": sequence(tokens, ""),
        "copied_from": sequence(tf.where(copied_from >= 0, moved, -1), -1),
        "copy_probability": sequence(answers["copy_probability"], 0),
        "source_tokens": source_splits.to_tensor(""),
        "unknown_not_copied": of_texts(tf.reduce_sum(unknown, axis=1)),
        PARTS: tf.cast(splits[1:] - splits[:-1], tf.int32),
    }


def joined_attention(
    attention: tf.Tensor, tokens: tf.Tensor, source_tokens: tf.Tensor, splits: tf.Tensor
) -> tf.Tensor:
    """Joins the attention of parts to that of texts: a part's tokens look at its own source alone.

    Args:
        attention: float32 `[M, T, S]`.
        tokens: string `[M, T]`, the parts' best answers.
        source_tokens: string `[M, S]`.
        splits: int64 `[N + 1]`, the row splits of the parts of N texts.

    Returns:
        float32 `[N, longest answer, longest source]`.
    """
    part, place = _places(tokens, splits)
    source_part, source_place = _places(source_tokens, splits)
    part, place = part[:, :, tf.newaxis], place[:, :, tf.newaxis]
    source_part, source_place = source_part[:, tf.newaxis], source_place[:, tf.newaxis]
    shape = tf.broadcast_dynamic_shape(tf.shape(part), tf.shape(source_part))
    index = tf.stack(
        [tf.broadcast_to(one, shape) for one in (tf.maximum(part, 0), place, source_place)], axis=-1
    )
    is_own = (part == source_part) & (part >= 0)
    return tf.where(is_own, tf.gather_nd(attention, index), 0.0)


def _source_rows(source_tokens: tf.Tensor, splits: tf.Tensor) -> tuple[tf.RaggedTensor, tf.Tensor]:
    """Returns the source tokens of each text, and for each part how many are before it."""
    lengths = tf.reduce_sum(tf.cast(source_tokens != "", tf.int64), axis=1)
    ragged = tf.RaggedTensor.from_tensor(source_tokens, lengths)
    whole = tf.RaggedTensor.from_row_splits(
        ragged.flat_values, tf.gather(ragged.row_splits, splits), validate=False
    )
    text_of_part = tf.RaggedTensor.from_row_splits(lengths, splits, validate=False).value_rowids()
    before = ragged.row_starts()
    return whole, before - tf.gather(tf.gather(before, splits[:-1]), text_of_part)


def _places(tokens: tf.Tensor, splits: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns part and place within it of each token of a text, `[N, longest]`; -1 and 0 behind."""
    lengths = tf.reduce_sum(tf.cast(tokens != "", tf.int64), axis=1)
    ragged = tf.RaggedTensor.from_row_lengths(
        tf.range(tf.reduce_sum(lengths)), lengths, validate=False
    )
    rows = ragged.value_rowids()
    within = ragged.flat_values - tf.gather(ragged.row_starts(), rows)
    groups = tf.gather(ragged.row_splits, splits)
    part, place = (
        tf.RaggedTensor.from_row_splits(values, groups, validate=False) for values in (rows, within)
    )
    return part.to_tensor(-1), place.to_tensor(0)
