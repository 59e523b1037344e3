"""The optimizer against Kingma and Ba 2014 in NumPy, and against Keras' own."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from pipeline.recipes.sections import TrainingConfig
from pipeline.training.optimizer import Adam, make_optimizer

#: Of `make_optimizer`, without clipping.
PLAIN = {"learning_rate": 0.01, "gradient_clip_norm": 0.0}
SHAPES = ((3, 4), (5,), ())
RATE, BETA_1, BETA_2, EPSILON = 0.01, 0.9, 0.999, 1e-7


def gradients(updates):
    generator = np.random.default_rng(0)
    return [
        [np.asarray(generator.standard_normal(shape), "float32") for shape in SHAPES]
        for _ in range(updates)
    ]


def first_weights():
    return [np.full(shape, 0.5, "float32") for shape in SHAPES]


def train(optimizer, given):
    """Returns the weights after the updates, and the optimizer's variables."""
    variables = [keras.Variable(value) for value in first_weights()]
    optimizer.build(variables)

    @tf.function
    def update(grads):
        optimizer.apply(grads)

    for grads in given:
        update([tf.constant(grad) for grad in grads])
    return [variable.numpy() for variable in variables], [
        variable.numpy() for variable in optimizer.variables
    ]


def oracle(given, clip_norm=None):
    """Adam in float64, with the order of the operations at the end of section 2:
    the rate takes both corrections.
    """
    weights = [value.astype("float64") for value in first_weights()]
    first, second = ([np.zeros_like(value) for value in weights] for _ in range(2))
    for step, grads in enumerate(given, 1):
        grads = [np.asarray(grad, "float64") for grad in grads]
        norm = np.sqrt(sum(np.sum(grad**2) for grad in grads))
        if clip_norm and norm > clip_norm:
            grads = [grad * clip_norm / norm for grad in grads]
        rate = RATE * np.sqrt(1 - BETA_2**step) / (1 - BETA_1**step)
        for number, grad in enumerate(grads):
            first[number] = BETA_1 * first[number] + (1 - BETA_1) * grad
            second[number] = BETA_2 * second[number] + (1 - BETA_2) * grad**2
            weights[number] = weights[number] - rate * first[number] / (
                np.sqrt(second[number]) + EPSILON
            )
    return weights


def check_equal(found, wanted):
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize("clip_norm", [None, 0.5, 100.0])
def test_agrees_with_the_paper(clip_norm):
    given = gradients(7)
    check_equal(train(Adam(RATE, clip_norm), given)[0], oracle(given, clip_norm))


@pytest.mark.parametrize("batches", [1, 3])
def test_leaves_behind_what_keras_does(batches):
    """Weights, moments and counters: checkpoints of one are the other's."""
    given = gradients(7)
    steps = batches if batches > 1 else None
    keras_own = keras.optimizers.Adam(RATE, global_clipnorm=0.5, gradient_accumulation_steps=steps)
    for found, wanted in zip(train(Adam(RATE, 0.5, batches), given), train(keras_own, given)):
        check_equal(found, wanted)


def test_a_word_that_stands_twice_is_one_row():
    """The rows of an embedding's gradient are added up before their squares are taken."""
    table = np.full((4, 2), 0.5, "float32")
    rows = np.array([[1.0, -2.0], [3.0, 1.0], [-0.5, 1.0]], "float32")
    results = []
    for sparse in (True, False):
        variable = keras.Variable(table)
        optimizer = Adam(RATE, 1.0)
        optimizer.build([variable])
        grad = tf.IndexedSlices(tf.constant(rows), tf.constant([2, 0, 2]), tf.constant([4, 2]))
        optimizer.apply([grad if sparse else tf.convert_to_tensor(grad)])
        results.append(variable.numpy())
    np.testing.assert_array_equal(*results)
    assert (results[0][1] == table[1]).all() and (results[0][2] != table[2]).all()


def test_a_gradient_that_is_not_finite_shows():
    """What ends a training by `TerminateOnNaN` must not be clipped away."""
    (given,) = gradients(1)
    given[0][0, 0] = np.inf
    weights = train(Adam(RATE, 0.5), [given])[0]
    assert all(np.isnan(value).all() for value in weights)


