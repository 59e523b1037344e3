"""Decodes a model: the search with the model's own step function."""

from keras import ops

from keras_models.argument_shapes import check_axes, check_present
from keras_models.decoding.beam import beam_search
from keras_models.decoding.constraints import Protection
from keras_models.decoding.greedy import greedy_search
from keras_models.decoding.hypotheses import StepOutput, best_of
from keras_models.decoding.order import Order
from keras_models.decoding.sampling import sample_search
from keras_models.layers.numerics import repeat_rows, take_rows

_AXES = {
    "source_protected": ("batch", "source_length"),
    "protected_vocabulary": [("vocabulary_size",), ("batch", "vocabulary_size")],
    "uniforms": ("batch", "samples", "max_length + 1"),
    "shortlist": ("batch", "words"),
}


def _check_arguments(inputs, protected_vocabulary, uniforms, shortlist):
    """Checks arguments that the model's own `encode` does not check."""
    sizes = check_axes("decode", inputs, {"source_ids": ("batch", "source_length")})
    arguments = {
        "protected_vocabulary": protected_vocabulary,
        "uniforms": uniforms,
        "shortlist": shortlist,
    }
    if protected_vocabulary is not None:
        check_present("decode", inputs, ["source_protected"])
        arguments["source_protected"] = inputs["source_protected"]
    check_axes("decode", arguments, _AXES, sizes)


def decode(
    model,
    inputs,
    max_length,
    beam_size=1,
    n_best=1,
    protected_vocabulary=None,
    blank_vocabulary=None,
    sampling=None,
    uniforms=None,
    shortlist=None,
    tables=None,
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
        sampling: dict with `temperature`, `top_k`, `top_p`, see `sample_search`; or None for a
            search.
        uniforms: the random numbers of a sampling, `draw_uniforms`; their number of samples is the
            number of outputs.
        shortlist: int32 `[batch, N]`, the words of each source that the softmax runs over, such as
            `choose_words` returns; or None for all. The probabilities are then those among these
            words and the copies.
        tables: what `model.decoding_tables()` returned, which is the same for all sources and saves
            each step a product; or None.
        **options: of `beam_search`.

    Returns:
        `Hypotheses`; of a model that reads a source in several ways (`decoding_samples`) the best
        of all.
    """
    _check_arguments(inputs, protected_vocabulary, uniforms, shortlist)
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
    extended_size = size + ops.shape(memory["extended_ids"])[1]
    arguments = (step, carry, memory["extended_ids"], memory["mask"], extended_size, max_length)
    options = dict(options, max_span=head.max_span, merges=head.merges)
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
            step_of=step_of,
            **options,
        )
    if shortlist is not None:
        found = found._replace(tokens=shortlist.restore(found.tokens, model.target_vocabulary_size))
    return found if samples == 1 else best_of(found, samples)
