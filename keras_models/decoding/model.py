"""Decodes a model: the search with the model's own step function."""

from keras import ops

from keras_models.argument_shapes import check_axes, check_present
from keras_models.decoding.beam import beam_search
from keras_models.decoding.constraints import Protection
from keras_models.decoding.greedy import greedy_search
from keras_models.decoding.hypotheses import StepOutput, best_of
from keras_models.decoding.order import Order
from keras_models.decoding.piece_repeats import PieceRepeats
from keras_models.decoding.sampling import sample_search
from keras_models.decoding.whole_words import WholeWords
from keras_models.layers import panels
from keras_models.layers.gathering import take_along
from keras_models.layers.numerics import repeat_rows, take_rows

_AXES = {
    "source_protected": ("batch", "source_length"),
    "source_continues": ("batch", "source_length"),
    "protected_vocabulary": [("vocabulary_size",), ("batch", "vocabulary_size")],
    "piece_vocabulary": ("vocabulary_size",),
    "uniforms": ("batch", "samples", "max_length + 1"),
    "shortlist": ("batch", "words"),
}


def _check_arguments(inputs, arguments, reads_words):
    """Checks arguments that the model's own `encode` does not check."""
    sizes = check_axes("decode", inputs, {"source_ids": ("batch", "source_length")})
    needs = ["source_protected"] if arguments["protected_vocabulary"] is not None else []
    needs += ["source_continues"] if reads_words else []
    check_present("decode", inputs, needs)
    arguments = {**arguments, **{name: inputs[name] for name in needs}}
    check_axes("decode", arguments, _AXES, sizes)


