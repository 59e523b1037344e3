import itertools

import keras
import numpy as np
import pytest
from keras import ops

from keras_models import losses
from keras_models.models import RecurrentSeq2Seq
from tests.keras_models import head_oracles, oracles
from tests.keras_models.backends import (
    TENSORFLOW,
    numpy,
    randomize,
    traced_shapes,
    value_and_gradients,
)
from tests.keras_models.layers.head_cases import CASES

SOURCE_V, V, EMBEDDING, HIDDEN = 9, 8, 3, 4
CONFIGURATIONS = list(
    itertools.product(
        ("gru", "lstm"),
        ("additive", "dot", "bilinear"),
        ("softmax", "pointer_generator"),
        (True, False),
    )
)
if not TENSORFLOW:
    # Each pair of two options' values: JAX compiles each model's loops anew.
    CONFIGURATIONS = [
        c for i, c in enumerate(CONFIGURATIONS) if i in (0, 3, 6, 9, 13, 14, 17, 18, 20, 23)
    ]


def make(
    cell="gru",
    attention="additive",
    head="pointer_generator",
    input_feeding=True,
    seed=0,
    **options,
):
    options = {"embedding_size": EMBEDDING, "hidden_size": HIDDEN, "dropout": 0.0, **options}
    model = RecurrentSeq2Seq(
        SOURCE_V,
        V,
        head=head,
        cell=cell,
        attention=attention,
        input_feeding=input_feeding,
        **options,
    )
    randomize(model, seed)
    return model


def example(seed=0, batch=3, source_length=5, target_length=4, more_source=0, more_target=0):
    """Pairs of different lengths, with repeated source tokens, some copied."""
    rng = np.random.default_rng(seed)
    source = rng.integers(4, SOURCE_V, size=(batch, source_length))
    first = np.argmax(source[:, :, None] == source[:, None, :], axis=-1)
    extended = np.where(source < 6, source, V + first)
    feed = np.where(source < 6, source, source - 2)  # what a copy feeds
    source_lengths = np.concatenate(
        [[source_length], rng.integers(1, source_length + 1, size=batch - 1)]
    )
    target_lengths = np.concatenate(
        [[target_length], rng.integers(1, target_length + 1, size=batch - 1)]
    )
    real_source = np.arange(source_length) < source_lengths[:, None]
    real_target = np.arange(target_length) < target_lengths[:, None]
    labels = np.zeros((batch, target_length), "int64")
    inputs = np.zeros_like(labels)
    for b in range(batch):
        previous = 2
        for t in range(target_lengths[b]):
            inputs[b, t] = previous
            j = rng.integers(0, source_lengths[b])
            copied = rng.random() < 0.8
            labels[b, t] = extended[b, j] if copied else rng.integers(4, V)
            previous = feed[b, labels[b, t] - V] if labels[b, t] >= V else labels[b, t]
        labels[b, target_lengths[b] - 1] = 3
    arrays = {
        "source_ids": np.where(real_source, source, 0),
        "source_extended_ids": np.where(real_source, extended, 0),
        "source_feed_ids": np.where(real_source, feed, 0),
        "target_input_ids": np.where(real_target, inputs, 0),
        "target_extended_ids": np.where(real_target, labels, 0),
    }
    more = {"source": more_source, "target": more_target}
    return {
        name: np.pad(value, [[0, 0], [0, more[name.split("_")[0]]]]).astype("int32")
        for name, value in arrays.items()
    }


def tensors(inputs):
    return {name: ops.convert_to_tensor(value) for name, value in inputs.items()}


def weights_of(model):
    """The weights by the names that `oracles.seq2seq` uses; nothing but weights is read."""

    def cell(layer):
        return {
            name: numpy(getattr(layer, name).value)
            for name in ("kernel", "recurrent_kernel", "bias")
        }

    def dense(layer):
        return numpy(layer.kernel.value), numpy(layer.bias.value)

    # The fed-back output is one more input: its kernel goes below the embedding's.
    kernels = [model.cell.kernel, *([model.cell.feedback_kernel] if model.cell.feedback else [])]
    biases = [numpy(bias.value) for bias in model.cell.trainable_weights if "bias" in bias.name]
    decoder_cell = {
        "kernel": np.concatenate([numpy(kernel.value) for kernel in kernels]),
        "recurrent_kernel": numpy(model.cell.recurrent_kernel.value),
        "bias": np.stack(biases) if len(biases) == 2 else biases[0],
    }
    weights = {
        "source_embedding": numpy(model.source_embedding.embeddings.value),
        "target_embedding": numpy(model.target_embedding.embeddings.value),
        "encoder": [
            {"forward": cell(layer.forward_layer.cell), "backward": cell(layer.backward_layer.cell)}
            for layer in model.encoder
        ],
        "bridges": [dense(bridge) for bridge in model.bridges],
        "decoder_cell": decoder_cell,
        "readout": numpy(model.readout.kernel.value),
    }
    if model.attention is not None:
        weights["attention"] = {
            weight.name: numpy(weight.value) for weight in model.attention.trainable_weights
        }
    if getattr(model.head, "vocabulary", None) is not None:  # a pointer network has none
        weights["vocabulary"] = dense(model.head.vocabulary)
    if hasattr(model.head, "gate"):
        kernel, bias = dense(model.head.gate)
        # context, state, inputs
        weights["gate"] = (
            kernel[:HIDDEN, 0],
            kernel[HIDDEN : 2 * HIDDEN, 0],
            kernel[2 * HIDDEN :, 0],
            bias[0],
        )
    return weights


