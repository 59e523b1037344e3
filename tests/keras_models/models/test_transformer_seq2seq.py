import keras
import numpy as np
import pytest
from keras import ops

from keras_models import losses
from keras_models.decoding import decode
from keras_models.models import TransformerSeq2Seq
from tests.keras_models import oracles, transformer_oracle
from tests.keras_models.backends import (
    TENSORFLOW,
    compiled,
    numpy,
    outputs,
    randomize,
    shared_by_config,
    traced_shapes,
    value_and_gradients,
)
from tests.keras_models.decoding.fakes import decoded
from tests.keras_models.decoding.test_beam import assert_same
from tests.keras_models.models.recurrent_cases import (
    SOURCE_V,
    V,
    edges,
    example,
    log_probs_and_losses,
    softmax_weights,
    tensors,
)

HIDDEN = 8
LENGTH = 5


def make(head="pointer_generator", seed=0, scale=0.5, **options):
    options = {
        "embedding_size": HIDDEN,
        "hidden_size": HIDDEN,
        "attention_heads": 2,
        "feed_forward_size": 6,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "dropout": 0.0,
        **options,
    }
    model = TransformerSeq2Seq(SOURCE_V, V, head=head, **options)
    randomize(model, seed, scale)
    return model


def sources(inputs):
    return {name: value for name, value in tensors(inputs).items() if name.startswith("source")}


def weights_of(model):
    """The weights by the names that `transformer_oracle` uses."""

    def dense(layer):
        return numpy(layer.kernel.value), numpy(layer.bias.value)

    def norm(layer):
        return None if layer is None else (numpy(layer.gamma.value), numpy(layer.beta.value))

    def kernel(layer):
        return None if layer is None else numpy(layer.kernel.value)

    def attention(layer):
        return {weight.name: numpy(weight.value) for weight in layer.trainable_weights}

    def layers(stack):
        return [
            {
                **{name: norm(getattr(layer, name)) for name in ("self_norm", "feed_forward_norm")},
                **{name: dense(getattr(layer, name)) for name in ("inner", "outer")},
                "self_attention": attention(layer.self_attention),
                **(
                    {
                        "source_norm": norm(layer.source_norm),
                        "source_attention": attention(layer.source_attention),
                    }
                    if hasattr(layer, "source_norm")
                    else {}
                ),
            }
            for layer in stack
        ]

    weights = {
        "source_embedding": numpy(model.source_embedding.embeddings.value),
        "target_embedding": numpy(model.target_embedding.embeddings.value),
        "features": {
            name: numpy(layer.embeddings.value) for name, layer in model.feature_embeddings.items()
        },
        "source_projection": kernel(model.source_projection),
        "target_projection": kernel(model.target_projection),
        "encoder": layers(model.encoder),
        "decoder": layers(model.decoder),
        **{
            name: norm(getattr(model, name))
            for name in ("encoder_norm", "query_norm", "output_norm")
        },
        "attention": attention(model.attention),
        "readout": kernel(model.readout),
        "vocabulary": softmax_weights(model.head.vocabulary),
    }
    if hasattr(model.head, "gate"):
        kernel, bias = dense(model.head.gate)
        size = model.hidden_size
        weights["gate"] = (
            kernel[:size, 0],
            kernel[size : 2 * size, 0],
            kernel[2 * size :, 0],
            bias[0],
        )
    return weights


