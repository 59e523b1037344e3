"""Small recurrent models, their inputs and their weights as the oracle takes them."""

import numpy as np
from keras import ops

from keras_models.models import RecurrentSeq2Seq
from tests.keras_models.backends import numpy, randomize, shared_by_config

SOURCE_V, V, EMBEDDING, HIDDEN = 9, 8, 3, 4

# Ids and extended ids of an empty source, one of a single token, and one that is all unknown.
EDGES = [([0, 0, 0], [0, 0, 0]), ([5, 0, 0], [V, 0, 0]), ([6, 7, 6], [V, V + 1, V])]


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


def edges():
    """Pairs of the sources of `EDGES`, with a copy among the labels, and an ordinary one."""
    inputs = example(batch=len(EDGES) + 1, source_length=3)
    for row, (ids, extended) in enumerate(EDGES):
        inputs["source_ids"][row], inputs["source_extended_ids"][row] = ids, extended
        inputs["target_extended_ids"][row] = [V, 4, V, 3]
    return inputs


def tensors(inputs):
    return {name: ops.convert_to_tensor(value) for name, value in inputs.items()}


def softmax_weights(vocabulary):
    """Kernel `[hidden_size, V]` and bias of a softmax, of its embedding where it is tied."""
    if vocabulary.embedding is None:
        return numpy(vocabulary.kernel.value), numpy(vocabulary.bias.value)
    kernel = numpy(vocabulary.embedding.embeddings.value).T
    if vocabulary.projection is not None:
        kernel = numpy(vocabulary.projection.value).astype("float64") @ kernel
    return kernel, numpy(vocabulary.bias.value)


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
        weights["vocabulary"] = softmax_weights(model.head.vocabulary)
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
    """Decodes along the labels with `step`, as one program on JAX.

    Returns what each step returns, the distributions `[target_length, batch, V + source_length]`
    first.
    """

    def run(model, inputs):
        memory, carry = model.encode(inputs)
        tokens, steps = ops.full_like(inputs["target_extended_ids"][:, 0], 2), []
        for t in range(inputs["target_extended_ids"].shape[1]):
            *step, carry = model.step(tokens, carry, memory)
            steps.append(step)
            tokens = inputs["target_extended_ids"][:, t]
        return steps

    steps = numpy(shared_by_config(model, run, tensors(inputs), key="forced_steps"))
    return [np.stack(parts) for parts in zip(*steps)]


def log_probs_and_losses(model, inputs):
    """Returns the model's log-probabilities and its added losses, as one program on JAX."""

    def run(model, inputs):
        log_prob = model(inputs)
        return log_prob, list(model.losses)

    log_prob, losses = numpy(shared_by_config(model, run, tensors(inputs), key="losses"))
    return log_prob, [float(loss) for loss in losses]
