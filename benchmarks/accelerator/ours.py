"""Our networks on JAX's first device, untrained, in a process of their own:
decoding, compiled or not, and training.
"""

import time
import unittest.mock

from benchmarks.peers import processes
from benchmarks.peers.job import Job

# Ids below are special tokens.
FIRST_WORD = 9
_loaded = {}


def describe():
    """Returns what there is to compute with: `device`, `kind`, and `version`."""
    import jax
    import keras

    device = jax.devices()[0]
    return {
        "device": device.platform,
        "kind": device.device_kind,
        "version": f"JAX {jax.__version__}, Keras {keras.__version__}",
    }


def rates(size, megabytes, repeats=10):
    """Measures the device, best of `repeats`:
    operations a second of a square matrix product in each type, and bytes of a sum.
    """
    import jax
    import jax.numpy as jnp

    def best(function, *arguments):
        jax.block_until_ready(function(*arguments))
        times = []
        for _ in range(repeats):
            with processes.Timer() as timer:
                jax.block_until_ready(function(*arguments))
            times.append(timer.facts["seconds"])
        return min(times)

    found = {}
    for dtype in ("float32", "bfloat16"):
        # Random: a product of zeros takes less power, and then runs at a higher clock.
        factor = jax.random.normal(jax.random.key(1), (size, size), dtype)
        found[dtype] = 2 * size**3 / best(jax.jit(jnp.matmul), factor, factor)
    array = jnp.ones((megabytes * 250_000,), "float32")
    found["bytes"] = 2 * array.nbytes / best(jax.jit(lambda values: values + 1), array)
    return found


def build(job, dtype):
    """Returns our untrained network of the job's sizes, under a Keras dtype policy."""
    import keras

    from keras_models.models import RecurrentSeq2Seq, TransformerSeq2Seq

    keras.utils.set_random_seed(1)
    sizes = {"embedding_size": job.embedding, "hidden_size": job.hidden, "dtype": dtype}
    if job.body == "rnn":
        options = {"head": "pointer_generator", "attention": job.attention, "coverage": False}
        model = RecurrentSeq2Seq(job.vocabulary, job.vocabulary, **options, **sizes)
    else:
        layers = {"encoder_layers": job.layers, "decoder_layers": job.layers}
        options = {
            "head": "softmax",
            "attention_heads": job.heads,
            "feed_forward_size": job.feed_forward,
        }
        model = TransformerSeq2Seq(job.vocabulary, job.vocabulary, **options, **layers, **sizes)
    model(pairs(job, 1, 4, 4))
    return model


def pairs(job, batch, source_length, target_length):
    """Returns the inputs of random pairs, dict of int32 arrays `[batch, length]`, without padding."""
    import numpy as np

    rng = np.random.default_rng(1)
    source = rng.integers(FIRST_WORD, job.vocabulary, (batch, source_length), "int32")
    target = rng.integers(FIRST_WORD, job.vocabulary, (batch, target_length), "int32")
    sources = dict.fromkeys(("source_ids", "source_extended_ids", "source_feed_ids"), source)
    return {**sources, "target_input_ids": target, "target_extended_ids": target}


def load(name, job, dtype):
    """Builds a network that `decode` knows by this name; returns its number of parameters."""
    job = Job.from_json(job)
    model = build(job, dtype)
    _loaded[name] = (model, job, searches(model, job))
    return {"parameters": int(model.count_params())}


def searches(model, job):
    """Returns dict from `compiled` and `eager` to a function of a batch's inputs that returns
    `Hypotheses`.

    What is computed in bfloat16 has its matrices in bfloat16, too: half the bytes to read at each
    step.
    """
    import jax
    import keras

    from keras_models.decoding import decode

    variables = model.variables
    lengths = {"max_length": job.length, "min_length": job.length}

    def search(values, tables, inputs):
        with keras.StatelessScope(state_mapping=list(zip(variables, values, strict=True))):
            return decode(model, inputs, beam_size=job.beam, tables=tables, **lengths)

    compiled = jax.jit(search)
    dtype = model.compute_dtype
    values = [
        variable.value.astype(dtype) if variable.ndim > 1 else variable.value
        for variable in variables
    ]
    tables = {name: table.astype(dtype) for name, table in model.decoding_tables().items()}

    def eager(inputs):
        # As PyTorch runs it: a loop of Python, each operation sent to the device when its turn
        # comes.
        with unittest.mock.patch.object(keras.ops, "while_loop", _python_loop):
            return search(values, tables, inputs)

    return {"compiled": lambda inputs: compiled(values, tables, inputs), "eager": eager}


