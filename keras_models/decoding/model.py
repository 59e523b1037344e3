"""Decoding a model: the search with the model's own step function."""

from keras import ops

from keras_models.decoding.beam import beam_search, repeat_for_beam
from keras_models.decoding.constraints import Protection
from keras_models.decoding.greedy import greedy_search
from keras_models.decoding.hypotheses import StepOutput


def decode(model, inputs, max_length, beam_size=1, n_best=1, protected_vocabulary=None, **options):
    """Searches for the best outputs of a model.

    Args:
        model: a body, such as `RecurrentSeq2Seq`, with `encode` and `step`.
        inputs: dict of int `[batch, source_length]`: `source_ids`, `source_extended_ids`, `source_feed_ids`.
        max_length: longest output in tokens.
        beam_size: 1 is greedy search.
        n_best: outputs for each source, at most `beam_size`.
        protected_vocabulary: bool `[vocabulary_size]`, words of a protected kind; with it, `inputs` also has bool
            `source_protected` `[batch, source_length]`, and outputs keep these tokens: see `Protection`.
        **options: of `beam_search`.

    Returns:
        `Hypotheses`.
    """
    memory, carry = model.encode(inputs)
    beam_memory = repeat_for_beam(memory, beam_size) if beam_size > 1 else memory

    def step(tokens, carry, index):
        return StepOutput(*model.step(tokens, carry, beam_memory))

    if protected_vocabulary is not None:
        # What the head cannot output cannot be demanded either.
        possible = ops.logical_or(model.head.copies, memory["extended_ids"] < model.target_vocabulary_size)
        source = ops.logical_and(ops.logical_and(inputs["source_protected"], memory["mask"]), possible)
        options["protection"] = Protection(protected_vocabulary, source)
    extended_size = model.target_vocabulary_size + ops.shape(memory["extended_ids"])[1]
    arguments = (step, carry, memory["extended_ids"], memory["mask"], extended_size, max_length)
    if beam_size == 1:
        return greedy_search(*arguments, **options)
    return beam_search(*arguments, beam_size=beam_size, n_best=n_best, **options)
