"""Beam search with static shapes: one loop that XLA compiles."""

import keras
from keras import ops

from keras_models.decoding.actions import span_lengths
from keras_models.decoding.hypotheses import Hypotheses, coverage_penalty, length_penalty
from keras_models.decoding.ranking import top_k
from keras_models.decoding.rules import Rules
from keras_models.decoding.search_arguments import checked_output, checked_source
from keras_models.layers.axes import merge_axes, split_axis
from keras_models.layers.caches import map_rows
from keras_models.layers.gathering import flat_places, take_along
from keras_models.layers.numerics import LOG_ZERO, repeat_rows, take_rows


def _merged(tree):
    """`[batch, beam, ...]` to `[batch * beam, ...]`, of a nest."""
    return keras.tree.map_structure(lambda x: merge_axes(x, 2), tree)


def _split(tree, beam_size):
    """`[batch * beam, ...]` to `[batch, beam, ...]`, of a nest."""
    return keras.tree.map_structure(lambda x: split_axis(x, beam_size), tree)


def _write(history, here, values):
    """Writes `values [batch, beam, ...]` into `history [batch, beam, time, ...]`.

    `here` is bool `[time]`, true at the time that is written.
    """
    here = ops.reshape(here, (1, 1, -1) + (1,) * (len(history.shape) - 3))
    return ops.where(here, ops.expand_dims(values, 2), history)


def beam_search(
    step,
    carry,
    extended_ids,
    source_mask,
    extended_size,
    max_length,
    beam_size=4,
    n_best=1,
    length_alpha=1.0,
    coverage_beta=0.0,
    return_attention=False,
    vocabulary_size=0,
    step_of=None,
    **rules,
):
    """Finds the best sequences under a step function.

    A hypothesis Y of a source X is ranked by

        score(Y) = log p(Y | X) / lp(|Y|) + cp(X, Y)

    with the length and coverage penalties of Wu et al. 2016 (eq. 14), |Y| counting the end. Each
    step keeps the best `beam_size` continuations, by log p / lp of the tokens that they are sure to
    have. Where all have equally many, that is by log p; but the probability of a whole span counts
    when it begins. One that ends is set aside and its place in the beam with it (Bahdanau et al.
    2014). The search stops when all places have ended, or when no running hypothesis can still
    become one of the `n_best`. At `max_length` tokens a hypothesis must end.

    Args:
        step: function `(actions [batch * beam], carry, index) -> StepOutput`; for heads with
            `max_span` 1 actions are tokens.
        carry: the step function's first carry, tensors `[batch, ...]`; repeated for the beam here,
            but for what is `keras_models.layers.caches.Shared`.
        extended_ids: int `[batch, source_length]`, the extended id of each source position.
        source_mask: bool `[batch, source_length]`.
        extended_size: number of extended ids, V + source_length; int or scalar tensor.
        max_length: the longest output, in tokens without the end; int or scalar tensor.
        beam_size: running hypotheses for each source.
        n_best: hypotheses returned, at most `beam_size`.
        length_alpha: strength of the length normalisation, 0 for none.
        coverage_beta: strength of the coverage penalty, 0 for none.
        return_attention: whether to return attention matrices.
        step_of: function `(sources int32 [n]) -> step` that makes the step function of some of the
            sources. With it, once half of the sources have ended, the search continues with the
            others only: the same outputs in less time if lengths differ. None: all continue to the
            last step.
        vocabulary_size: V, if it is known when the graph is made and `extended_size` is not: many
            actions are ranked faster if they are known to be many.
        **rules: the others of `keras_models.decoding.rules.Rules`, which are
            min_length: outputs shorter than this do not end.
            allow_unknown: whether `[UNK]` may be in the output.
            replace_unknown: whether it may, replaced by the source token with the highest
                attention.
            no_repeat_ngram: no run of this many tokens occurs twice in an output; 0 for no such
                rule.
            length_unit: `"tokens"`, every token of a copied span counts; or `"choices"`, a span
                counts once (Zhou et al. 2018).
            protection: a `Protection`, or None.
            whole_words: the `WholeWords` that are copied from end to end; or None.
            piece_repeats: the `PieceRepeats` that a word may have; or None.
            max_span, merges: the attributes of the head's class.
            start_id, end_id, unknown_id: special ids.

    Returns:
        `Hypotheses`, the best first.

    Raises:
        ValueError: `n_best` exceeds `beam_size`, or the unit of length is unknown.
    """
    if n_best > beam_size:
        raise ValueError(f"n_best ({n_best}) cannot exceed beam_size ({beam_size}).")
    extended_ids = checked_source(
        "beam_search", extended_ids, source_mask, extended_size, rules.get("protection")
    )
    batch, source_length = ops.shape(extended_ids)
    rules = Rules(extended_ids, source_mask, extended_size, max_length, **rules)
    shape = (batch, beam_size)

    def history(dtype, *tail, fill=0):
        return ops.full((*shape, max_length, *tail), fill, dtype=dtype)

    def empty_set(log_probs):
        content = {
            "tokens": history("int32"),
            "copied_from": history("int32", fill=-1),
            "copy_probability": history("float32"),
            "log_probs": log_probs,
            "coverage": ops.zeros((*shape, source_length), dtype="float32"),
        }
        if return_attention:
            content["attention"] = history("float32", source_length)
        return content

    # Only the first of the equal hypotheses that a search starts with may be extended.
    first = ops.where(ops.equal(ops.arange(beam_size), 0), 0.0, LOG_ZERO)
    running = empty_set(ops.broadcast_to(ops.expand_dims(first, 0), shape))
    running["last"] = ops.full(shape, rules.start_id, dtype="int32")
    search = _Search(step, rules, beam_size, n_best, length_alpha, coverage_beta, vocabulary_size)
    running["ledger"] = search.first_ledger()
    if rules.counts_choices:
        running["choices"] = ops.zeros(shape, dtype="int32")
    finished = empty_set(ops.full(shape, LOG_ZERO, dtype="float32"))
    finished["scores"] = ops.full(shape, LOG_ZERO, dtype="float32")
    finished["lengths"] = ops.zeros(shape, dtype="int32")
    state = (
        ops.convert_to_tensor(0, dtype="int32"),
        running,
        finished,
        repeat_rows(carry, beam_size),
    )
    alone = isinstance(batch, int) and batch == 1
    finished = (
        search.run(state)[2]
        if step_of is None or alone
        else _run_compacting(search, step_of, state)
    )
    best = {key: value[:, :n_best] for key, value in finished.items() if key != "coverage"}
    return Hypotheses(**best)


