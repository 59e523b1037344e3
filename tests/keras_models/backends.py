"""Gradients, compilation and traced shapes on either backend, which `keras.ops` lacks."""

import gc

import keras
import numpy as np

TENSORFLOW = keras.backend.backend() == "tensorflow"


def numpy(tree):
    """Every tensor of a nest as a NumPy array."""
    return keras.tree.map_structure(
        lambda x: None if x is None else keras.ops.convert_to_numpy(x), tree
    )


# The programs of `shared`, by their keys.
_programs = {}


def shared(key, function, *arrays):
    """Returns `function(*arrays)`, which on JAX is one compiled program for each key.

    Without it JAX compiles each operation for its shapes, and each loop anew whenever it is called.
    The program is that of the first function with the key: apart from the arrays, all that a
    function reads must follow from its key. TensorFlow runs the operations one by one.
    """
    if TENSORFLOW:
        return function(*arrays)
    import jax

    if key not in _programs:
        _programs[key] = jax.jit(function)
    return _programs[key](*arrays)


def shared_by_config(model, function, *arrays, key=()):
    """As `shared`, for a function of `(model, *arrays)`, which may read `model.losses`.

    Models with the same config share a program, which takes their weights as arguments.
    """
    if TENSORFLOW:
        return function(model, *arrays)

    def pure(values, *arrays):
        weights = list(zip(model.variables, values))
        with keras.StatelessScope(state_mapping=weights, collect_losses=True):
            return function(model, *arrays)

    config = {**model.get_config(), "name": ""}
    key = (type(model), repr(config), key)
    return shared(key, pure, [variable.value for variable in model.variables], *arrays)


def outputs(model, *arrays):
    """Returns `model(*arrays)` in NumPy; on JAX models with the same config share a program."""
    return numpy(
        shared_by_config(model, lambda model, *arrays: model(*arrays), *arrays, key="call")
    )


def forget_programs():
    """Frees the programs that JAX has compiled."""
    _programs.clear()
    if not TENSORFLOW:
        import jax

        jax.clear_caches()
        # What tests/conftest.py spares holds programs, too.
        gc.unfreeze()
        gc.collect()


def compiled(function):
    """Returns `function` compiled by XLA, as exported models are.

    It is without AutoGraph, which `keras.ops` does not need.
    """
    if TENSORFLOW:
        import tensorflow as tf

        return tf.function(function, jit_compile=True, autograph=False)
    import jax

    return jax.jit(function)


def gradient_function(function, layer, key=None):
    """Returns a function that computes the scalar `function(*inputs)` and its gradients.

    The gradients are those for the inputs and for the layer's weights. JAX compiles at the first
    call, so a test that trains calls it more than once.

    Args:
        layer: a built layer or model whose trainable weights the function reads, as they are at
            each call.
        key: as of `shared`: functions with the same key share a program on JAX. Besides inputs and
            trainable weights, all that the function reads must follow from it.
    """
    if TENSORFLOW:
        import tensorflow as tf

        def eager(*inputs):
            with tf.GradientTape() as tape:
                tape.watch(inputs)
                value = function(*inputs)
            # TensorFlow's own variables: it does not know the types of Keras' where they are
            # unconnected.
            sources = [*inputs, *(weight.value for weight in layer.trainable_weights)]
            gradients = tape.gradient(
                value, sources, unconnected_gradients=tf.UnconnectedGradients.ZERO
            )
            return float(value), [numpy(tf.convert_to_tensor(gradient)) for gradient in gradients]

        return eager
    import jax

    def pure(inputs, weights):
        with keras.StatelessScope(state_mapping=list(zip(layer.trainable_weights, weights))):
            return function(*inputs)

    both = jax.value_and_grad(pure, argnums=(0, 1))
    key = object() if key is None else ("gradients", key)

    def jitted(*inputs):
        weights = [weight.value for weight in layer.trainable_weights]
        value, gradients = shared(key, both, inputs, weights)
        return float(value), [np.asarray(gradient) for part in gradients for gradient in part]

    return jitted


def value_and_gradients(function, inputs, layer, key=None):
    """As `gradient_function`, for one list of float arrays."""
    return gradient_function(function, layer, key)(
        *(keras.ops.convert_to_tensor(x, dtype="float32") for x in inputs)
    )


def traced_shapes(function, layer, *arrays):
    """Static shapes of all tensors that a training's step makes.

    The step computes the scalar `function(*arrays)` and its gradients for the layer's weights.
    """
    if TENSORFLOW:
        import tensorflow as tf

        @tf.function(autograph=False)
        def train(*tensors):
            with tf.GradientTape() as tape:
                value = function(*tensors)
            return value, tape.gradient(value, [weight.value for weight in layer.trainable_weights])

        graph = train.get_concrete_function(*map(tf.constant, arrays)).graph.as_graph_def(
            add_shapes=True
        )
        nodes = [
            *graph.node,
            *(node for function in graph.library.function for node in function.node_def),
        ]
        return {
            tuple(dim.size for dim in shape.dim)
            for node in nodes
            for shape in node.attr["_output_shapes"].list.shape
            if not shape.unknown_rank
        }
    import jax

    def pure(weights, *arrays):
        with keras.StatelessScope(state_mapping=list(zip(layer.trainable_weights, weights))):
            return function(*arrays)

    weights = [weight.value for weight in layer.trainable_weights]
    shapes = set()

    def visit(value):
        if isinstance(value, (tuple, list)):
            for part in value:
                visit(part)
        elif hasattr(value, "eqns"):  # first: in newer JAX a jaxpr is its own `jaxpr`
            for equation in value.eqns:
                shapes.update(tuple(variable.aval.shape) for variable in equation.outvars)
                visit(list(equation.params.values()))
        elif hasattr(value, "jaxpr"):
            visit(value.jaxpr)

    visit(jax.make_jaxpr(jax.value_and_grad(pure))(weights, *arrays))
    return shapes


def randomize(layer, seed=0, scale=0.5):
    """Gives all weights random values: initial zeros would hide what they multiply."""
    rng = np.random.default_rng(seed)
    for weight in layer.trainable_weights:
        weight.assign(rng.normal(scale=scale, size=weight.shape).astype("float32"))


def assert_slopes(layer, gradients, function, rng, atol):
    """Asserts gradients of a layer's weights by central differences, one number of each weight.

    Args:
        gradients: what `value_and_gradients` gave for the trainable weights.
        function: a float64 oracle of the value, which reads the weights as they are.
        rng: draws the numbers.
        atol: absolute tolerance.
    """
    for weight, gradient in zip(layer.trainable_weights, gradients, strict=True):
        before = numpy(weight.value)
        at = tuple(rng.integers(0, size) for size in before.shape)
        sides, places = [], []
        for change in (-2e-3, 2e-3):
            moved = before.copy()
            moved[at] += change
            weight.assign(moved)
            sides.append(function())
            places.append(float(moved[at]))
        weight.assign(before)
        slope = (sides[1] - sides[0]) / (places[1] - places[0])
        np.testing.assert_allclose(gradient[at], slope, rtol=2e-3, atol=atol, err_msg=weight.path)
