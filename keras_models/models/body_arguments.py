"""Checks of the inputs of an encoder-decoder body."""

import functools

from keras_models import debugging
from keras_models.argument_shapes import check_axes, check_present, shape_of
from keras_models.heads.copy_head import LABEL_FEATURES, POINTERS, SPAN_LENGTHS, SPAN_STARTS

_SOURCE = ("batch", "source_length")
_TARGET = ("batch", "target_length")
_SOURCE_IDS = ("source_ids", "source_extended_ids", "source_feed_ids", "source_lexicon_rows")
_TARGET_IDS = ("target_input_ids", "target_extended_ids", *LABEL_FEATURES)
_CHARACTERS = "source_characters"


def check_inputs(body, inputs, with_targets):
    """Checks the inputs of a body.

    Args:
        body: a `Seq2Seq`.
        inputs: dict of int tensors, see `Seq2Seq`.
        with_targets: whether the targets are needed, too.

    Raises:
        ValueError: inputs are missing, have other axes, or, where that is asked for
            (`keras_models.debugging`), hold an id out of range.
    """
    owner = type(body).__name__
    needed = ["source_ids", "source_extended_ids", *body.feature_embeddings]
    if body.composer is not None:
        needed.append(_CHARACTERS)
    if body.head.needs_lexicon:
        needed.append("source_lexicon_rows")
    if with_targets:
        needed += ["target_input_ids", "target_extended_ids"]
    check_present(owner, inputs, needed)
    axes = dict.fromkeys((*_SOURCE_IDS, *body.feature_embeddings), _SOURCE)
    if with_targets:
        axes.update(dict.fromkeys(_TARGET_IDS, _TARGET))
    axes[_CHARACTERS] = ("batch", "source_length * word_length")
    ordered = {name: inputs[name] for name in axes if name in inputs}
    sizes = check_axes(owner, ordered, axes)
    if body.composer is not None:
        _check_characters(body, owner, inputs[_CHARACTERS], sizes.get("source_length"))
    for name, (low, high) in _ranges(body, sizes.get("source_length")).items():
        if name in ordered:
            debugging.check_range(owner, name, ordered[name], low, high)


def _check_characters(body, owner, characters, length):
    places, shape = body.composition_options["word_length"], shape_of(characters)
    if length is None or shape is None or shape[1] in (None, length * places):
        return
    raise ValueError(
        f"{owner}: {_CHARACTERS} must have the axes [batch, source_length * word_length]; got the "
        f"shape {shape} for {length} words of {places} characters."
    )


def _ranges(body, source_length):
    """From an input to its smallest id and the number above its largest one."""
    size = body.target_vocabulary_size
    extended = None if source_length is None else size + source_length
    ranges = {
        "source_extended_ids": (0, extended),
        "source_feed_ids": (0, size),
        "target_input_ids": (0, size),
        "target_extended_ids": (0, extended),
        POINTERS: (-2, source_length),
        SPAN_STARTS: (-1, source_length),
        SPAN_LENGTHS: (-1, body.head.max_span + 1),
    }
    if body.source_embedding is not None:
        ranges["source_ids"] = (0, body.source_embedding.input_dim)
    if body.head.needs_lexicon:
        ranges["source_lexicon_rows"] = (0, body.lexicon_ids.shape[0])
    for name, layer in body.feature_embeddings.items():
        ranges[name] = (0, layer.input_dim)
    return ranges


def checked(method, with_targets):
    """Returns a body's `call` or `encode` with its inputs checked first."""

    @functools.wraps(method)
    def check_first(self, inputs, *arguments, **keywords):
        check_inputs(self, inputs, with_targets)
        return method(self, inputs, *arguments, **keywords)

    return check_first
