"""Wrong arguments are named; ids are checked where that is asked for."""

import inspect
import warnings

import keras
import numpy as np
import pytest
from keras import ops

from keras_models import debugging, heads, models
from keras_models.decoding import beam_search, continue_text, decode, greedy_search, sample_search
from tests.keras_models.backends import compiled, numpy

V, B, T, S = 10, 2, 3, 5
RNG = np.random.default_rng(0)


def floats(*shape):
    return RNG.normal(size=shape).astype("float32")


def arguments_of(name):
    """What each head is called with: shapes that all differ."""
    source = np.tile(np.arange(V, V + S), (B, 1))
    every = {
        "hidden": floats(B, T, 4),
        "context": floats(B, T, 6),
        "inputs": floats(B, T, 7),
        "decoder_state": floats(B, T, 8),
        "attention": RNG.dirichlet(np.ones(S), size=(B, T)).astype("float32"),
        "memory_states": floats(B, S, 9),
        "source_extended_ids": source,
        "targets": np.tile(np.arange(V, V + T), (B, 1)),
        "mask": np.ones((B, S), "bool"),
        "lexicon_ids": np.tile(np.array([4, 5]), (B, S, 1)),
        "lexicon_probabilities": np.full((B, S, 2), 0.5, "float32"),
        "span_starts": np.zeros((B, T), "int32"),
        "span_lengths": np.ones((B, T), "int32"),
    }
    taken = {
        "SoftmaxHead": "hidden targets",
        "PointerGenerator": "hidden context attention source_extended_ids targets inputs "
        "decoder_state",
        "PointerSoftmax": "hidden context attention targets decoder_state",
        "PointerSentinel": "hidden memory_states source_extended_ids targets mask",
        "JointCopy": "hidden memory_states source_extended_ids targets mask decoder_state",
        "PointerNetwork": "hidden memory_states source_extended_ids targets mask decoder_state",
        "SpanCopy": "inputs decoder_state context memory_states targets span_starts span_lengths "
        "mask",
        **dict.fromkeys(
            ("LexiconBias", "LexiconLinear", "LexiconCopy"),
            "hidden attention lexicon_ids lexicon_probabilities source_extended_ids targets "
            "context decoder_state",
        ),
    }[name]
    return {argument: every[argument] for argument in taken.split()}


HEADS = sorted({type_.__name__ for type_ in heads.HEADS.values()})
CASES = [(name, argument) for name in HEADS for argument in arguments_of(name)]


def built(name):
    head = getattr(heads, name)(vocabulary_size=V)
    head(**arguments_of(name))
    return head


@pytest.mark.parametrize(("name", "argument"), CASES)
def test_axes_that_do_not_fit_are_named(name, argument):
    arguments = arguments_of(name)
    head = getattr(heads, name)(vocabulary_size=V)
    value = arguments[argument]
    wrong = [value[None], value[0], value[:, :-1] if value.shape[1] == S else value[:1]]
    for other in wrong:
        # The first argument says how long the axes are, and the second is then the one at fault.
        with pytest.raises(ValueError, match=rf"{name}: \w+ must have the axes"):
            head(**{**arguments, argument: other})
    with pytest.raises(ValueError, match=rf"{name}: {argument} must have the axes"):
        head(**{**arguments, argument: value[None]})


@pytest.mark.parametrize("name", HEADS)
def test_attention_of_several_heads_and_transposed_arguments_are_named(name):
    arguments = arguments_of(name)
    head = getattr(heads, name)(vocabulary_size=V)
    for argument, value in arguments.items():
        if argument in ("hidden", "inputs") or value.ndim < 2:
            continue
        if argument == "attention":
            several = np.repeat(value[:, None], 8, axis=1)
            with pytest.raises(ValueError, match="attention.*mean of its heads"):
                head(**{**arguments, argument: several})
        with pytest.raises(ValueError, match=f"{name}: {argument} must have the axes"):
            head(**{**arguments, argument: np.swapaxes(value, 0, 1)})
        if argument in ("attention", "memory_states"):
            with pytest.raises(ValueError, match=f"{name}: {argument} must have the axes"):
                head(**{**arguments, argument: np.swapaxes(value, 1, 2)})


