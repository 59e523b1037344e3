"""Every head in the same model: all are called alike, by the names of the arguments."""

import keras
import numpy as np
import pytest
from keras import layers, ops

from keras_models import losses
from keras_models.heads import HEADS, CopyHead, PointerSentinelWindow
from keras_models.layers.numerics import LOG_ZERO
from tests.keras_models.backends import numpy

V, B, T, S, K, SIZE = 10, 2, 3, 5, 2, 8
NAMES = ("source_ids", "source_extended_ids", "target_input_ids", "target_extended_ids")
LEXICON = ("lexicon_ids", "lexicon_probabilities")
#: Heads that read the encoder's states, and those that copy by the attention that they are given.
POINTING = ("pointer_sentinel", "joint_copy", "pointer_network", "span_copy")
ATTENTIVE = ("pointer_generator", "pointer_softmax", "lexicon_copy")


def tensors(mask_zero=False):
    """The inputs of a model of one's own, and all that a head can be given."""
    inputs = {name: keras.Input((None,), dtype="int32", name=name) for name in NAMES}
    inputs["lexicon_ids"] = keras.Input((None, K), dtype="int32", name="lexicon_ids")
    inputs["lexicon_probabilities"] = keras.Input((None, K), name="lexicon_probabilities")
    source = layers.Embedding(V, SIZE, mask_zero=mask_zero)(inputs["source_ids"])
    states = layers.GRU(SIZE, return_sequences=True)(source)
    embedded = layers.Embedding(V, SIZE)(inputs["target_input_ids"])
    decoded = layers.GRU(SIZE, return_sequences=True)(embedded)
    context, attention = layers.AdditiveAttention()([decoded, states], return_attention_scores=True)
    return inputs, {
        "hidden": decoded + context,
        "context": context,
        "attention": attention,
        "inputs": embedded,
        "decoder_state": decoded,
        "memory_states": states,
        "source_extended_ids": inputs["source_extended_ids"],
        "mask": ops.not_equal(inputs["source_ids"], 0),
        "lexicon_ids": inputs["lexicon_ids"],
        "lexicon_probabilities": inputs["lexicon_probabilities"],
    }


def arrays():
    """Two sources, of which the first is padded."""
    return {
        "source_ids": np.array([[4, 1, 5, 0, 0], [1, 6, 4, 1, 7]], "int32"),
        "source_extended_ids": np.array([[4, 11, 5, 0, 0], [10, 6, 4, 13, 7]], "int32"),
        "target_input_ids": np.array([[2, 1, 4], [2, 6, 1]], "int32"),
        # Only words of the sources, so that a pointer network can say them.
        "target_extended_ids": np.array([[11, 4, 3], [6, 13, 3]], "int32"),
        "lexicon_ids": np.tile(np.array([4, 1], "int32"), (B, S, 1)),
        "lexicon_probabilities": np.full((B, S, K), 0.5, "float32"),
    }