def _python_loop(condition, body, state, maximum_iterations=None):
    state = tuple(state)
    while bool(condition(*state)):
        state = tuple(body(*state))
    return state


def decode(name, how, batch, source_length, calls):
    """Decodes the same batch so many times;
    returns the seconds of a call and the numbers of tokens of its best outputs.
    """
    import jax

    _, job, search = _loaded[name]
    inputs = {
        key: jax.device_put(value)
        for key, value in pairs(job, batch, source_length, 1).items()
        if key[:6] == "source"
    }
    with processes.Timer() as timer:
        for _ in range(calls):
            found = jax.block_until_ready(search[how](inputs))
    return {"seconds": timer.facts["seconds"] / calls, "lengths": found.lengths[:, 0].tolist()}


def train_language_model(head, dtype, sizes, rows, updates, epochs):
    """Trains the 2-layer language model on random words;
    returns its rate from the end of the first epoch on.

    Args:
        head: `pointer_sentinel` or `softmax`.
        dtype: a Keras dtype policy.
        sizes: dict of arguments of `LanguageModel`.
        rows: of a batch; an update reads as many words of each as the pointer's window holds.
        updates: of an epoch.
        epochs: the first of which compiles.
    """
    import keras
    import numpy as np

    from keras_models import language_modeling
    from keras_models.models import LanguageModel

    keras.utils.set_random_seed(1)
    model = LanguageModel(head=head, dtype=dtype, **sizes)
    rng = np.random.default_rng(1)
    stream = rng.integers(FIRST_WORD, sizes["vocabulary_size"], rows * model.window * updates)
    options = language_modeling.FitOptions(
        batch_size=rows, max_epochs=epochs, patience=epochs, evaluation_batch_size=8
    )
    ends = []
    # The words after training are few, so that an epoch's time is its updates'.
    language_modeling.fit(
        model, stream, stream[:64], options, lambda entry: ends.append(time.perf_counter())
    )
    rate = len(stream) * (epochs - 1) / (ends[-1] - ends[0])
    return {
        "parameters": int(model.count_params()),
        "rate": rate,
        "operations": operations(model) * rate,
    }


def train_pairs(job, dtype, batch, length, updates, epochs):
    """Trains the job's network on random pairs of one length;
    returns its rate, of both sides' tokens, from the end of the first epoch on.
    """
    import keras

    from keras_models.losses import negative_log_likelihood

    job = Job.from_json(job)
    model = build(job, dtype)
    inputs = pairs(job, batch * updates, length, length)
    model.compile(
        optimizer=keras.optimizers.Adam(job.learning_rate, global_clipnorm=1.0),
        loss=negative_log_likelihood,
    )
    ends = []
    watch = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: ends.append(time.perf_counter())
    )
    model.fit(
        inputs,
        inputs["target_extended_ids"],
        batch_size=batch,
        epochs=epochs,
        verbose=0,
        callbacks=[watch],
    )
    pairs_a_second = batch * updates * (epochs - 1) / (ends[-1] - ends[0])
    # A weight meets the tokens of one side.
    done = operations(model) * pairs_a_second * length
    return {
        "parameters": int(model.count_params()),
        "rate": 2 * length * pairs_a_second,
        "operations": done,
    }


def operations(model):
    """Returns the multiplications and additions of a training's matrix products for a token: 6 a
    weight, forward 2 and backward 4.

    The weights are all matrices but those that are looked up; products of activations with each
    other are not counted.
    """
    return 6 * sum(
        int(weight.shape[0] * weight.shape[1])
        for weight in model.trainable_weights
        if len(weight.shape) == 2 and "embedding" not in weight.path
    )


if __name__ == "__main__":
    processes.serve(
        {
            "describe": describe,
            "rates": rates,
            "load": load,
            "decode": decode,
            "train_language_model": train_language_model,
            "train_pairs": train_pairs,
        }
    )