@pytest.mark.parametrize("name", [name for name in HEADS if name != "SoftmaxHead"])
def test_swapped_arguments_of_a_built_head_are_named(name):
    head, arguments = built(name), arguments_of(name)
    parameters = inspect.signature(head.build).parameters
    names = [argument for argument in arguments if f"{argument}_shape" in parameters]
    assert names
    for first, second in zip(names, names[1:]):
        swapped = {**arguments, first: arguments[second], second: arguments[first]}
        with pytest.raises(ValueError, match=f"{name}: ({first}|{second}) must have the axes"):
            head(**swapped)


def test_what_a_head_was_built_with_it_needs():
    head, arguments = built("PointerGenerator"), arguments_of("PointerGenerator")
    for argument in ("inputs", "decoder_state"):
        fewer = {name: value for name, value in arguments.items() if name != argument}
        with pytest.raises(ValueError, match=f"PointerGenerator: {argument} is missing"):
            head(**fewer)


@pytest.mark.parametrize(
    ("name", "argument", "value"),
    [
        (name, argument, value)
        for name, argument in CASES
        for value in {
            "source_extended_ids": (-1, V + S),
            "targets": (-1,) if name == "SoftmaxHead" else (-1, V + S),
            "lexicon_ids": (-1, V),
            "span_starts": (-2, S),
            "span_lengths": (-2, 6),
        }.get(argument, ())
    ],
)
def test_ids_out_of_range_are_named_where_that_is_asked_for(name, argument, value):
    head, arguments = built(name), arguments_of(name)
    arguments[argument] = arguments[argument].copy()
    arguments[argument][1, 2] = value
    with debugging.check_ids():
        with pytest.raises(ValueError, match=rf"{name}: {argument} must be .*; got {value} at"):
            head(**arguments)
        head(**arguments_of(name))


def test_the_switch_comes_back_and_says_what_it_cannot_see():
    head, arguments = built("PointerSentinel"), arguments_of("PointerSentinel")
    call = compiled(lambda hidden, ids: head(hidden, arguments["memory_states"], ids))
    ids = ops.convert_to_tensor(arguments["source_extended_ids"])
    with debugging.check_ids(), pytest.warns(UserWarning, match="run_eagerly=True"):
        call(ops.convert_to_tensor(arguments["hidden"]), ids)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not debugging._enabled
        debugging.check_range("nobody", "ids", np.array([99]), 0, 1)
    debugging.check_ids()
    debugging.check_ids(False)
    assert not debugging._enabled


def inputs_of():
    return {
        "source_ids": np.array([[4, 5, 6, 0], [4, 7, 0, 0]]),
        "source_extended_ids": np.array([[4, 11, 12, 0], [4, 11, 0, 0]]),
        "source_feed_ids": np.array([[4, 1, 1, 0], [4, 1, 0, 0]]),
        "target_input_ids": np.array([[2, 4, 1], [2, 1, 0]]),
        "target_extended_ids": np.array([[4, 11, 3], [11, 3, 0]]),
    }


def body(kind):
    sizes = {"hidden_size": 8, "embedding_size": 4}
    if kind is models.TransformerSeq2Seq:
        sizes.update(attention_heads=2, feed_forward_size=8, encoder_layers=1, decoder_layers=1)
    return kind(source_vocabulary_size=8, target_vocabulary_size=V, **sizes)


@pytest.mark.parametrize("kind", [models.RecurrentSeq2Seq, models.TransformerSeq2Seq])
def test_inputs_of_bodies_and_decoding(kind):
    model, inputs = body(kind), inputs_of()
    for name, value in inputs.items():
        missing = {key: other for key, other in inputs.items() if key != name}
        if name != "source_feed_ids":
            with pytest.raises(ValueError, match=f"the inputs need {name}"):
                model(missing)
        for wrong in (value[None], value[:1]) if name != "source_ids" else (value[None],):
            with pytest.raises(ValueError, match=f"{kind.__name__}: {name} must have the axes"):
                model({**inputs, name: wrong})
        for bad in (-1, 99):
            with debugging.check_ids(), pytest.raises(ValueError, match=f"{name} must be in 0"):
                model({**inputs, name: np.where(value == value[0, 1], bad, value)})
    with debugging.check_ids():
        model(inputs)
    with pytest.raises(ValueError, match="source_extended_ids must have the axes"):
        decode(model, {**inputs, "source_extended_ids": np.ones((2, 3), "int32")}, max_length=2)
    with pytest.raises(ValueError, match="the inputs need source_protected"):
        decode(model, inputs, max_length=2, protected_vocabulary=np.zeros(V, "bool"))
    with pytest.raises(ValueError, match="decode: uniforms must have the axes"):
        decode(model, inputs, max_length=2, sampling={}, uniforms=np.zeros((2, 3), "float32"))
    with pytest.raises(ValueError, match="decode: shortlist must have the axes"):
        decode(model, inputs, max_length=2, shortlist=np.arange(4))


