"""Alignments of target tokens to source tokens, which teach a model where to look."""

from keras import ops

from keras_models.losses import token_mean

# Special ids up to here, such as [END], stand for no token of the source.
_LAST_SPECIAL_ID = 3
# Runs of equal tokens are told apart up to this length on each side.
_LONGEST_RUN = 16


def matching_positions(targets, extended_ids, mask):
    """Where the source holds a target's token: bool `[batch, target_length, source_length]`.

    Args:
        targets: int `[batch, target_length]`, extended ids.
        extended_ids: int `[batch, source_length]`, the extended ids of the source's tokens.
        mask: bool `[batch, source_length]`, false at padding.
    """
    targets = ops.expand_dims(targets, -1)
    equal = ops.equal(targets, ops.expand_dims(ops.cast(extended_ids, targets.dtype), 1))
    return equal & (targets > _LAST_SPECIAL_ID) & ops.expand_dims(mask, 1)


def run_lengths(matches):
    """How many tokens the run of equal tokens has that a match is part of.

    Args:
        matches: what `matching_positions` returned.

    Returns:
        float32 like `matches`; 0 where there is no match. On each side of a match at most 15 tokens
        are counted.
    """
    one = ops.cast(matches, "float32")
    before = after = one
    for _ in range(_LONGEST_RUN - 1):
        before = one * (1 + ops.pad(before, [[0, 0], [1, 0], [1, 0]])[:, :-1, :-1])
        after = one * (1 + ops.pad(after, [[0, 0], [0, 1], [0, 1]])[:, 1:, 1:])
    return before + after - one


def teacher_alignment(targets, extended_ids, mask, translations=None):
    """Where in the source a target's token comes from, as far as this is known.

    A token that stands in the source, with a neighbour of its own, comes from there: from the
    longest such runs, in equal shares. So the pieces of a copied word belong together. Else the
    lexicon says which of the source's tokens it translates, a_j ~ p(y_t | x_j), the posterior of
    IBM's model 1; and where it says nothing, a token comes from where it stands alone.

    Args:
        targets, extended_ids, mask: see `matching_positions`.
        translations: float32 `[batch, target_length, source_length]`, p(y_t | x_j) of a lexicon;
            or None.

    Returns:
        float32 `[batch, target_length, source_length]`; a token's weights sum to 1, or are all 0
        where nothing is known.
    """
    lengths = run_lengths(matching_positions(targets, extended_ids, mask))
    longest = ops.max(lengths, axis=-1, keepdims=True)
    weights = ops.cast((lengths > 0) & ops.equal(lengths, longest), "float32")
    if translations is not None:
        known = (targets > _LAST_SPECIAL_ID)[:, :, None] & ops.expand_dims(mask, 1)
        translations = ops.where(known, translations, 0.0)
        translated = ops.sum(translations, axis=-1, keepdims=True) > 0
        weights = ops.where(translated & (longest < 2), translations, weights)
    total = ops.sum(weights, axis=-1, keepdims=True)
    return weights / ops.where(total > 0, total, 1.0)


def translation_probabilities(targets, lexicon_ids, lexicon_probabilities):
    """p(y_t | x_j) of a lexicon: float32 `[batch, target_length, source_length]`.

    Args:
        targets: int `[batch, target_length]`.
        lexicon_ids, lexicon_probabilities: `[batch, source_length, K]`, the translations of each
            source token.
    """
    same = ops.equal(targets[:, :, None, None], ops.cast(lexicon_ids, targets.dtype)[:, None])
    return ops.sum(ops.where(same, lexicon_probabilities[:, None], 0.0), axis=-1)


def guided_alignment_loss(log_weights, alignment, target_mask):
    """Cross-entropy of attention with an alignment (Chen et al. 2016, eq. 4), a mean over tokens.

        loss = - sum_bt m_bt sum_j A_btj log a_btj / sum_bt m_bt

    Args:
        log_weights: float32 `[batch, target_length, source_length]`, log a.
        alignment: A, float32 like `log_weights`; what `teacher_alignment` returned.
        target_mask: bool `[batch, target_length]`, false at padding.

    Returns:
        A scalar.

    References:
        Chen et al. 2016, "Guided Alignment Training for Topic-Aware Neural Machine Translation",
        https://arxiv.org/abs/1607.01628
    """
    taught = ops.where(alignment > 0, alignment * log_weights, 0.0)
    return token_mean(-ops.sum(taught, axis=-1), target_mask)
