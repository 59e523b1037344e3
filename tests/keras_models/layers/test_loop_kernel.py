import keras
import numpy as np
import pytest

from keras_models.layers.loop_kernel import LoopKernel, multiply
from keras_models.layers.recurrent import GRU, LSTM, FeedbackCell
from keras_models.models.recurrent_seq2seq import RecurrentSeq2Seq
from tests.keras_models.backends import numpy, randomize, value_and_gradients


class Kernel(keras.layers.Layer):
    """One matrix."""

    def build(self):
        self.kernel = self.add_weight(shape=(3, 2), name="kernel")


def test_gradients_of_a_loop_are_those_of_the_equations():
    """h_t = h_{t-1} K P with a fixed P `[2, 3]`, whose gradients are known in closed form."""
    layer = Kernel()
    layer.build()
    randomize(layer)
    rng = np.random.default_rng(0)
    first, back, weights = (
        rng.normal(size=size).astype("float32") for size in ((4, 3), (2, 3), (4, 3))
    )

    def loss(first):
        kernel = LoopKernel(layer.kernel, "float32")

        def step(state, _):
            state = keras.ops.matmul(kernel.multiply(state), back)
            return state, state

        last, _ = keras.ops.scan(step, first, keras.ops.zeros((5, 1)))
        return keras.ops.sum(last * weights)

    _, (of_first, of_kernel) = value_and_gradients(loss, [first], layer)
    kernel, back = numpy(layer.kernel.value).astype("float64"), back.astype("float64")
    states = [first.astype("float64")]
    for _ in range(4):
        states.append(states[-1] @ kernel @ back)
    upstream, expected = weights.astype("float64"), np.zeros((3, 2))
    for state in reversed(states):
        expected += state.T @ (upstream @ back.T)
        upstream = upstream @ back.T @ kernel.T
    np.testing.assert_allclose(of_kernel, expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(of_first, upstream, rtol=1e-4, atol=1e-4)


def test_multiplies_plain_kernels_too():
    rows, kernel = np.ones((2, 3), "float32"), np.arange(6, dtype="float32").reshape(3, 2)
    for one in (kernel, LoopKernel(kernel, "float32")):
        np.testing.assert_allclose(numpy(multiply(rows, one)), rows @ kernel)


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_products_are_of_the_layer_s_own_type(cell):
    """Its float32 variables would make a loop's state float32, which began in bfloat16."""
    layer = FeedbackCell(3, cell, dtype="mixed_bfloat16")
    layer.build(4, 5)
    kernels = layer.loop_kernels()
    for name, size in (("recurrent", 3), ("feedback", 5)):
        product = kernels[name].multiply(keras.ops.ones((2, size), dtype="bfloat16"))
        assert keras.backend.standardize_dtype(product.dtype) == "bfloat16"


def assert_same(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(keras.tree.flatten(found), keras.tree.flatten(expected)):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("feedback", [True, False])
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_a_cell_has_the_same_gradients_with_them(cell, feedback):
    layer = FeedbackCell(3, cell, feedback=feedback)
    layer.build(4, 5)
    randomize(layer)
    rng = np.random.default_rng(1)
    states = [rng.normal(size=(2, 3)) for _ in range(1 if cell == "gru" else 2)]
    inputs = [rng.normal(size=(2, 4)), rng.normal(size=(2, 5)), *states]

    def loss(with_kernels):
        def value(x, fed, *states):
            kernels = layer.loop_kernels() if with_kernels else None
            outputs = layer(
                layer.project(x), list(states), fed if feedback else None, kernels=kernels
            )
            return sum(keras.ops.sum(output**2) for output in outputs)

        return value

    assert_same(*(value_and_gradients(loss(one), inputs, layer) for one in (True, False)))


@pytest.mark.parametrize("kind", [GRU, LSTM])
def test_an_encoder_has_the_same_gradients_in_training(kind):
    layer = kind(3, return_sequences=True)
    layer.build((None, None, 4))
    randomize(layer)
    inputs = np.random.default_rng(2).normal(size=(3, 5, 4))
    mask = np.arange(5) < np.array([5, 2, 0])[:, np.newaxis]

    def loss(training):
        return lambda values: keras.ops.sum(layer(values, mask=mask, training=training) ** 2)

    assert_same(*(value_and_gradients(loss(one), [inputs], layer) for one in (True, False)))
    assert layer.cell._loop_kernel is None


@pytest.mark.parametrize(
    "options",
    [{}, {"cell": "lstm", "attention": "bilinear"}, {"attention": "none", "head": "softmax"}],
    ids=str,
)
def test_a_model_has_the_same_gradients_in_training(options):
    """Without dropout a training's call and another differ by these products alone."""
    sizes = dict(
        source_vocabulary_size=20,
        target_vocabulary_size=10,
        hidden_size=8,
        embedding_size=4,
        dropout=0.0,
    )
    model = RecurrentSeq2Seq(**{**sizes, "coverage": False, **options})
    ids = np.array([[4, 5, 6], [7, 8, 0]])
    inputs = {
        "source_ids": ids,
        "source_extended_ids": np.where(ids, ids % 10, 0),
        "target_input_ids": np.array([[2, 7, 5], [2, 4, 0]]),
        "target_extended_ids": np.array([[7, 5, 3], [4, 3, 0]]),
    }
    model(inputs)

    def loss(training):
        return lambda: keras.ops.sum(model(inputs, training=training) ** 2)

    assert_same(*(value_and_gradients(loss(one), [], model) for one in (True, False)))