@pytest.mark.parametrize("search", [greedy_search, beam_search, sample_search])
def test_sources_of_searches(search):
    ids, mask = np.array([[4, 11]]), np.ones((1, 2), "bool")
    more = {"uniforms": np.zeros((1, 1, 3), "float32")} if search is sample_search else {}

    def call(ids, mask):
        search(None, {}, ids, mask, extended_size=12, max_length=2, **more)

    with pytest.raises(ValueError, match=f"{search.__name__}: extended_ids must have the axes"):
        call(ids[0], mask)
    with pytest.raises(ValueError, match=f"{search.__name__}: source_mask must have the axes"):
        call(ids, mask[:, :1])
    with debugging.check_ids(), pytest.raises(ValueError, match="must be in 0..11; got 12 at"):
        call(np.array([[4, 12]]), mask)


@pytest.mark.parametrize("head", ["pointer_sentinel", "softmax"])
def test_inputs_of_language_models(head):
    model = models.LanguageModel(9, head, window=3, embedding_size=4, hidden_size=8)
    words = np.array([[4, 5, 6], [7, 8, 3]])
    for wrong in ({"inputs": words[0]}, {"targets": words[:1]}, {"extended_ids": words[:, :1]}):
        (name,) = wrong
        with pytest.raises(ValueError, match=f"LanguageModel: {name} must have the axes"):
            model(**{"inputs": words, **wrong})
    with debugging.check_ids(), pytest.raises(ValueError, match="inputs must be in 0..8; got 9"):
        model(words + 1)
    for wrong in ({"lengths": np.array([3])}, {"forbidden": np.zeros(8, "bool")}):
        (name,) = wrong
        arguments = {"extended_ids": words, "lengths": np.array([3, 3]), "max_length": 2, **wrong}
        with pytest.raises(ValueError, match=f"continue_text: {name} must have the axes"):
            continue_text(model, words, **arguments)


def test_the_window_of_a_pointer_sentinel():
    head = heads.PointerSentinelWindow(V, window=4)
    words = np.array([[5, 6, 7]])
    _, window = head(floats(1, 3, 8), words)
    with pytest.raises(ValueError, match="words must have the axes"):
        head(floats(1, 2, 8), words)
    with pytest.raises(ValueError, match=r"window\['states'\] must have the axes"):
        head(floats(1, 3, 8), words, {**window, "states": floats(1, 3, 8)})
    with debugging.check_ids(), pytest.raises(ValueError, match="words must be in -1..9; got 10"):
        head(floats(1, 3, 8), words + 3)


@pytest.mark.parametrize("name", HEADS)
def test_ids_may_be_of_any_integer_type(name):
    arguments, head = arguments_of(name), getattr(heads, name)(vocabulary_size=V)
    expected = numpy(head(**arguments))
    for dtype in ("int32", "uint8", "int16"):
        cast = {
            argument: value.astype(dtype) if value.dtype.kind == "i" else value
            for argument, value in arguments.items()
        }
        np.testing.assert_allclose(numpy(head(**cast)), expected, rtol=1e-6)
    with_span = {**arguments, "targets": None}
    np.testing.assert_allclose(np.exp(numpy(head(**with_span))).sum(-1), 1, rtol=1e-4)


def test_a_functional_model_may_leave_sizes_open():
    hidden = keras.Input((None, 4))
    context, attention = keras.Input((None, 6)), keras.Input((None, None))
    ids = keras.Input((None,), dtype="int32")
    outputs = heads.PointerGenerator(V)(hidden, context, attention, ids)
    model = keras.Model([hidden, context, attention, ids], outputs)
    given = arguments_of("PointerGenerator")
    names = ("hidden", "context", "attention", "source_extended_ids")
    log_probs = numpy(model([given[name] for name in names]))
    np.testing.assert_allclose(np.exp(log_probs).sum(-1), 1, rtol=1e-5)
