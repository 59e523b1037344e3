"""Checks of a head's arguments."""

import functools
import inspect

from keras import ops

from keras_models import debugging
from keras_models.argument_shapes import check_axes, check_integers, shape_of

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_STEPS = ("batch", "target_length")
_SOURCE = ("batch", "source_length")

#: Axes of the arguments of every head's `call`, in the order in which they are compared.
CALL_AXES = {
    "hidden": (*_STEPS, "hidden_size"),
    "inputs": (*_STEPS, "embedding_size"),
    "decoder_state": (*_STEPS, "state_size"),
    "context": (*_STEPS, "context_size"),
    # Before those that are transposed more easily.
    "source_extended_ids": _SOURCE,
    "mask": _SOURCE,
    "attention": (*_STEPS, "source_length"),
    "memory_states": (*_SOURCE, "memory_size"),
    "lexicon_ids": (*_SOURCE, "translations"),
    "lexicon_probabilities": (*_SOURCE, "translations"),
    "targets": _STEPS,
    "span_starts": _STEPS,
    "span_lengths": _STEPS,
}
_IDS = ("source_extended_ids", "targets", "lexicon_ids", "span_starts", "span_lengths")
# Axes in the dicts that a body passes to its head; a decoding step has no axis of steps.
_STATE_AXES = {
    name: ("hidden_size", "embedding_size", "state_size", "context_size", "source_length")[index]
    for index, name in enumerate(
        ("hidden", "inputs", "decoder_state", "context", "attention_log_weights")
    )
}
_MEMORY_AXES = {
    "states": (*_SOURCE, "memory_size"),
    "extended_ids": _SOURCE,
    "mask": _SOURCE,
    "places": _SOURCE,
    "lexicon_ids": (*_SOURCE, "translations"),
    "lexicon_probabilities": (*_SOURCE, "translations"),
}
# The sizes that a head's build shapes require of later arguments.
_BUILT = {
    "hidden_shape": ("hidden", "hidden_size"),
    "inputs_shape": ("inputs", "embedding_size"),
    "decoder_state_shape": ("decoder_state", "state_size"),
    "context_shape": ("context", "context_size"),
    "memory_states_shape": ("memory_states", "memory_size"),
}


def check_call(head, arguments):
    """Checks the arguments of a head's `call`, by name."""
    owner = type(head).__name__
    for name in _needed(type(head).call):
        if arguments.get(name) is None:
            raise ValueError(f"{owner} needs {name}: pass {name}=.")
    arguments = {name: arguments.get(name) for name in CALL_AXES}
    check_integers(owner, arguments, _IDS)
    built = _built_sizes(head)
    sizes = check_axes(owner, arguments, CALL_AXES, {axis: size for axis, size in built.values()})
    _check_given(owner, arguments, built)
    _check_ids(head, arguments, sizes.get("source_length"), outermost=True)


# Read once per class, not at each call.
@functools.cache
def _needed(call):
    """The names of the arguments of a head's `call` that have no default."""
    _, *parameters = inspect.signature(call).parameters.values()
    return [
        parameter.name
        for parameter in parameters
        if parameter.default is parameter.empty and parameter.kind in _NAMED
    ]


def taking_all(method):
    """Returns a head's `call` that also takes what it does not read, by name.

    It takes all of `CALL_AXES`, so that heads can be called alike. They stay in its signature, so
    that Keras keeps an input of a functional model that this head alone does not read.
    """
    signature = inspect.signature(method)
    parameters = [*signature.parameters.values()]
    if parameters[-1].kind is inspect.Parameter.VAR_KEYWORD:
        return method
    ignored = [name for name in CALL_AXES if name not in signature.parameters]

    @functools.wraps(method)
    def call(self, *arguments, **keywords):
        for name in ignored:
            keywords.pop(name, None)
        return method(self, *arguments, **keywords)

    by_name = inspect.Parameter.KEYWORD_ONLY
    parameters += [inspect.Parameter(name, by_name, default=None) for name in ignored]
    call.__signature__ = signature.replace(parameters=parameters)
    return call


def check_state(head, state, memory, targets=None, labels=None):
    """Checks the state and memory of a head: see `CopyHead`."""
    owner = type(head).__name__
    steps = ("batch",) if targets is None else _STEPS
    axes = {name: (*steps, axis) for name, axis in _STATE_AXES.items()}
    sizes = {axis: size for axis, size in _built_sizes(head).values()}
    check_axes(owner, state, axes, sizes)
    check_axes(owner, memory, _MEMORY_AXES, sizes)
    labels = labels or {}
    given = {"targets": targets, **labels}
    check_integers(owner, {**given, **memory}, ("targets", "extended_ids", "lexicon_ids"))
    check_axes(owner, given, dict.fromkeys(given, _STEPS), sizes)
    ids = {
        "source_extended_ids": memory.get("extended_ids"),
        "targets": targets,
        "lexicon_ids": memory.get("lexicon_ids"),
        "span_starts": labels.get("target_span_starts"),
        "span_lengths": labels.get("target_span_lengths"),
        "target_pointers": labels.get("target_pointers"),
    }
    shortlist = memory.get("shortlist")
    size = None if shortlist is None else shortlist.size
    _check_ids(head, ids, sizes.get("source_length"), outermost=False, vocabulary_size=size)


def _built_sizes(head):
    """From an argument that a built head expects, to the name and size of its last axis."""
    if not head.built:
        return {}
    config = head.get_build_config() or {}
    shapes = config.get("shapes_dict") or {"hidden_shape": config.get("input_shape")}
    return {
        _BUILT[name][0]: (_BUILT[name][1], int(shape[-1]))
        for name, shape in shapes.items()
        if name in _BUILT and shape is not None and shape[-1] is not None
    }


def _check_given(owner, arguments, built):
    """A head that was built with an optional argument needs it; `decoder_state` is `hidden`."""
    for name, (_, size) in built.items():
        if arguments.get(name) is not None:
            continue
        hidden = shape_of(arguments["hidden"]) if arguments.get("hidden") is not None else None
        if name == "decoder_state" and hidden is not None and hidden[-1] in (None, size):
            continue
        raise ValueError(f"{owner}: {name} is missing; the layer was built with it.")


def _check_ids(head, ids, source_length, outermost, vocabulary_size=None):
    owner = type(head).__name__
    size = head.vocabulary_size if vocabulary_size is None else vocabulary_size
    extended = None if source_length is None else size + source_length
    ranges = {
        "source_extended_ids": (0, extended),
        "targets": (0, extended),
        "lexicon_ids": (0, size),
        "span_starts": (-1, source_length),
        "span_lengths": (-1, head.max_span + 1),
        "target_pointers": (-2, source_length),
    }
    for name, (low, high) in ranges.items():
        debugging.check_range(owner, name, ids.get(name), low, high, outermost)


def checked(method):
    """Returns a head's `target_log_prob` or `step_log_probs` with its arguments checked first.

    Ids of any integer type become int32.
    """
    signature = inspect.signature(method)

    @functools.wraps(method)
    def check_first(self, *arguments, **keywords):
        bound = signature.bind(self, *arguments, **keywords)
        given = bound.arguments
        names = ("state", "memory", "targets", "labels")
        check_state(self, **{name: given[name] for name in names if name in given})
        if "targets" in given:
            given["targets"] = ops.cast(given["targets"], "int32")
        if given["memory"].get("extended_ids") is not None:
            ids = ops.cast(given["memory"]["extended_ids"], "int32")
            given["memory"] = {**given["memory"], "extended_ids": ids}
        return method(*bound.args, **bound.kwargs)

    return check_first