def forced_steps(model, inputs):
    """Decodes along the labels with `step`, as one program on JAX.

    Returns what each step returns, the distributions `[target_length, batch, V + source_length]`
    first.
    """

    def run(model, inputs):
        length = inputs["target_extended_ids"].shape[1]
        memory, carry = model.encode(inputs, max_length=length)
        tokens, steps = ops.full_like(inputs["target_extended_ids"][:, 0], 2), []
        for t in range(length):
            *step, carry = model.step(tokens, carry, memory, t)
            steps.append(step)
            tokens = inputs["target_extended_ids"][:, t]
        return steps

    steps = numpy(shared_by_config(model, run, tensors(inputs), key="forced_steps"))
    return [np.stack(parts) for parts in zip(*steps)]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"head": "softmax", "attention_heads": 4, "decoder_layers": 1},
        {"norm_first": False},
        {"embedding_size": 5, "coverage_loss_weight": 0.7},
        {
            "encoder_layers": 0,
            "source_features": {"source_tags": 4, "source_case": 3},
            "feature_size": 2,
        },
    ],
)
def test_agrees_with_the_equations_in_training_decoding_and_from_a_file(options, tmp_path):
    model, inputs = make(**options), example()
    for name, size in options.get("source_features", {}).items():
        tags = np.random.default_rng(len(name)).integers(1, size, inputs["source_ids"].shape)
        inputs[name] = np.where(inputs["source_ids"] != 0, tags, 0).astype("int32")
    real = inputs["target_extended_ids"] != 0
    log_prob, penalty = log_probs_and_losses(model, inputs)
    assert log_prob.dtype == np.float32
    log_probs, copies, attentions = forced_steps(model, inputs)
    np.testing.assert_allclose(np.exp(log_probs).sum(-1), 1, atol=1e-5)
    weights, head = weights_of(model), options.get("head", "pointer_generator")
    total = count = 0
    for b in range(len(real)):
        pair = {name: value[b] for name, value in inputs.items()}
        expected, distributions, attended = transformer_oracle.seq2seq(
            pair, weights, V, options.get("attention_heads", 2), head
        )
        np.testing.assert_allclose(log_prob[b][real[b]], expected[real[b]], rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(
            np.exp(log_probs[:, b][real[b]]), distributions[real[b]], rtol=0, atol=1e-5
        )
        np.testing.assert_allclose(attentions[:, b][real[b]], attended[real[b]], rtol=0, atol=1e-5)
        padding = inputs["source_ids"][b] == 0
        assert (attentions[:, b, padding] == 0).all() and (np.exp(copies[:, b, padding]) == 0).all()
        np.testing.assert_allclose(attentions[:, b].sum(-1), 1, atol=1e-5)
        # A step gives what training computes in parallel.
        labels = np.where(
            (head == "softmax") & (pair["target_extended_ids"] >= V), 1, pair["target_extended_ids"]
        )
        stepwise = [log_probs[t, b, labels[t]] for t in np.flatnonzero(real[b])]
        np.testing.assert_allclose(stepwise, log_prob[b][real[b]], rtol=1e-5, atol=1e-5)
        part = oracles.coverage_loss(attended, real[b])
        total, count = total + part[0], count + part[1]
    weight = options.get("coverage_loss_weight", 0.0)
    np.testing.assert_allclose(penalty, [weight * total / count] if weight else [], rtol=1e-5)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.get_config() == model.get_config()
    np.testing.assert_array_equal(log_probs_and_losses(loaded, inputs)[0], log_prob)


def test_padding_changes_nothing():
    model = make(coverage_loss_weight=1.0)
    short, penalty = log_probs_and_losses(model, example())
    long, long_penalty = log_probs_and_losses(model, example(more_source=3, more_target=2))
    real = example()["target_extended_ids"] != 0
    np.testing.assert_allclose(long[:, : short.shape[1]][real], short[real], rtol=0, atol=1e-5)
    np.testing.assert_allclose(long_penalty, penalty, atol=1e-5)
    options = dict(max_length=LENGTH, return_attention=True)
    found = decoded(model, sources(example()), **options)
    padded = decoded(model, sources(example(more_source=3)), **options)
    assert_same(found, padded._replace(attention=padded.attention[..., :5]), tolerance=1e-5)


@pytest.mark.slow
def test_training_reduces_the_loss():
    dtype = "mixed_bfloat16"
    keras.utils.set_random_seed(0)
    model = TransformerSeq2Seq(
        SOURCE_V,
        V,
        embedding_size=16,
        hidden_size=16,
        feed_forward_size=32,
        encoder_layers=1,
        decoder_layers=1,
        coverage_loss_weight=0.1,
        dtype=dtype,
    )
    inputs = example(batch=32)
    model.compile(
        keras.optimizers.Adam(0.01), loss=losses.negative_log_likelihood, jit_compile=not TENSORFLOW
    )
    history = model.fit(
        inputs, inputs["target_extended_ids"], epochs=12, batch_size=16, verbose=0
    ).history["loss"]
    assert np.isfinite(history).all() and history[-1] < 0.75 * history[0]
    memory, carry = model.encode(tensors(inputs), max_length=LENGTH)
    *step, new = model.step(ops.full((32,), 2, dtype="int32"), carry, memory, 0)
    assert [keras.backend.standardize_dtype(x.dtype) for x in step] == ["float32"] * 3

    # A loop carries it: each part keeps its shape and type.
    def describe(x):
        return tuple(x.shape), keras.backend.standardize_dtype(x.dtype)

    assert keras.tree.map_structure(describe, new) == keras.tree.map_structure(describe, carry)
    assert carry["keys_0"].shape[2] == LENGTH + 1
    assert describe(carry["keys_0"])[1] == "bfloat16"
    np.testing.assert_allclose(np.exp(numpy(step[0])).sum(-1), 1, atol=1e-5)
    found = decoded(model, sources(inputs), max_length=LENGTH, beam_size=2)
    assert np.isfinite(found.scores).all() and (found.scores > -1e8).all()


@pytest.mark.parametrize("head", ["pointer_generator", "span_copy"])
@pytest.mark.parametrize("compact", [False, True])
def test_hypotheses_that_share_caches_are_those_that_have_their_own(head, compact):
    inputs = sources(example(batch=7, source_length=6))
    options = {"max_length": 9, "beam_size": 4, "n_best": 4, "compact": compact}
    sharing, moving = make(head, scale=2.0), make(head, scale=2.0)
    moving.share = lambda memory, carry, hypotheses: (memory, carry)
    found = decoded(sharing, inputs, **options)
    # Outputs that go on and change places, or nothing is shown.
    assert found.lengths.max() > 3
    assert_same(found, decoded(moving, inputs, **options))


@pytest.mark.parametrize(
    "dtype", ["float32", "mixed_bfloat16"] if TENSORFLOW else ["mixed_bfloat16"]
)
def test_no_nan_at_the_edges(dtype):
    model, inputs = make(dtype=dtype), edges()

    def loss():
        log_prob = model(tensors(inputs))
        return losses.negative_log_likelihood(
            inputs["target_extended_ids"], ops.maximum(log_prob, -1e5)
        )

    value, gradients = value_and_gradients(loss, [], model)
    assert np.isfinite(value) and all(np.isfinite(gradient).all() for gradient in gradients)
    assert any(np.abs(gradient).sum() > 0 for gradient in gradients)
    log_probs, _, attention = forced_steps(model, inputs)
    assert np.isfinite(log_probs).all()
    np.testing.assert_allclose(np.exp(log_probs).sum(-1), 1, atol=1e-5)
    # The first source is empty.
    assert (attention[:, 0] == 0).all()


def test_training_builds_no_extended_distribution():
    model, inputs = make(), example(source_length=13)
    wide = V + 13

    def loss(*values):
        return -ops.sum(model(dict(zip(inputs, values))))

    shapes = traced_shapes(loss, model, *inputs.values())
    assert (3, 4, V) in shapes
    assert not any(wide in shape or 3 * wide in shape for shape in shapes)


OPTIONS = dict(max_length=LENGTH, coverage_beta=0.2, return_attention=True)


@pytest.mark.parametrize("beam", [1, 3])
def test_log_probabilities_are_those_of_training(beam):
    model, inputs = make(), example()
    options = dict(OPTIONS, beam_size=beam, n_best=beam, min_length=1)
    found = decoded(model, sources(inputs), **options)
    assert (found.tokens >= V).any()
    labels, feeds = np.zeros((2, 3, beam, LENGTH + 1), "int32")
    for b, k in np.ndindex(3, beam):
        tokens = found.tokens[b, k, : found.lengths[b, k]]
        labels[b, k, : len(tokens) + 1] = [*tokens, 3]
        fed = [int(inputs["source_feed_ids"][b, t - V]) if t >= V else int(t) for t in tokens]
        feeds[b, k, : len(tokens) + 1] = [2, *fed]
    # The hypotheses of a source side by side.
    pairs = {name: np.repeat(value, beam, axis=0) for name, value in inputs.items()}
    pairs |= {
        "target_input_ids": feeds.reshape(-1, LENGTH + 1),
        "target_extended_ids": labels.reshape(-1, LENGTH + 1),
    }
    log_prob = outputs(model, tensors(pairs)).reshape(labels.shape)
    np.testing.assert_allclose(
        np.where(labels, log_prob, 0).sum(-1), found.log_probs, rtol=1e-5, atol=1e-5
    )


@pytest.mark.skipif(TENSORFLOW, reason="The next test compiles the same for all sizes")
def test_compiled_equals_uncompiled():
    model, inputs = make(encoder_layers=1), sources(example())
    options = dict(OPTIONS, beam_size=2, n_best=2, min_length=1)
    fast = numpy(compiled(lambda arrays: decode(model, arrays, **options))(inputs))
    assert_same(numpy(decode(model, inputs, **options)), fast, tolerance=1e-5)


@pytest.mark.skipif(not TENSORFLOW, reason="JAX compiles for known sizes only")
def test_one_trace_with_symbolic_sizes_serves_all_sizes():
    """As an exported model does, whose longest output depends on the source's length.

    XLA asks more of sizes than TensorFlow.
    """
    import tensorflow as tf

    model = make(encoder_layers=1)
    options = dict(OPTIONS, beam_size=3, n_best=3)
    names = list(sources(example()))

    def run(*arrays):
        return decode(
            model, dict(zip(names, arrays)), **{**options, "max_length": tf.shape(arrays[0])[1] + 1}
        )

    served = tf.function(
        run,
        input_signature=[tf.TensorSpec([None, None], tf.int32)] * len(names),
        jit_compile=True,
        autograph=False,
    )
    for batch, source_length in ((3, 5), (1, 2)):
        inputs = sources(example(batch=batch, source_length=source_length))
        found = numpy(decode(model, inputs, **{**options, "max_length": source_length + 1}))
        assert_same(found, numpy(served(*inputs.values())), tolerance=1e-5)
    assert served.experimental_get_tracing_count() == 1


def test_options_that_cannot_be():
    with pytest.raises(ValueError, match="divisible by attention_heads; got 8 and 3"):
        make(attention_heads=3)
    with pytest.raises(ValueError, match="must be even"):
        make(hidden_size=9, attention_heads=3)
    with pytest.raises(ValueError, match="selective_read is for the recurrent body"):
        make(head="joint_copy", selective_read=True)
    model = make()
    memory, carry = model.encode(tensors(example()))
    with pytest.raises(ValueError, match=r"a carry of encode\(\.\.\., max_length=\.\.\.\)"):
        model.step(ops.full((3,), 2, dtype="int32"), carry, memory, 0)
