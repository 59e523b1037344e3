"""Bodies whose softmax, and source, share the target's embeddings."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_models.heads.registry import HEADS
from keras_models.models import RecurrentSeq2Seq, TransformerSeq2Seq
from tests.keras_models import oracles, transformer_oracle
from tests.keras_models.backends import TENSORFLOW, numpy, outputs, randomize, shared_by_config
from tests.keras_models.decoding.fakes import decoded
from tests.keras_models.decoding.test_shortlist import check
from tests.keras_models.models import recurrent_cases, test_transformer_seq2seq
from tests.keras_models.models.recurrent_cases import V, example, log_probs_and_losses, tensors
from tests.keras_models.models.test_bodies import (
    LEXICON,
    assert_learns,
    make,
    pairs,
    sources,
    training_loss,
)

SIZE = recurrent_cases.HIDDEN


@pytest.mark.parametrize("tie,embedding_size", [("target", SIZE), ("target", 3), ("all", SIZE)])
def test_a_recurrent_body_agrees_with_the_equations(tie, embedding_size, tmp_path):
    options = {"tie_embeddings": tie, "embedding_size": embedding_size, "dropout": 0.0}
    source_v = V if tie == "all" else recurrent_cases.SOURCE_V
    model = RecurrentSeq2Seq(source_v, V, hidden_size=SIZE, **options)
    randomize(model)
    inputs = example()
    inputs["source_ids"] = np.minimum(inputs["source_ids"], V - 1)
    log_prob, _ = log_probs_and_losses(model, inputs)
    weights = recurrent_cases.weights_of(model)
    scale = np.sqrt(embedding_size)
    weights["target_embedding"] = weights["target_embedding"] * scale
    if tie == "all":
        weights["source_embedding"] = weights["source_embedding"] * scale
        np.testing.assert_array_equal(weights["source_embedding"], weights["target_embedding"])
    real = inputs["target_extended_ids"] != 0
    steps, _, _ = recurrent_cases.forced_steps(model, inputs)
    for b in range(len(real)):
        pair = {name: value[b] for name, value in inputs.items()}
        expected, distributions, _ = oracles.seq2seq(
            pair, weights, V, "gru", "additive", "pointer_generator", True, True
        )
        np.testing.assert_allclose(log_prob[b][real[b]], expected[real[b]], rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(
            np.exp(steps[:, b][real[b]]), distributions[real[b]], rtol=0, atol=1e-5
        )
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.get_config()["tie_embeddings"] == tie
    np.testing.assert_array_equal(log_probs_and_losses(loaded, inputs)[0], log_prob)
    # What is tied is there one time, in the file too.
    options["tie_embeddings"] = "none"
    untied = RecurrentSeq2Seq(source_v, V, hidden_size=SIZE, **options).count_params()
    saved = V * SIZE + (V * embedding_size if tie == "all" else 0)
    projection = SIZE * embedding_size if SIZE != embedding_size else 0
    assert loaded.count_params() == untied - saved + projection


@pytest.mark.parametrize("tie,embedding_size", [("target", 8), ("all", 5)])
def test_a_transformer_agrees_with_the_equations(tie, embedding_size):
    options = {"tie_embeddings": tie, "embedding_size": embedding_size, "dropout": 0.0}
    sizes = dict(hidden_size=8, attention_heads=2, feed_forward_size=6, encoder_layers=1)
    source_v = V if tie == "all" else recurrent_cases.SOURCE_V
    model = TransformerSeq2Seq(source_v, V, **sizes, **options)
    randomize(model)
    inputs = example()
    inputs["source_ids"] = np.minimum(inputs["source_ids"], V - 1)
    log_prob, _ = log_probs_and_losses(model, inputs)
    weights = test_transformer_seq2seq.weights_of(model)
    real = inputs["target_extended_ids"] != 0
    for b in range(len(real)):
        pair = {name: value[b] for name, value in inputs.items()}
        expected, _, _ = transformer_oracle.seq2seq(pair, weights, V, 2, "pointer_generator")
        np.testing.assert_allclose(log_prob[b][real[b]], expected[real[b]], rtol=1e-5, atol=1e-5)


PAIRS = [("gru", head) for head in HEADS if head != "pointer_network"]
PAIRS += [("transformer", "pointer_generator"), ("transformer", "span_copy")]
if not TENSORFLOW:
    # JAX compiles every loop anew.
    PAIRS = [("gru", "span_copy"), ("gru", "lexicon_bias"), ("transformer", "pointer_generator")]


@pytest.mark.parametrize("body,head", PAIRS)
def test_every_head_learns_and_decodes(body, head):
    """Sizes differ under the recurrent body: a projection stands between."""
    model, inputs = make(body, head, tie_embeddings="target"), pairs()
    assert_learns(model, inputs)
    if head == "span_copy" or not TENSORFLOW:
        return

    def run(model, inputs):
        labels = inputs["target_extended_ids"]
        memory, carry = model.encode(sources(inputs), max_length=labels.shape[1])
        tokens, steps = ops.full_like(labels[:, 0], 2), []
        for t in range(labels.shape[1]):
            log_probs, _, _, carry = model.step(tokens, carry, memory, t)
            steps.append(log_probs)
            tokens = labels[:, t]
        return ops.stack(steps, axis=1)

    labels, expected = numpy(inputs["target_extended_ids"]), outputs(model, inputs)
    labels = np.where((not HEADS[head].copies) & (labels >= 8), 1, labels)
    found = numpy(shared_by_config(model, run, inputs, key="steps"))
    found = np.take_along_axis(found, labels[..., None], axis=-1)[..., 0]
    np.testing.assert_allclose(found[labels != 0], expected[labels != 0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("body,head", [("gru", "lexicon_bias"), ("transformer", "joint_copy")])
def test_shortlists(body, head):
    model, inputs = make(body, head, tie_embeddings="target"), sources(pairs())
    randomize(model, 3, 1.0)
    if model.head.needs_lexicon:
        model.set_lexicon(*LEXICON)
    check(model, inputs, rows=[1], beam_size=2, n_best=2)


def test_the_tables_of_decoding_change_nothing():
    model, inputs = make("gru", tie_embeddings="target"), sources(pairs())
    randomize(model)
    tables = model.decoding_tables(shortlist=True)
    memory, carry = model.encode(inputs)
    tokens = ops.full((3,), 5, dtype="int32")
    plain = numpy(model.step(tokens, carry, memory)[0])
    looked_up = numpy(model.step(tokens, carry, {**memory, **tables})[0])
    np.testing.assert_allclose(looked_up, plain, rtol=1e-5, atol=1e-6)
    assert tuple(tables["columns"].shape) == (8, 6)


def test_a_large_vocabulary():
    options = {"large_vocabulary_size": 5, "large_vocabulary_drawn": 2}
    model = make("gru", tie_embeddings="target", **options)
    value, gradients = training_loss(model, pairs())()
    assert np.isfinite(value) and all(np.isfinite(gradient).all() for gradient in gradients)


@pytest.mark.parametrize("body,embedding_size", [("rnn", 64), ("transformer", 64), ("rnn", 16)])
def test_first_weights_suit_both_uses(body, embedding_size):
    """Inputs begin with variance 1, and no word is much likelier than others."""
    keras.utils.set_random_seed(1)
    kind, more = {
        "rnn": (RecurrentSeq2Seq, {}),
        "transformer": (TransformerSeq2Seq, {"attention_heads": 2, "feed_forward_size": 32}),
    }[body]
    words = 500
    model = kind(
        words,
        words,
        head="softmax",
        embedding_size=embedding_size,
        hidden_size=64,
        tie_embeddings="all",
        **more,
    )
    ids = np.arange(4, 404).reshape(20, 20)
    inputs = {
        "source_ids": ids,
        "source_extended_ids": ids,
        "target_input_ids": ids,
        # The Transformer's last state still holds much of the word before.
        "target_extended_ids": ids[::-1, ::-1].copy(),
    }
    factor = np.sqrt(embedding_size) if body == "transformer" else 1.0
    assert numpy(model.embed_target(ids)).std() == pytest.approx(1, rel=0.1)
    assert factor * numpy(model.embed_source(tensors(inputs))).std() == pytest.approx(1, rel=0.1)
    loss = -outputs(model, tensors(inputs)).mean()
    assert np.log(words) - 0.2 < loss < np.log(words) + 1.0


def test_an_initial_range_draws_tied_weights_too():
    model = RecurrentSeq2Seq(
        50, 60, embedding_size=8, hidden_size=8, tie_embeddings="target", initial_range=0.1
    )
    values = numpy(model.target_embedding.embeddings.value)
    assert values.std() == pytest.approx(0.1 / np.sqrt(3), rel=0.1)
    ids = np.arange(60)
    np.testing.assert_array_equal(numpy(model.embed_target(ids)), values)


def test_what_cannot_be_tied():
    with pytest.raises(
        ValueError, match="needs one vocabulary for source and target; got 9 and 8 words"
    ):
        make("gru", tie_embeddings="all")
    with pytest.raises(ValueError, match="must be one of none, target, all; got 'both'"):
        make("gru", tie_embeddings="both")
    with pytest.raises(ValueError, match="no softmax over words that could be tied"):
        make("gru", "pointer_network", tie_embeddings="target")
    options = {"composition": "sum", "composition_options": {"word_length": 3, "characters": 9}}
    with pytest.raises(ValueError, match="looked up; composition 'sum' has none"):
        make("gru", tie_embeddings="all", **options)


def test_searches_decode(tmp_path):
    model, inputs = make("transformer", "joint_copy", tie_embeddings="target"), sources(pairs())
    found = decoded(model, inputs, max_length=4, beam_size=2)
    assert np.isfinite(found.scores).all()