def _run_compacting(search, step_of, state):
    """Searches until half of the sources have ended, then continues with the others only.

    Returns the finished hypotheses of all.

    Those that are left out would not have changed any more; if fewer than half run, some of them
    fill up the half, because its size is fixed.
    """
    batch = ops.shape(state[1]["last"])[0]
    half = max(batch // 2, 1) if isinstance(batch, int) else ops.maximum(batch // 2, 1)
    state = search.run(state, at_most=half)
    _, running, finished, _ = state
    places = ops.arange(batch, dtype="int32")
    # Those that run come first.
    order = ops.cast(
        ops.argsort(ops.where(search.runs(running, finished), places, places + batch)), "int32"
    )
    sources, ended = order[:half], order[half:]
    rest = search.of(sources, step_of(sources))
    _, _, late, _ = rest.run(_rows_of(state, sources))
    early = take_rows(finished, ended)
    joint = {key: ops.concatenate([late[key], early[key]], axis=0) for key in finished}
    return take_rows(joint, ops.argsort(order))


def _rows_of(state, sources):
    """A search's state, of some sources only."""
    index, running, finished, carry = state
    beam_size = ops.shape(running["last"])[1]

    def take(tensor):
        return take_rows(tensor, sources)

    carry = map_rows(
        lambda rows: merge_axes(take(split_axis(rows, beam_size)), 2), carry, of_sources=take
    )
    return index, take(running), take(finished), carry


class _Search:
    """The loop of a beam search.

    Its state is a tuple of the number of tokens, the running and the finished hypotheses, and the
    carry.

    Args:
        rules: `Rules` of the sources, not yet repeated for their hypotheses.
        step, beam_size, n_best, length_alpha, coverage_beta, vocabulary_size: those of
            `beam_search`.
    """

    def __init__(
        self, step, rules, beam_size, n_best, length_alpha, coverage_beta, vocabulary_size
    ):
        self.step = step
        self.sources_rules = rules
        self.rules = rules.repeat(beam_size)
        self.beam_size = beam_size
        self.n_best = n_best
        self.length_alpha = length_alpha
        self.coverage_beta = coverage_beta
        self.vocabulary_size = vocabulary_size
        self.constrain = self.rules.make_constrain()

    def first_ledger(self):
        """What each hypothesis owes at the start, see `Rules`: `[batch, beam, ...]`."""
        return _split(self.rules.first_ledger(), self.beam_size)

    def of(self, sources, step):
        """The same search over some sources, int32 `[n]`, by their step function."""
        options = (
            self.beam_size,
            self.n_best,
            self.length_alpha,
            self.coverage_beta,
            self.vocabulary_size,
        )
        return _Search(step, self.sources_rules.of(sources), *options)

    def run(self, state, at_most=0):
        """Searches until no more than `at_most` sources run; returns the state."""

        def condition(index, running, finished, carry):
            count = ops.sum(ops.cast(self.runs(running, finished), "int32"))
            return ops.logical_and(index <= self.rules.max_length, count > at_most)

        return ops.while_loop(condition, self._advance, state)

    def runs(self, running, finished):
        """Whether running hypotheses can still become one of their source's `n_best`.

        bool `[batch]`.
        """
        # Log-probabilities only fall and the coverage penalty is at most 0: this bounds what a
        # running one can reach.
        reachable = ops.max(running["log_probs"], axis=1) / length_penalty(
            self.rules.max_length + 1, self.length_alpha
        )
        # The finished are sorted: this is the worst that would be returned.
        return reachable > finished["scores"][:, self.n_best - 1]

    def _better(self, old, new):
        """Keeps the `beam_size` best of two sets; ties go to the older."""
        joint = {key: ops.concatenate([old[key], new[key]], axis=1) for key in old}
        _, index = ops.top_k(joint["scores"], self.beam_size)
        return take_along(joint, index)

    def _promised(self, index, made):
        """The penalty that continuations are ranked by, None where they are of one length.

        It is that of the length that each is sure to have.

        The probability of a whole span counts at its first token; ranked by log-probability alone
        it would be at a disadvantage against single words.
        """
        if made is not None:
            return ops.expand_dims(length_penalty(made, self.length_alpha), -1)
        rules = self.rules
        if rules.max_span == 1 or self.beam_size == 1 or not self.length_alpha:
            return None
        actions = ops.arange(rules.number_of_actions, dtype="int32")
        lengths = span_lengths(actions, rules.vocabulary_size, rules.source_length)
        return length_penalty(index + lengths, self.length_alpha)

    def _advance(self, index, running, finished, carry):
        """One token more for each running hypothesis."""
        rules, beam_size = self.rules, self.beam_size
        shape = ops.shape(running["last"])[:2]
        last = ops.reshape(running["last"], (-1,))
        output = checked_output("beam_search", self.step(last, carry, index), self.rules)
        ledger, tokens = _merged((running["ledger"], running["tokens"]))
        log_probs, ledger = self.constrain(output, last, ledger, tokens, index)
        made = running["choices"] + rules.chooses(running["last"]) if rules.counts_choices else None
        values, parents, actions = _best_continuations(
            running["log_probs"],
            split_axis(log_probs, beam_size),
            beam_size,
            self._promised(index, made),
            self.vocabulary_size,
        )
        # A hypothesis that ended keeps its place in the beam: fewer go on. (So a beam of one is
        # greedy search.)
        left = beam_size - ops.sum(
            ops.cast(finished["scores"] > LOG_ZERO / 2, "int32"), axis=1, keepdims=True
        )
        values = ops.where(ops.expand_dims(ops.arange(beam_size), 0) < left, values, LOG_ZERO)
        ends = ops.equal(actions, rules.end_id)

        # Everything that a hypothesis has follows it to its place in the beam.
        places = flat_places(parents, beam_size)
        flat = ops.reshape(places, (-1,))
        rows = {key: running[key] for key in finished if key in running and key != "log_probs"}
        rows = take_rows(_merged(rows), places)
        made = None if made is None else take_rows(_merged(made), places)
        ledger, carry, copy_log_probs, attention = map_rows(
            lambda x: take_rows(x, flat),
            (ledger, output.carry, output.copy_log_probs, output.attention),
        )
        scores = values / length_penalty(index + 1 if made is None else made, self.length_alpha)
        if self.coverage_beta:
            penalty = coverage_penalty(
                merge_axes(rows["coverage"], 2), rules.source_mask, self.coverage_beta
            )
            scores += ops.reshape(penalty, shape)
        scores = ops.where(ops.logical_and(ends, values > LOG_ZERO / 2), scores, LOG_ZERO)
        lengths = ops.broadcast_to(index, shape)
        ended = {**rows, "log_probs": values, "lengths": lengths, "scores": scores}
        finished = self._better(finished, ended)

        chosen = ops.reshape(actions, (-1,))
        tokens, position, probability = rules.output(
            chosen,
            ops.take(ops.reshape(output.log_probs, (-1,)), flat * rules.number_of_actions + chosen),
            copy_log_probs,
            attention,
            ledger,
        )
        attention = split_axis(attention, beam_size)
        here = ops.equal(ops.arange(ops.shape(rows["tokens"])[2], dtype="int32"), index)
        new = {
            "tokens": _write(rows["tokens"], here, ops.reshape(tokens, shape)),
            "copied_from": _write(rows["copied_from"], here, ops.reshape(position, shape)),
            "copy_probability": _write(
                rows["copy_probability"], here, ops.reshape(probability, shape)
            ),
            "log_probs": ops.where(ends, LOG_ZERO, values),
            "coverage": rows["coverage"] + attention,
            "last": actions,
        }
        if made is not None:
            new["choices"] = made
        new["ledger"] = _split(rules.pay(ledger, chosen, tokens, position), beam_size)
        if "attention" in running:
            new["attention"] = _write(rows["attention"], here, attention)
        return index + 1, new, finished, carry


def _best_continuations(so_far, log_probs, beam_size, divisors=None, at_least=0):
    """The best continuations of a beam.

    Args:
        so_far: float `[batch, beam]`, log-probabilities of the hypotheses.
        log_probs: float `[batch, beam, actions]`, of what may follow.
        beam_size: how many to keep.
        divisors: float `[actions]`, or `[batch, beam, 1]`: the best are those of the largest
            log-probability divided by it; None for 1.
        at_least: what is known of the number of actions where the shape does not say it.

    Returns:
        values `[batch, beam_size]`, the log-probabilities with what follows, parents and actions
        int32 `[batch, beam_size]`.
    """
    so_far = ops.expand_dims(so_far, -1)
    of_actions = divisors is not None and len(divisors.shape) == 1
    if isinstance(log_probs.shape[-1], int) and log_probs.shape[-1] < beam_size:
        # A beam wider than the vocabulary: the missing continuations are impossible ones.
        missing = beam_size - log_probs.shape[-1]
        log_probs = ops.pad(log_probs, [[0, 0], [0, 0], [0, missing]], constant_values=2 * LOG_ZERO)
        if of_actions:
            divisors = ops.pad(divisors, [[0, missing]], constant_values=1.0)
    # Two small selections are cheaper than one over beam * actions, and give the same: a hypothesis
    # has at most `beam_size` continuations among the best. What a hypothesis has so far does not
    # order its own continuations, so it is added to these few alone.
    best, tokens = top_k(
        (so_far + log_probs) / divisors if of_actions else log_probs, beam_size, at_least
    )
    values = so_far + (take_along(log_probs, tokens) if of_actions else best)
    ranks = values
    if divisors is not None:
        ranks = values / (ops.take(divisors, tokens) if of_actions else divisors)
    number = beam_size * beam_size
    _, index = ops.top_k(ops.reshape(ranks, (-1, number)), beam_size)
    index = ops.cast(index, "int32")
    flat = [ops.reshape(x, (-1, number)) for x in (values, tokens)]
    values, actions = take_along(flat, index)
    return values, index // beam_size, actions
