import keras
import numpy as np
import pytest

from keras_models.decoding.hypotheses import provenance
from keras_models.models import LanguageModel
from tests.keras_models import sentinel_oracle
from tests.keras_models.backends import TENSORFLOW, numpy, randomize, value_and_gradients

V = 9


def make(seed=0, scale=0.5, **options):
    sizes = dict(window=4, embedding_size=3, hidden_size=5, zoneout_hidden=0.1, zoneout_cell=0.3)
    model = LanguageModel(V, **{**sizes, **options})
    randomize(model, seed, scale)
    return model


def oracle_weights(model):
    """The model's weights as `sentinel_oracle.language_model` takes them."""
    embedding = numpy(model.embedding.embeddings.value)
    vocabulary = model.head.vocabulary
    tied = model.get_config()["tie_weights"]
    kernel = embedding.T if tied else numpy(vocabulary.kernel.value)
    if tied and model.get_config()["unit_embeddings"]:
        embedding = embedding * np.sqrt(embedding.shape[1])
    weights = {
        "embedding": embedding,
        "lstms": [{w.name: numpy(w.value) for w in lstm.trainable_weights} for lstm in model.lstms],
        "vocabulary": (kernel, numpy(vocabulary.bias.value)),
    }
    if model.points:
        query = model.head.query
        weights["query"] = (numpy(query.kernel.value), numpy(query.bias.value))
        weights["sentinel"] = numpy(model.head.sentinel.value)
    return weights


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"window": 20, "recurrent_layers": 1},
        {"head": "softmax"},
        {"tie_weights": True, "embedding_size": 5, "recurrent_layers": 3},
        {"head": "softmax", "tie_weights": True, "embedding_size": 5},
        {"tie_weights": True, "embedding_size": 5, "unit_embeddings": True},
        {"head": "softmax", "unit_embeddings": True},
    ],
)
def test_agrees_with_the_equations(options):
    model = make(**options)
    rng = np.random.default_rng(0)
    inputs = rng.integers(1, V, size=(2, 7))
    # Words 7 and up have no id of their own: they are fed as 1 and pointed at as V + k.
    extended = np.where(inputs >= 7, inputs - 7 + V, inputs)
    fed = np.where(inputs >= 7, 1, inputs)
    log_probs, _ = model(fed, extended_ids=extended, size=V + 2)
    log_probs = numpy(log_probs)
    config = model.get_config()
    for row in range(2):
        p, _ = sentinel_oracle.language_model(
            fed[row],
            extended[row],
            oracle_weights(model),
            config["window"],
            config["zoneout_hidden"],
            config["zoneout_cell"],
            V + 2,
            pointer=model.points,
        )
        np.testing.assert_allclose(np.exp(log_probs[row]), p, rtol=0, atol=1e-5)
    np.testing.assert_allclose(np.exp(log_probs).sum(-1), 1, atol=1e-5)
    targets = rng.integers(1, V, size=(2, 3))
    known, _ = model(fed, extended_ids=extended, targets=targets, last=3)
    np.testing.assert_allclose(
        numpy(known),
        np.take_along_axis(log_probs[:, -3:], targets[..., None], -1)[..., 0],
        rtol=0,
        atol=1e-5,
    )


@pytest.mark.parametrize(
    "head,tied",
    [("pointer_sentinel", False), ("softmax", True)]
    # JAX compiles for each.
    + ([("pointer_sentinel", True), ("softmax", False)] if TENSORFLOW else []),
)
def test_carry_makes_chunks_and_steps_equal_the_whole(head, tied):
    model = make(head=head, tie_weights=tied, embedding_size=5 if tied else 3)
    # Chunks shorter and longer than the window, of few lengths: JAX compiles for each.
    words = np.random.default_rng(1).integers(1, V, size=(2, 9))
    whole = numpy(model(words)[0])
    carry, parts = None, []
    for begin, end in ((0, 3), (3, 9)):
        part, carry = model(words[:, begin:end], carry)
        parts.append(numpy(part))
    np.testing.assert_allclose(np.concatenate(parts, axis=1), whole, rtol=0, atol=1e-5)
    # The carry after fewer steps than were read, another number in each row; 0 is where it began.
    _, carry = model(words[:, :6], lengths=keras.ops.convert_to_tensor([5, 0]))
    following = np.stack([words[0, 5:8], words[1, :3]])
    rest = numpy(model(following, carry)[0])
    np.testing.assert_allclose(rest[0], whole[0, 5:8], rtol=0, atol=1e-5)
    np.testing.assert_allclose(rest[1], whole[1, :3], rtol=0, atol=1e-5)
    _, carry = model(words[:, :6], lengths=3)
    np.testing.assert_allclose(
        numpy(model(words[:, 3:6], carry)[0]), whole[:, 3:6], rtol=0, atol=1e-5
    )
    carry = model.initial_carry(2)
    for t in range(9):
        log_probs, copies, carry = model.step(keras.ops.convert_to_tensor(words[:, t]), carry)
        np.testing.assert_allclose(numpy(log_probs), whole[:, t], rtol=0, atol=1e-5)
        assert tuple(copies.shape) == (2, 4)


