"""Every body under every head: learning, decoding, padding; and scheduled sampling."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_models import losses
from keras_models.heads.registry import HEADS
from keras_models.models import RecurrentSeq2Seq, TransformerSeq2Seq
from tests.keras_models.backends import TENSORFLOW, gradient_function, numpy, outputs, randomize
from tests.keras_models.decoding.fakes import decoded
from tests.keras_models.decoding.test_beam import assert_same

SOURCE_V, V, SIZE = 9, 8, 8
RECURRENT = {"embedding_size": 6, "hidden_size": SIZE, "dropout": 0.0}
TRANSFORMER = {
    "embedding_size": SIZE,
    "hidden_size": SIZE,
    "attention_heads": 2,
    "feed_forward_size": 12,
    "encoder_layers": 1,
    "decoder_layers": 2,
    "dropout": 0.0,
}
BODIES = {
    "gru": (RecurrentSeq2Seq, {**RECURRENT, "cell": "gru"}),
    "lstm": (RecurrentSeq2Seq, {**RECURRENT, "cell": "lstm", "attention": "bilinear"}),
    "cnn": (
        RecurrentSeq2Seq,
        {**RECURRENT, "encoder": "cnn", "encoder_layers": 2, "attention": "dot"},
    ),
    "no attention": (RecurrentSeq2Seq, {**RECURRENT, "attention": "none"}),
    "transformer": (TransformerSeq2Seq, TRANSFORMER),
}
# Every head under a recurrent body; under the Transformer, whose own tests have `softmax` and
# `pointer_generator`, a head of each other kind; under the others a head that merges and one that
# does not.
PAIRS = [("gru", head) for head in HEADS]
PAIRS += [
    ("transformer", head)
    for head in HEADS
    if head in ("joint_copy", "pointer_softmax", "span_copy", "lexicon_copy")
]
PAIRS += [
    ("lstm", "joint_copy"),
    ("lstm", "pointer_softmax"),
    ("cnn", "pointer_generator"),
    ("cnn", "span_copy"),
    ("no attention", "softmax"),
]
if not TENSORFLOW:
    # Each head and each body: JAX compiles every loop anew.
    PAIRS = [
        ("gru", "pointer_generator"),
        ("gru", "pointer_network"),
        ("lstm", "pointer_softmax"),
        ("cnn", "span_copy"),
        ("gru", "lexicon_copy"),
        ("no attention", "softmax"),
        ("transformer", "joint_copy"),
        ("transformer", "pointer_sentinel"),
    ]


# Translations of rows 2 and 3: one, and two of which one is [UNK]; the first rows are padding's and
# that of uncovered words.
LEXICON = (
    np.array([[1, 1], [1, 1], [5, 1], [1, 7]]),
    np.array([[1, 0], [1, 0], [1, 0], [0.25, 0.75]]),
)


def make(body, head="pointer_generator", **options):
    kind, sizes = BODIES[body]
    keras.utils.set_random_seed(1)
    needs_lexicon = HEADS[head].needs_lexicon
    model = kind(
        SOURCE_V,
        V,
        head=head,
        lexicon_shape=(4, 2) if needs_lexicon else None,
        **{**sizes, **options},
    )
    if needs_lexicon:
        model.set_lexicon(*LEXICON)
    return model


def pairs(padding=0):
    """An ordinary source, one of a single token, one that is all unknown; targets of them."""
    source = np.array([[4, 6, 7, 4, 8], [8, 0, 0, 0, 0], [7, 8, 6, 7, 8]])
    first = np.argmax(source[:, :, None] == source[:, None, :], axis=-1)
    arrays = {
        "source_ids": source,
        "source_extended_ids": np.where(source < 6, source, V + first),
        "source_feed_ids": np.where(source < 6, source, 1),
        "source_lexicon_rows": np.select([source == 0, source == 4, source == 7], [0, 2, 3], 1),
    }
    labels = np.zeros((3, 4), "int64")
    fed = np.zeros_like(labels)
    for row, order in enumerate(([3, 1, 2], [0], [2, 0, 1])):
        labels[row, : len(order) + 1] = [*arrays["source_extended_ids"][row, order], 3]
        fed[row, : len(order) + 1] = [2, *arrays["source_feed_ids"][row, order]]
    arrays = {name: np.pad(value, [[0, 0], [0, padding]]) for name, value in arrays.items()}
    arrays.update(target_input_ids=fed, target_extended_ids=labels)
    return {name: ops.convert_to_tensor(value, dtype="int32") for name, value in arrays.items()}


def sources(inputs):
    return {name: value for name, value in inputs.items() if name.startswith("source")}


def training_loss(model, inputs):
    """What gives the loss and its gradients for the weights."""

    def loss():
        log_prob = model(inputs, training=True)
        return losses.negative_log_likelihood(inputs["target_extended_ids"], log_prob) + sum(
            model.losses
        )

    return gradient_function(loss, model)


def assert_learns(model, inputs):
    """Asserts that the loss falls in a few steps, with finite gradients."""
    curve, loss_and_gradients = [], training_loss(model, inputs)
    for _ in range(3):
        value, gradients = loss_and_gradients()
        assert all(np.isfinite(gradient).all() for gradient in gradients)
        norm = max(np.sqrt(sum((gradient**2).sum() for gradient in gradients)), 1.0)
        for weight, gradient in zip(model.trainable_weights, gradients):
            weight.assign_sub(0.3 * gradient / norm)
        curve.append(value)
    assert np.isfinite(curve).all() and curve[-1] < curve[0]


@pytest.mark.parametrize("body,head", PAIRS)
def test_heads_learn_and_decode_under_bodies(body, head, tmp_path):
    model, inputs = make(body, head), pairs()
    assert_learns(model, inputs)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(
        outputs(loaded, inputs), outputs(model, inputs), rtol=1e-6, atol=1e-6
    )
    if not TENSORFLOW and body == "gru":
        return  # decoding's own tests decode with these heads, and JAX compiles each search
    beam = 1 if body == "transformer" and head != "joint_copy" else 3
    options = dict(max_length=4, beam_size=beam, n_best=beam, min_length=1)
    found = decoded(model, sources(inputs), **options)
    assert np.isfinite(found.scores).all() and (found.scores[:, 0] > -1e8).all()
    assert (found.lengths[:, 0] >= 1).all()
    extended = numpy(inputs["source_extended_ids"])
    for row, k, t in np.argwhere(found.tokens >= V):
        # What is beyond the vocabulary stands where it is said to come from.
        place = found.copied_from[row, k, t]
        surface = extended[row, found.tokens[row, k, t] - V]
        assert extended[row, place] == surface
    if TENSORFLOW and (head != "span_copy" or beam == 1):
        padded = decoded(model, sources(pairs(padding=2)), **options)
        assert_same(found, padded, tolerance=1e-4)
    assert HEADS[head].copies or (found.tokens < V).all()


# The others are trained in mixed precision by tests of their own.
@pytest.mark.parametrize("body", BODIES if TENSORFLOW else ["lstm", "cnn", "transformer"])
def test_gradients_are_finite_in_mixed_precision(body):
    model = make(body, "joint_copy", dtype="mixed_bfloat16")
    value, gradients = training_loss(model, pairs())()
    assert np.isfinite(value) and all(np.isfinite(gradient).all() for gradient in gradients)
    found = decoded(model, sources(pairs()), max_length=4, beam_size=2)
    assert np.isfinite(found.scores).all() and (found.scores > -1e8).all()


@pytest.mark.parametrize(
    "body,composition",
    [("gru", "lookup+ngram"), ("gru", "bilstm"), ("transformer", "lookup+cnn")]
    if TENSORFLOW
    else [("gru", "lookup+max")],
)
def test_words_composed_of_characters(body, composition, tmp_path):
    options = {"word_length": 3, "characters": 9, "buckets": 31}
    model = make(body, composition=composition, composition_options=options)
    assert (model.source_embedding is None) == (not composition.startswith("lookup"))

    def spelt(padding=0, unknown=5):
        inputs = pairs(padding)
        ids = numpy(inputs["source_ids"])
        letters = np.stack([ids, np.where(ids > 5, unknown, 0), np.zeros_like(ids)], axis=-1)
        return {
            **inputs,
            "source_characters": ops.convert_to_tensor(letters.reshape(3, -1), dtype="int32"),
        }

    value, gradients = training_loss(model, spelt())()
    assert np.isfinite(value) and all(np.isfinite(gradient).all() for gradient in gradients)
    assert len(gradients) == len(model.trainable_weights)
    randomize(model)
    expected = outputs(model, spelt())
    np.testing.assert_allclose(outputs(model, spelt(padding=2)), expected, rtol=1e-5, atol=1e-5)
    # How a word is written matters.
    assert not np.allclose(outputs(model, spelt(unknown=6))[0], expected[0], atol=1e-4)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(outputs(loaded, spelt()), expected, rtol=1e-6, atol=1e-6)
    found = decoded(model, sources(spelt()), max_length=4, beam_size=2)
    assert np.isfinite(found.scores).all()


def test_an_unknown_composition():
    with pytest.raises(
        ValueError, match="composition must be 'lookup', one of sum, .*; got 'lookup[+]mean'"
    ):
        make("gru", composition="lookup+mean")


def test_a_lexicon_that_does_not_fit():
    model = make("gru", "lexicon_bias")
    with pytest.raises(ValueError, match=r"shape \(4, 2\); got \(3, 2\)"):
        model.set_lexicon(LEXICON[0][:3], LEXICON[1][:3])
    with pytest.raises(ValueError, match="must sum to 1"):
        model.set_lexicon(LEXICON[0], LEXICON[1] / 2)
    with pytest.raises(
        ValueError, match="'lexicon_copy' needs a lexicon of translations: give lexicon_shape"
    ):
        RecurrentSeq2Seq(SOURCE_V, V, head="lexicon_copy", **RECURRENT)


def test_a_head_reads_the_lexicon_rows_of_the_source():
    """Where the lexicon is all there is, its row is the translation; it is not trained."""
    model, inputs = make("gru", "lexicon_linear"), pairs()
    model.head.gate_logit.assign(50.0)
    memory, carry = model.encode(inputs)
    log_probs, _, attention, _ = numpy(model.step(ops.full((3,), 2, dtype="int32"), carry, memory))
    expected = np.zeros((3, V))
    for row, places in enumerate(numpy(inputs["source_lexicon_rows"])):
        for place, entry in enumerate(places):
            for word, probability in zip(LEXICON[0][entry], LEXICON[1][entry]):
                expected[row, word] += attention[row, place] * probability
    np.testing.assert_allclose(np.exp(log_probs[:, :V]), expected, rtol=1e-4, atol=1e-6)
    assert "lexicon_ids" not in [weight.name for weight in model.trainable_weights]


def test_no_head_but_those_that_need_it_asks_for_attention():
    for head in HEADS:
        if HEADS[head].needs_attention:
            with pytest.raises(ValueError, match="needs an attention other than 'none'"):
                make("no attention", head)


# The convolutional encoder in the recurrent body.


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_the_first_state_after_convolutions_is_made_of_the_mean(cell):
    model = make("cnn", cell=cell)
    randomize(model)
    memory, carry = numpy(model.encode(pairs()))
    padded_memory, padded_carry = numpy(model.encode(pairs(padding=3)))
    assert len(carry["cell"]) == (2 if cell == "lstm" else 1)
    for state, padded, bridge in zip(carry["cell"], padded_carry["cell"], model.bridges):
        for row, length in enumerate((5, 1, 5)):
            mean = memory["states"][row, :length].mean(0)
            expected = np.tanh(mean @ numpy(bridge.kernel.value) + numpy(bridge.bias.value))
            np.testing.assert_allclose(state[row], expected, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(state, padded, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        memory["states"], padded_memory["states"][:, :5], rtol=1e-5, atol=1e-6
    )
    assert (padded_memory["states"][:, 5:] == 0).all()


def test_an_encoder_that_is_none():
    with pytest.raises(
        ValueError, match="encoder must be one of rnn, cnn, segmenting; got 'transformer'"
    ):
        make("gru", encoder="transformer")
    assert make("cnn", hidden_size=7).hidden_size == 7


# Scheduled sampling.


def log_prob(model, inputs, training, gold_probability=None):
    if gold_probability is not None:
        model.gold_probability.assign(gold_probability)
    return numpy(model(inputs, training=training))


SAMPLED = [
    ("gru", {}),
    ("lstm", {"head": "joint_copy", "selective_read": True}),
    ("no attention", {"head": "softmax"}),
    ("cnn", {"head": "span_copy"}),
    ("transformer", {}),
    ("transformer", {"head": "span_copy"}),
]


@pytest.mark.parametrize("body,options", SAMPLED)
def test_gold_tokens_alone_give_what_training_without_sampling_gives(body, options):
    model = make(body, scheduled_sampling=True, **options)
    randomize(model)
    expected = log_prob(model, pairs(), False, 0.0)
    np.testing.assert_allclose(log_prob(model, pairs(), True, 1.0), expected, rtol=1e-5, atol=1e-5)
    changed = log_prob(model, pairs(), True, 0.0)
    assert changed.shape == expected.shape and np.isfinite(changed).all()
    # The start is always gold.
    np.testing.assert_allclose(changed[:, 0], expected[:, 0], rtol=1e-5, atol=1e-5)
    assert not np.allclose(changed, expected, atol=1e-3)


@pytest.mark.parametrize("body,options", SAMPLED[:3])
def test_without_gold_tokens_a_recurrent_body_feeds_what_it_would_decode(body, options):
    model, inputs = make(body, scheduled_sampling=True, **options), pairs()
    randomize(model, 3, 1.0)
    # Less for words against positions, so that it copies.
    model.head.vocabulary.bias.assign(model.head.vocabulary.bias - 4.0)
    labels = numpy(inputs["target_extended_ids"])
    labels = np.where((options.get("head") == "softmax") & (labels >= V), 1, labels)
    memory, carry = model.encode(inputs)
    actions, expected, copied = ops.full((3,), 2, dtype="int32"), [], 0
    for t in range(labels.shape[1]):
        log_probs, _, _, carry = model.step(actions, carry, memory)
        log_probs = numpy(log_probs)
        expected.append(log_probs[np.arange(3), labels[:, t]])
        actions = ops.convert_to_tensor(log_probs.argmax(-1), dtype="int32")
        copied += (log_probs.argmax(-1) >= V).sum()
    real = numpy(inputs["target_extended_ids"]) != 0
    actual = log_prob(model, inputs, True, 0.0)
    np.testing.assert_allclose(actual[real], np.stack(expected, 1)[real], rtol=1e-4, atol=1e-4)
    assert (copied > 0) == HEADS[options.get("head", "pointer_generator")].copies


def test_without_gold_tokens_the_transformer_feeds_what_its_first_pass_predicts():
    model, inputs = make("transformer", scheduled_sampling=True), pairs()
    randomize(model, 3, 1.0)
    gold, feed = numpy(inputs["target_input_ids"]), numpy(inputs["source_feed_ids"])
    memory, carry = model.encode(inputs, max_length=gold.shape[1])
    labels, own = numpy(inputs["target_extended_ids"]), gold.copy()
    actions = ops.full((3,), 2, dtype="int32")
    for t in range(gold.shape[1] - 1):
        log_probs, _, _, carry = model.step(actions, carry, memory, t)
        predicted = numpy(log_probs).argmax(-1)
        own[:, t + 1] = [feed[row, p - V] if p >= V else p for row, p in enumerate(predicted)]
        actions = ops.convert_to_tensor(labels[:, t])
    real = labels != 0
    # Behind a target's end the predictions go on; nothing reads them.
    expected = log_prob(model, {**inputs, "target_input_ids": ops.convert_to_tensor(own)}, False)
    np.testing.assert_allclose(
        log_prob(model, inputs, True, 0.0)[real], expected[real], rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("body", ["gru", "transformer"])
def test_sampling_depends_on_the_seed_alone(body):
    def run():
        model = make(body, scheduled_sampling=True)
        randomize(model, 3, 1.0)
        return [log_prob(model, pairs(), True, 0.5) for _ in range(4 if TENSORFLOW else 2)]

    first, second = run(), run()
    np.testing.assert_array_equal(first, second)
    assert any(not np.array_equal(first[0], other) for other in first[1:])


@pytest.mark.slow
@pytest.mark.skipif(
    TENSORFLOW, reason="tests/pipeline/training/test_trainer.py trains both bodies on TensorFlow"
)
@pytest.mark.parametrize("body", ["gru", "transformer"])
def test_sampling_trains_and_is_saved(body, tmp_path):
    model = make(body, scheduled_sampling=True, dropout=0.1)
    model.gold_probability.assign(0.5)
    inputs = {name: numpy(value) for name, value in pairs().items()}
    model.compile(
        keras.optimizers.Adam(0.02), loss=losses.negative_log_likelihood, jit_compile=True
    )
    history = model.fit(inputs, inputs["target_extended_ids"], epochs=8, verbose=0).history["loss"]
    assert np.isfinite(history).all() and history[-1] < history[0]
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert float(loaded.gold_probability) == 0.5 and loaded.get_config()["scheduled_sampling"]
    np.testing.assert_array_equal(numpy(loaded(pairs())), numpy(model(pairs())))


@pytest.mark.parametrize("body", ["gru", "transformer"])
def test_sampling_needs_what_a_copy_feeds(body):
    model, inputs = make(body, scheduled_sampling=True), pairs()
    del inputs["source_feed_ids"]
    assert numpy(model(inputs)).shape == (3, 4)
    with pytest.raises(ValueError, match="the inputs need 'source_feed_ids'"):
        model(inputs, training=True)