def test_a_saved_one_is_loaded_alike():
    config = Adam(RATE, 0.5, 3).get_config()
    assert Adam.from_config(config).get_config() == config


def of_recipe(**training):
    return make_optimizer(TrainingConfig(**{**PLAIN, **training}))


@pytest.mark.parametrize(
    "training, keras_own",
    [
        (
            {"optimizer": "adamw", "weight_decay": 0.1},
            lambda: keras.optimizers.AdamW(RATE, weight_decay=0.1),
        ),
        ({"beta_1": 0.8, "beta_2": 0.98}, lambda: keras.optimizers.Adam(RATE, 0.8, 0.98)),
        ({"optimizer": "sgd", "momentum": 0.9}, lambda: keras.optimizers.SGD(RATE, 0.9)),
        ({"optimizer": "adadelta"}, lambda: keras.optimizers.Adadelta(RATE, 0.95, 1e-6)),
        (
            {"optimizer": "sgd", "gradient_clip_value": 0.3},
            lambda: keras.optimizers.SGD(RATE, clipvalue=0.3),
        ),
    ],
)
def test_each_optimizer_is_keras_own(training, keras_own):
    given = gradients(5)
    check_equal(train(of_recipe(**training), given)[0], train(keras_own(), given)[0])


def test_adamw_agrees_with_the_paper():
    """Loshchilov and Hutter 2019, algorithm 2, line 12: the decay takes no part in the moments."""
    given, decay = gradients(3), 0.2
    found = train(of_recipe(optimizer="adamw", weight_decay=decay), given)[0]
    weights = first_weights()
    for number in range(len(given)):
        # What one more update of Adam adds, whose moments know the gradients alone.
        steps = [
            after - before
            for before, after in zip(
                oracle(given[:number]) if number else first_weights(), oracle(given[: number + 1])
            )
        ]
        weights = [(1 - RATE * decay) * w + step for w, step in zip(weights, steps)]
    check_equal(found, weights)


def test_biases_and_scales_do_not_decay():
    optimizer = of_recipe(optimizer="adamw", weight_decay=0.5)
    variables = [keras.Variable(np.ones(2), name=name) for name in ("kernel", "bias", "gamma")]
    optimizer.build(variables)
    optimizer.apply([tf.zeros(2)] * 3)
    assert [float(value.numpy()[0]) for value in variables] == [pytest.approx(0.995), 1.0, 1.0]


def test_elements_are_clipped_before_the_norm():
    given = [[np.array([3.0, -0.1, 0.2], "float32")]]
    variable = keras.Variable(np.zeros(3))
    optimizer = of_recipe(optimizer="sgd", gradient_clip_value=0.4, gradient_clip_norm=0.2)
    optimizer.build([variable])
    optimizer.apply([tf.constant(given[0][0])])
    cut = np.array([0.4, -0.1, 0.2])
    np.testing.assert_allclose(variable.numpy(), -RATE * cut * 0.2 / np.linalg.norm(cut), 1e-5)


@pytest.mark.parametrize(
    "training",
    [
        {},
        {"optimizer": "adamw", "weight_decay": 0.3},
        {"optimizer": "sgd", "momentum": 0.9},
        {"optimizer": "adadelta"},
    ],
)
def test_a_share_of_the_learning_rate_is_a_smaller_learning_rate(training):
    given, share = gradients(4), 0.25
    optimizer = of_recipe(**training)
    variables = [
        keras.Variable(value, name=f"weight_{number}")
        for number, value in enumerate(first_weights())
    ]
    optimizer.slow_down({variables[1].path: share})
    optimizer.build(variables)
    for grads in given:
        optimizer.apply([tf.constant(grad) for grad in grads])
    whole = train(of_recipe(**training), given)[0]
    slow = train(of_recipe(**{**training, "learning_rate": RATE * share}), given)[0]
    check_equal([value.numpy() for value in variables], [whole[0], slow[1], whole[2]])