def test_a_step_tells_which_position_a_word_came_from():
    model = make()
    words = np.array([[3, 5, 5, 7, 8]])
    _, carry = model(words[:, :-1])
    log_probs, copies, carry = model.step(keras.ops.convert_to_tensor(words[:, -1]), carry)
    _, pointed = sentinel_oracle.language_model(
        words[0], words[0], oracle_weights(model), 4, 0.1, 0.3, V
    )
    # The window of 4 ends with the word just read: its positions are 1 to 4 of the text.
    np.testing.assert_allclose(
        np.exp(numpy(copies))[0], [pointed[-1][t] for t in (1, 2, 3, 4)], atol=1e-5
    )
    np.testing.assert_array_equal(numpy(carry["window"]["words"]), [[5, 5, 7, 8]])
    chosen = keras.ops.convert_to_tensor([5])
    _, probability = numpy(provenance(chosen, log_probs[:, 5], copies, carry["window"]["words"]))
    expected = (pointed[-1][1] + pointed[-1][2]) / np.exp(numpy(log_probs))[0, 5]
    np.testing.assert_allclose(probability, expected, atol=1e-4)


def test_padding_at_the_end_changes_nothing_before_it():
    model = make()
    words = np.random.default_rng(1).integers(1, V, size=(1, 6))
    padded = np.concatenate([words, np.zeros((1, 3), int)], axis=1)
    np.testing.assert_allclose(
        numpy(model(padded)[0])[:, :6], numpy(model(words)[0]), rtol=0, atol=1e-6
    )


def test_dropout_is_random_in_training_alone():
    model = make(
        dropout=0.5, zoneout_hidden=0.0, zoneout_cell=0.0, head="softmax", recurrent_layers=1
    )
    words = np.full((1, 6), 4)
    first, second = (numpy(model(words, training=True)[0]) for _ in range(2))
    assert (first != second).any()
    np.testing.assert_array_equal(numpy(model(words)[0]), numpy(model(words)[0]))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"head": "softmax"},
        {"tie_weights": True, "embedding_size": 5},
    ],
)
def test_saved_and_loaded(tmp_path, options):
    model = make(name="mine", **options)
    words = np.random.default_rng(1).integers(1, V, size=(2, 6))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.get_config() == model.get_config()
    np.testing.assert_array_equal(numpy(loaded(words)[0]), numpy(model(words)[0]))
    if "tie_weights" in options:
        assert not any(tuple(weight.shape) == (5, V) for weight in loaded.weights)


def test_medium_model_has_the_papers_size():
    pointer, plain = LanguageModel(10000), LanguageModel(10000, head="softmax")
    # Section 2.7: H^2 + 2 H more. Table 2 says 21 and 20 million.
    assert pointer.count_params() - plain.count_params() == 650**2 + 2 * 650
    assert round(plain.count_params() / 1e6) == 20


def test_bfloat16_has_no_nan():
    model = make(scale=10.0, dtype="mixed_bfloat16")
    words = np.random.default_rng(1).integers(1, V, size=(2, 6))
    log_probs, carry = model(words)
    np.testing.assert_allclose(np.exp(numpy(log_probs)).sum(-1), 1, atol=1e-5)
    assert keras.backend.standardize_dtype(carry["states"][0][1].dtype) == "bfloat16"
    value, gradients = value_and_gradients(
        lambda: keras.ops.mean(keras.ops.maximum(model(words, carry, targets=words)[0], -100.0)),
        [],
        model,
    )
    assert np.isfinite(value) and all(
        np.isfinite(np.asarray(gradient, "float32")).all() for gradient in gradients
    )


def test_errors():
    with pytest.raises(
        ValueError, match="head must be one of softmax, pointer_sentinel; got 'copynet'"
    ):
        LanguageModel(V, head="copynet")
    with pytest.raises(ValueError, match="to be equal; got 650 and 5"):
        LanguageModel(V, hidden_size=5, tie_weights=True)