@pytest.mark.parametrize("name", HEADS)
def test_another_head_is_one_changed_word(name):
    keras.utils.set_random_seed(0)
    inputs, arguments = tensors()
    # The one line.
    head = HEADS[name](V)
    model = keras.Model(inputs, head(**arguments, targets=inputs["target_extended_ids"]))
    distributions = keras.Model(inputs, head(**arguments))

    log_prob, log_probs = numpy(model(arrays())), numpy(distributions(arrays()))
    assert log_prob.shape == (B, T) and log_prob.dtype == np.float32
    assert model.output.shape == (None, None) and len(distributions.output.shape) == 3
    size = V + S * head.max_span if head.copies else V
    assert log_probs.shape == (B, T, size)
    np.testing.assert_allclose(np.exp(log_probs.astype("float64")).sum(-1), 1, atol=1e-5)
    # Targets and distributions agree; a head without copies says [UNK] for a copy.
    targets = arrays()["target_extended_ids"]
    if not head.copies:
        targets = np.where(targets < V, targets, 1)
    of_targets = np.take_along_axis(log_probs, targets[..., None], axis=-1)[..., 0]
    np.testing.assert_allclose(log_prob, of_targets, rtol=1e-4, atol=1e-5)

    # A saved model has the same call.
    loaded = keras.Model.from_config(model.get_config())
    loaded.set_weights(model.get_weights())
    np.testing.assert_allclose(numpy(loaded(arrays())), log_prob, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", HEADS)
def test_padding_is_not_copied(name):
    """Whatever the attention says: a mask that is given counts."""
    rng = np.random.default_rng(0)
    given = {
        "attention": np.full((B, T, S), 1 / S, "float32"),
        "mask": arrays()["source_ids"] != 0,
        **{key: arrays()[key] for key in ("source_extended_ids", *LEXICON)},
    }
    for key in ("hidden", "context", "inputs", "decoder_state", "memory_states"):
        length = S if key == "memory_states" else T
        given[key] = rng.normal(size=(B, length, SIZE)).astype("float32")
    head = HEADS[name](V)
    masked = numpy(head(**given))
    # What stands at padding changes nothing.
    other = {key: value.copy() for key, value in given.items()}
    padding = ~given["mask"]
    for key in ("memory_states", "source_extended_ids", *LEXICON):
        other[key][padding] = 1
    other["attention"][0, :, 3:] = 0.9
    np.testing.assert_allclose(numpy(head(**other)), masked, rtol=1e-4, atol=1e-5)
    if name in (*POINTING, *ATTENTIVE):
        without = numpy(head(**{key: value for key, value in given.items() if key != "mask"}))
        assert np.abs(np.exp(without[0]) - np.exp(masked[0])).max() > 1e-3


@pytest.mark.parametrize("name", POINTING)
def test_the_mask_of_keras_is_taken_where_none_is_given(name):
    keras.utils.set_random_seed(0)
    inputs, arguments = tensors(mask_zero=True)
    del inputs["target_extended_ids"]
    mask = arguments.pop("mask")
    head = HEADS[name](V)
    implicit = keras.Model(inputs, head(**arguments))
    explicit = keras.Model(inputs, head(**arguments, mask=mask))
    everything = keras.Model(inputs, head(**arguments, mask=ops.ones_like(mask)))
    given = {name: arrays()[name] for name in inputs}
    found = numpy(implicit(given))
    np.testing.assert_allclose(found, numpy(explicit(given)), rtol=1e-5, atol=1e-6)
    assert np.abs(np.exp(found) - np.exp(numpy(everything(given)))).max() > 1e-3


def test_span_copy_takes_hidden_for_the_state():
    inputs, arguments = tensors()
    del inputs["target_extended_ids"]
    head = HEADS["span_copy"](V)
    state = {**arguments, "decoder_state": arguments["hidden"]}
    by_name = keras.Model(inputs, head(**state))
    del arguments["decoder_state"]
    by_default = keras.Model(inputs, head(**arguments))
    given = {name: arrays()[name] for name in inputs}
    np.testing.assert_allclose(
        numpy(by_default(given)), numpy(by_name(given)), rtol=1e-5, atol=1e-6
    )


def test_ignored_arguments_are_checked_and_others_refused():
    hidden = np.ones((B, T, SIZE), "float32")
    head = HEADS["softmax"](V)
    head(hidden=hidden, memory_states=np.ones((B, S, SIZE), "float32"))
    with pytest.raises(ValueError, match="SoftmaxHead: memory_states must have the axes"):
        head(hidden=hidden, memory_states=np.ones((B + 1, S, SIZE), "float32"))
    with pytest.raises(TypeError, match="memory"):
        head(hidden=hidden, memory=hidden)
    # It points at its own past, not at a source.
    window = PointerSentinelWindow(V, window=4)
    with pytest.raises(TypeError, match="memory_states"):
        window(hidden, np.ones((B, T), "int32"), memory_states=hidden)


def test_a_head_of_ones_own_is_called_alike():
    class Uniform(CopyHead):
        """As likely to copy any token as to say any word."""

        def call(self, source_extended_ids, targets=None, **options):
            assert set(options) == {"hidden", "mask"}
            return ops.zeros_like(source_extended_ids, dtype="float32") + LOG_ZERO

    ids = arrays()["source_extended_ids"]
    head = Uniform(V)
    hidden = np.ones((B, T, SIZE), "float32")
    assert head(source_extended_ids=ids, hidden=hidden, mask=ids != 0).shape == ids.shape


@pytest.mark.parametrize("name", ["softmax", "pointer_generator", "joint_copy", "span_copy"])
def test_a_functional_model_knows_that_its_outputs_are_float32(name):
    head = HEADS[name](V, dtype="mixed_bfloat16")
    inputs, arguments = tensors()
    model = keras.Model(inputs, head(**arguments, targets=inputs["target_extended_ids"]))
    assert model.output.dtype == "float32" == numpy(model(arrays())).dtype
    assert head(**arguments).dtype == "float32"


def test_a_model_with_any_head_trains():
    """The loss reads what every head returns; one head stands for all."""
    keras.utils.set_random_seed(0)
    inputs, arguments = tensors()
    log_prob = HEADS["span_copy"](V)(**arguments, targets=inputs["target_extended_ids"])
    model = keras.Model(inputs, log_prob)
    model.compile(keras.optimizers.Adam(0.01), loss=losses.negative_log_likelihood)
    first, second = (
        model.train_on_batch(arrays(), arrays()["target_extended_ids"]) for _ in range(2)
    )
    assert np.isfinite(first) and second < first