def forced_steps(model, inputs):
    """Decodes along the labels with `step`:
    the distributions `[target_length, batch, V + source_length]`.
    """
    memory, carry = model.encode(tensors(inputs))
    tokens, steps = np.full(len(inputs["source_ids"]), 2), []
    for t in range(inputs["target_extended_ids"].shape[1]):
        log_probs, copies, attention, carry = model.step(
            ops.convert_to_tensor(tokens, dtype="int32"), carry, memory
        )
        steps.append(numpy((log_probs, copies, attention)))
        tokens = inputs["target_extended_ids"][:, t]
    return [np.stack(parts) for parts in zip(*steps)]


@pytest.mark.parametrize("cell,attention,head,input_feeding", CONFIGURATIONS)
def test_agrees_with_the_equations_in_training_decoding_and_from_a_file(
    cell, attention, head, input_feeding, tmp_path
):
    coverage = (cell == "gru") == input_feeding
    layers = 2 if attention == "dot" else 1
    model = make(
        cell,
        attention,
        head,
        input_feeding,
        coverage=coverage,
        encoder_layers=layers,
        coverage_loss_weight=0.7,
    )
    inputs = example()
    real = inputs["target_extended_ids"] != 0
    log_prob = numpy(model(tensors(inputs)))
    penalty = [float(loss) for loss in model.losses]
    assert log_prob.dtype == np.float32
    log_probs, copies, attentions = forced_steps(model, inputs)
    np.testing.assert_allclose(np.exp(log_probs).sum(-1), 1, atol=1e-5)
    weights = weights_of(model)
    total = count = 0
    for b in range(len(real)):
        pair = {name: value[b] for name, value in inputs.items()}
        expected, distributions, attended = oracles.seq2seq(
            pair, weights, V, cell, attention, head, input_feeding, coverage
        )
        np.testing.assert_allclose(log_prob[b][real[b]], expected[real[b]], rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(
            np.exp(log_probs[:, b][real[b]]), distributions[real[b]], rtol=0, atol=1e-5
        )
        np.testing.assert_allclose(attentions[:, b][real[b]], attended[real[b]], rtol=0, atol=1e-5)
        padding = inputs["source_ids"][b] == 0
        assert (attentions[:, b, padding] == 0).all() and (np.exp(copies[:, b, padding]) == 0).all()
        part = oracles.coverage_loss(attended, real[b])
        total, count = total + part[0], count + part[1]
        # Decoding along the labels gives what training gave.
        labels = np.where(
            (head == "softmax") & (pair["target_extended_ids"] >= V), 1, pair["target_extended_ids"]
        )
        forced = sum(log_probs[t, b, labels[t]] for t in np.flatnonzero(real[b]))
        np.testing.assert_allclose(forced, log_prob[b][real[b]].sum(), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(penalty, [0.7 * total / count] if coverage else [], rtol=1e-5)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.get_config() == model.get_config()
    np.testing.assert_array_equal(numpy(loaded(tensors(inputs))), log_prob)


def head_oracle(model, pair):
    """The head alone, for `oracles.seq2seq`."""
    case = next(case for case in CASES.values() if case.head_class is type(model.head))

    def distribution(hidden, state, memory, mask):
        arrays = {
            "hidden": hidden[None, None],
            "decoder_state": state[None, None],
            "memory_states": memory[None],
            "mask": np.array([mask]),
            "source_extended_ids": pair["source_extended_ids"][None],
        }
        p, copies = case.oracle(model.head, arrays, 0, 0)
        return p, copies

    return distribution


READS = [
    # head, cell, attention, input feeding, selective read
    ("joint_copy", "gru", "additive", True, True),
    ("joint_copy", "lstm", "none", False, True),
    ("joint_copy", "gru", "none", False, False),
    ("pointer_network", "gru", "none", True, False),
    ("softmax", "lstm", "none", True, False),
]


@pytest.mark.parametrize("head,cell,attention,input_feeding,selective_read", READS)
def test_selective_read_and_no_attention(
    head, cell, attention, input_feeding, selective_read, tmp_path
):
    """Selective read by the last step's copies (Gu et al. 2016), and a decoder that sees the source
    once.
    """
    model = make(cell, attention, head, input_feeding, selective_read=selective_read)
    inputs = example()
    real = inputs["target_extended_ids"] != 0
    if head != "joint_copy":
        # Labels that the head can output.
        label = 3 if head == "pointer_network" else 5
        inputs["target_extended_ids"] = np.where(real, label, 0).astype("int32")
        inputs["target_input_ids"] = np.where(real, [[2, label, label, label]], 0).astype("int32")
    log_prob = numpy(model(tensors(inputs)))
    assert model.losses == [] or attention != "none"
    log_probs, _, attentions = forced_steps(model, inputs)
    weights = weights_of(model)
    for b in range(len(real)):
        pair = {
            name: value[b][real[b]] if "target" in name else value[b]
            for name, value in inputs.items()
        }
        read = head_oracles.selective_read if selective_read else None
        expected, distributions, attended = oracles.seq2seq(
            pair,
            weights,
            V,
            cell,
            attention,
            head_oracle(model, pair),
            input_feeding,
            attention != "none",
            read,
        )
        np.testing.assert_allclose(log_prob[b][real[b]], expected, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(
            np.exp(log_probs[:, b][real[b]]), distributions, rtol=0, atol=1e-5
        )
        np.testing.assert_allclose(attentions[:, b][real[b]], attended, rtol=0, atol=1e-5)
    model.save(tmp_path / "model.keras")
    np.testing.assert_array_equal(
        numpy(keras.saving.load_model(tmp_path / "model.keras")(tensors(inputs))), log_prob
    )


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_padding_changes_nothing(cell):
    model = make(cell, encoder_layers=2)
    short = numpy(model(tensors(example())))
    penalty = [float(loss) for loss in model.losses]
    long = numpy(model(tensors(example(more_source=3, more_target=2))))
    real = example()["target_extended_ids"] != 0
    np.testing.assert_allclose(long[:, : short.shape[1]][real], short[real], rtol=0, atol=1e-5)
    assert len(penalty) == 1
    np.testing.assert_allclose([float(loss) for loss in model.losses], penalty, atol=1e-5)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"cell": "lstm", "head": "softmax", "attention": "dot", "coverage": False},
        {"large_vocabulary_size": 5, "large_vocabulary_drawn": 2},
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_training_reduces_the_loss(dtype, options):
    keras.utils.set_random_seed(0)
    options = {"embedding_size": 8, "hidden_size": 16, "dropout": 0.1, "dtype": dtype, **options}
    model = RecurrentSeq2Seq(SOURCE_V, V, **options)
    inputs = example(batch=32)
    model.compile(
        keras.optimizers.Adam(0.02), loss=losses.negative_log_likelihood, jit_compile=not TENSORFLOW
    )
    history = model.fit(
        inputs, inputs["target_extended_ids"], epochs=12, batch_size=16, verbose=0
    ).history["loss"]
    assert np.isfinite(history).all() and history[-1] < 0.75 * history[0]
    log_prob = model(tensors(inputs))
    assert keras.backend.standardize_dtype(log_prob.dtype) == "float32"
    memory, carry = model.encode(tensors(inputs))
    steps = model.step(ops.full((32,), 2, dtype="int32"), carry, memory)
    assert [keras.backend.standardize_dtype(x.dtype) for x in steps[:3]] == ["float32"] * 3
    # A loop carries it: each part keeps its shape and type.
    describe = lambda x: (tuple(x.shape), keras.backend.standardize_dtype(x.dtype))  # noqa: E731
    assert keras.tree.map_structure(describe, steps[3]) == keras.tree.map_structure(describe, carry)
    np.testing.assert_allclose(np.exp(numpy(steps[0])).sum(-1), 1, atol=1e-5)
    if dtype != "float32":
        assert describe(carry["hidden"])[1] == "bfloat16"


SOURCES = {
    "empty": ([0, 0, 0], [0, 0, 0]),
    "single token": ([5, 0, 0], [V, 0, 0]),
    "all unknown": ([6, 7, 6], [V, V + 1, V]),
}


@pytest.mark.parametrize("attention,gate", [("additive", 1e4), ("dot", -1e4)])
@pytest.mark.parametrize("source", SOURCES)
def test_no_nan_at_the_edges(source, attention, gate):
    model = make(attention=attention)
    model.head.gate.bias.assign([gate])
    inputs = example(batch=2, source_length=3)
    inputs["source_ids"][0], inputs["source_extended_ids"][0] = SOURCES[source]
    inputs["target_extended_ids"][0] = [V, 4, V, 3]

    def loss():
        log_prob = model(tensors(inputs))
        return losses.negative_log_likelihood(
            inputs["target_extended_ids"], ops.maximum(log_prob, -1e5)
        ) + sum(model.losses)

    value, gradients = value_and_gradients(loss, [], model)
    assert np.isfinite(value) and all(np.isfinite(gradient).all() for gradient in gradients)
    assert any(np.abs(gradient).sum() > 0 for gradient in gradients)
    log_probs, _, _ = forced_steps(model, inputs)
    assert np.isfinite(log_probs).all()
    np.testing.assert_allclose(np.exp(log_probs).sum(-1), 1, atol=1e-5)


def test_training_builds_no_extended_distribution():
    model = make()
    inputs = example(source_length=13)
    wide = V + 13

    def loss(*values):
        return -ops.sum(model(dict(zip(inputs, values))))

    shapes = traced_shapes(loss, model, *inputs.values())
    assert (3, 4, V) in shapes
    assert not any(wide in shape or 3 * wide in shape for shape in shapes)


def test_options_that_cannot_be():
    with pytest.raises(ValueError, match="cell must be one of gru, lstm; got 'rnn'"):
        make(cell="rnn")
    with pytest.raises(ValueError, match="hidden_size must be even"):
        make(hidden_size=5)
    with pytest.raises(ValueError, match="no head named"):
        make(head="none")
    with pytest.raises(
        ValueError,
        match="'pointer_generator' copies by attention; it needs an attention other than",
    ):
        make(attention="none")
    with pytest.raises(
        ValueError,
        match="selective_read needs a head with copy scores, 'joint_copy'; got 'softmax'",
    ):
        make(head="softmax", selective_read=True)
    with pytest.raises(
        ValueError, match="initial_range must be at least 0, and 0 for encoder 'cnn'"
    ):
        make(encoder="cnn", initial_range=0.1)
    with pytest.raises(ValueError, match="initial_range must be at least 0"):
        make(initial_range=-0.1)


@pytest.mark.parametrize(
    "cell,head", [("gru", "pointer_generator"), ("lstm", "span_copy"), ("gru", "lexicon_bias")]
)
def test_initial_range(cell, head):
    """Embeddings and kernels fill the range, biases are what they are without it."""

    def drawn(seed, initial_range):
        keras.utils.set_random_seed(seed)
        lexicon = {"lexicon_shape": (SOURCE_V, 2)} if head.startswith("lexicon") else {}
        sizes = {"embedding_size": 12, "hidden_size": 16}
        model = RecurrentSeq2Seq(
            30, 40, head=head, cell=cell, initial_range=initial_range, **sizes, **lexicon
        )
        # Names of layers count on from one model to the next.
        return [
            (variable.path.split("/")[-1], numpy(variable.value))
            for variable in model.trainable_variables
        ]

    without, found = drawn(1, 0.0), drawn(1, 0.1)
    assert {"embeddings", "kernel", "recurrent_kernel", "feedback_kernel"} <= {
        kind for kind, _ in found
    }
    wide = []
    for (kind, before), (_, value) in zip(without, found, strict=True):
        if value.ndim < 2 or kind == "bias":
            np.testing.assert_array_equal(value, before)
        else:
            assert np.abs(value).max() <= 0.1
            wide.append(value.ravel())
    # No two are the same numbers.
    assert len({tuple(value[:10]) for value in wide}) == len(wide)
    values = np.concatenate(wide)
    assert abs(values.mean()) < 0.005 and abs(values.std() - 0.1 / np.sqrt(3)) < 0.003
    # The seed decides them.
    assert all(
        np.array_equal(again, value)
        for (_, again), (_, value) in zip(drawn(1, 0.1), found, strict=True)
    )
    assert not np.array_equal(drawn(2, 0.1)[0][1], found[0][1])


def test_composed_words_are_within_the_initial_range_too():
    """Of composed words the vectors are scaled: as large as those that are looked up."""
    keras.utils.set_random_seed(1)
    composition = {
        "composition": "sum",
        "composition_options": {"word_length": 3, "characters": 20},
    }
    model = RecurrentSeq2Seq(
        30, 40, embedding_size=64, hidden_size=8, initial_range=0.1, **composition
    )
    characters = np.random.default_rng(0).integers(4, 20, size=(1, 300))
    words = numpy(
        model.embed_source({"source_ids": np.full((1, 100), 5), "source_characters": characters})
    )
    assert abs(words.std() - 0.1 / np.sqrt(3)) < 0.02


def test_a_saved_model_keeps_its_initial_range(tmp_path):
    model = make(initial_range=0.2)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert again.get_config()["initial_range"] == 0.2
    for one, other in zip(model.weights, again.weights):
        np.testing.assert_array_equal(numpy(one.value), numpy(other.value))