def decode(
    model,
    inputs,
    max_length,
    beam_size=1,
    n_best=1,
    protected_vocabulary=None,
    blank_vocabulary=None,
    copy_whole_words=False,
    max_piece_repeats=0,
    piece_vocabulary=None,
    sampling=None,
    uniforms=None,
    shortlist=None,
    tables=None,
    compact=True,
    **options,
):
    """Searches for the best outputs of a model, or draws some.

    Args:
        model: a body, such as `RecurrentSeq2Seq`, with `encode` and `step`.
        inputs: dict of int `[batch, source_length]`: `source_ids`, `source_extended_ids`,
            `source_feed_ids`.
        max_length: longest output in tokens.
        beam_size: 1 is greedy search.
        n_best: outputs for each source, at most `beam_size`.
        protected_vocabulary: bool `[vocabulary_size]`, words of a protected kind; with it, `inputs`
            also has bool `source_protected` `[batch, source_length]`, and outputs keep these
            tokens: see `Protection`.
        blank_vocabulary: bool `[vocabulary_size]`, words that write nothing; with it, `inputs` also
            has int32 `source_roles` and `source_links` `[batch, source_length]`, and the protected
            tokens keep their order: see `Order`.
        copy_whole_words: whether a word of several pieces that an output begins to copy is copied
            whole, see `WholeWords`; `inputs` then also has bool `source_continues` `[batch,
            source_length]`, true where a token continues the word of the token before it. A head
            that cannot copy ignores it.
        max_piece_repeats: how often in a row a continuing piece, or a pair of them, may stand in a
            word, see `PieceRepeats`; 0 for any number. `inputs` then also has `source_continues`.
        piece_vocabulary: bool `[vocabulary_size]`, the words that are continuing pieces; for
            `max_piece_repeats`.
        sampling: dict with `temperature`, `top_k`, `top_p`, see `sample_search`; or None for a
            search.
        uniforms: the random numbers of a sampling, `draw_uniforms`; their number of samples is the
            number of outputs.
        shortlist: int32 `[batch, N]`, the words of each source that the softmax runs over, such as
            `choose_words` returns; or None for all. The probabilities are then those among these
            words and the copies.
        tables: what `model.decoding_tables()` returned, which is the same for all sources and saves
            each step a product; or None.
        compact: whether a beam search goes on with fewer sources once half of them have ended (see
            `step_of` of `beam_search`); without it the search's graph is half as large.
        **options: of `beam_search`.

    Raises:
        ValueError: arguments that do not fit together, or lack an input.

    Returns:
        `Hypotheses`; of a model that reads a source in several ways (`decoding_samples`) the best
        of all.
    """
    arguments = {
        "protected_vocabulary": protected_vocabulary,
        "piece_vocabulary": piece_vocabulary,
        "uniforms": uniforms,
        "shortlist": shortlist,
    }
    if max_piece_repeats and piece_vocabulary is None:
        raise ValueError("decode: max_piece_repeats needs piece_vocabulary.")
    _check_arguments(inputs, arguments, copy_whole_words or max_piece_repeats)
    samples = model.decoding_samples
    several = {} if samples == 1 else {"samples": samples}
    memory, carry = model.encode(inputs, max_length=max_length, **several)
    head = model.head
    copies = beam_size if sampling is None else ops.shape(uniforms)[1]
    tables = dict(tables or {})
    columns = tables.pop("columns", None)
    if shortlist is not None:
        memory = model.shorten(memory, repeat_rows(shortlist, samples), columns)
        shortlist = memory.pop("shortlist")
    size = model.target_vocabulary_size if shortlist is None else shortlist.size
    if sampling is None:
        memory, carry = model.share(memory, carry, beam_size)

    def step_of(sources=None):
        """The step function of all sources, or of some, int32 `[n]`."""

        def take(tree):
            return tree if sources is None else take_rows(tree, sources)

        repeated = {**repeat_rows(take(memory), copies), **tables}
        if shortlist is not None:
            # One for each source, however many hypotheses that has.
            repeated["shortlist"] = take(shortlist)
        return lambda actions, carry, index: StepOutput(
            *model.step(actions, carry, repeated, index)
        )

    step = step_of()

    if protected_vocabulary is not None:
        # Tokens that the head cannot output cannot be required.
        possible = memory["extended_ids"] < size
        possible = ops.logical_or(possible, head.copies)
        protected = repeat_rows(inputs["source_protected"], samples)
        source = ops.logical_and(ops.logical_and(protected, memory["mask"]), possible)
        if shortlist is not None:
            protected_vocabulary = ops.take(protected_vocabulary, shortlist.words)
        order = None
        if blank_vocabulary is not None:
            if shortlist is not None:
                blank_vocabulary = ops.take(blank_vocabulary, shortlist.words)
            roles, links = (
                ops.cast(repeat_rows(inputs[name], samples), "int32")
                for name in ("source_roles", "source_links")
            )
            order = Order(roles, links, blank_vocabulary)
            source = order.whole_pairs(source)
        options["protection"] = Protection(protected_vocabulary, source, head.max_span, order)
    if copy_whole_words or max_piece_repeats:
        continues = repeat_rows(ops.cast(inputs["source_continues"], "bool"), samples)
        continues = ops.logical_and(continues, memory["mask"])
        if max_piece_repeats:
            options["piece_repeats"] = _piece_repeats(
                piece_vocabulary, shortlist, memory["extended_ids"], continues, max_piece_repeats
            )
        if copy_whole_words and head.copies:
            # The first token continues nothing.
            follows = ops.arange(ops.shape(continues)[1], dtype="int32") > 0
            options["whole_words"] = WholeWords(
                ops.logical_and(continues, follows), size, head.max_span, head.merges
            )
    extended_size = size + ops.shape(memory["extended_ids"])[1]
    arguments = (step, carry, memory["extended_ids"], memory["mask"], extended_size, max_length)
    options = dict(options, max_span=head.max_span, merges=head.merges)
    with panels.in_use(model.step_kernels(shortlist is not None) if tables else [], tables):
        if sampling is not None:
            found, samples = sample_search(*arguments, uniforms=uniforms, **sampling, **options), 1
        elif beam_size == 1:
            found = greedy_search(*arguments, **options)
        else:
            found = beam_search(
                *arguments,
                beam_size=beam_size,
                n_best=n_best,
                vocabulary_size=size,
                step_of=step_of if compact else None,
                **options,
            )
    if shortlist is not None:
        found = found._replace(tokens=shortlist.restore(found.tokens, model.target_vocabulary_size))
    return found if samples == 1 else best_of(found, samples)


def _piece_repeats(vocabulary, shortlist, extended_ids, continues, most):
    """Returns the `PieceRepeats` of sources, in the ids of the search."""
    vocabulary = ops.convert_to_tensor(vocabulary, dtype="bool")
    if shortlist is not None:
        vocabulary = ops.take(vocabulary, shortlist.words)
        size = ops.shape(vocabulary)[1]
        known = take_along(vocabulary, ops.minimum(extended_ids, size - 1))
    else:
        size = ops.shape(vocabulary)[0]
        known = ops.take(vocabulary, ops.minimum(extended_ids, size - 1))
    # Whether a piece that the vocabulary lacks has letters is not known.
    source = ops.logical_and(continues, ops.where(extended_ids < size, known, continues))
    return PieceRepeats(vocabulary, source, most)
