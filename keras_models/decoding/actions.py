"""The actions of a search: a word, or a span of the source.

A head with `max_span` L over a source of length S chooses among V + L * S actions:

    a < V                      the word a
    a = V + (l - 1) * S + j    the span of l tokens from source position j

A span is output one token per step. The last action is enough to continue it: after a span of
l tokens from j the action is, at log-probability 0, the span of l - 1 tokens from j + 1. For L = 1
the actions are the extended ids.
"""

from keras import ops

from keras_models.layers.gathering import add_along, take_along
from keras_models.layers.numerics import LOG_ZERO


def span_lengths(actions, vocabulary_size, source_length):
    """Tokens that each action stands for, its first included; 1 for words."""
    return ops.where(actions < vocabulary_size, 1, 1 + (actions - vocabulary_size) // source_length)


def positions(actions, vocabulary_size, source_length):
    """Source position of each action's first token, -1 for words."""
    return ops.where(actions < vocabulary_size, -1, (actions - vocabulary_size) % source_length)


def first_tokens(actions, vocabulary_size, source_length):
    """The extended id that each action outputs now: the word, or V + its first source position."""
    copied = vocabulary_size + positions(actions, vocabulary_size, source_length)
    return ops.where(actions < vocabulary_size, actions, copied)


def continue_spans(log_probs, last, vocabulary_size, source_length):
    """Forces what a running span must output next.

    Args:
        log_probs: float32 `[rows, V + L * S]`.
        last: int `[rows]`, each row's last action.
        vocabulary_size: V.
        source_length: S.

    Returns:
        Like `log_probs`; 0 for the one action of a row whose span runs on, `LOG_ZERO` for its
        others.
    """
    lengths = span_lengths(last, vocabulary_size, source_length)
    position = positions(last, vocabulary_size, source_length)
    following = vocabulary_size + (lengths - 2) * source_length + position + 1
    actions = ops.expand_dims(ops.arange(ops.shape(log_probs)[-1], dtype="int32"), 0)
    forced = ops.where(ops.equal(actions, ops.expand_dims(following, -1)), 0.0, LOG_ZERO)
    return ops.where(ops.expand_dims(lengths > 1, -1), forced, log_probs)


def surfaces(tokens, extended_ids, vocabulary_size):
    """Returns the words of tokens.

    A copy's is the extended id of the source token at the position that is copied.

    Heads that do not merge copy position j as V + j, whatever it holds.

    Args:
        tokens: int32 `[rows, ...]` of two axes, extended ids.
        extended_ids: int32 `[rows, source_length]`.
        vocabulary_size: V.
    """
    copied = take_along(extended_ids, ops.maximum(tokens - vocabulary_size, 0))
    return ops.where(tokens < vocabulary_size, tokens, copied)


def flagged_ids(flags, ids, size):
    """Marks the ids that stand where `flags` are true, bool `[rows, size]`.

    `ids` and `flags` are `[rows, length]`.
    """
    return add_along(ops.cast(flags, "int32"), ids, size) > 0


def shifted(tensor, places, fill):
    """Each source position's value `places` to its right, `[rows, source_length]`.

    Places beyond the end have `fill`.
    """
    source_length = ops.shape(tensor)[1]
    padded = ops.pad(tensor, [[0, 0], [0, places]], constant_values=fill)
    return padded[:, places : places + source_length]
