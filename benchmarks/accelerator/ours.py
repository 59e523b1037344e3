"""Our untrained networks on JAX's first device, in a process of their own: decoding, training."""

import time
import unittest.mock
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from benchmarks.peers import processes
from benchmarks.peers.job import Job

if TYPE_CHECKING:
    import keras
    import numpy as np
    import numpy.typing as npt

    from keras_models.decoding import Hypotheses

#: A batch's inputs, by name.
Inputs: TypeAlias = Mapping[str, Any]
#: Decodes a batch.
Search: TypeAlias = Callable[[Inputs], "Hypotheses"]

# Smaller ids are special tokens.
FIRST_WORD = 9
#: Networks, their sizes, and their searches, compiled or not, by name.
_loaded: dict[str, tuple[Any, Job, dict[str, Search]]] = {}


def describe() -> processes.Answer:
    """Returns the device and the libraries: `device`, `kind`, and `version`."""
    import jax
    import keras

    device = jax.devices()[0]
    return {
        "device": device.platform,
        "kind": device.device_kind,
        "version": f"JAX {jax.__version__}, Keras {keras.__version__}",
    }


def rates(size: int, megabytes: int, repeats: int = 10) -> processes.Answer:
    """Measures the device, best of `repeats`.

    Returns:
        Operations a second of a square matrix product in each type, and `bytes` a second of a sum.
    """
    import jax
    import jax.numpy as jnp

    def best(function: Callable[..., Any], *arguments: Any) -> float:
        jax.block_until_ready(function(*arguments))
        times = []
        for _ in range(repeats):
            with processes.Timer() as timer:
                jax.block_until_ready(function(*arguments))
            times.append(timer.facts["seconds"])
        return min(times)

    measured = {}
    for dtype in ("float32", "bfloat16"):
        # Random: a product of zeros takes less power, and then runs at a higher clock.
        factor = jax.random.normal(jax.random.key(1), (size, size), dtype)
        measured[dtype] = 2 * size**3 / best(jax.jit(jnp.matmul), factor, factor)
    array = jnp.ones((megabytes * 250_000,), "float32")
    measured["bytes"] = 2 * array.nbytes / best(jax.jit(lambda values: values + 1), array)
    return measured


def build(job: Job, dtype: str) -> "keras.Model":
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


def pairs(
    job: Job, batch: int, source_length: int, target_length: int
) -> dict[str, "npt.NDArray[np.int32]"]:
    """Returns the inputs of random pairs, arrays `[batch, length]` without padding."""
    import numpy as np

    rng = np.random.default_rng(1)
    source = rng.integers(FIRST_WORD, job.vocabulary, (batch, source_length), "int32")
    target = rng.integers(FIRST_WORD, job.vocabulary, (batch, target_length), "int32")
    sources = dict.fromkeys(("source_ids", "source_extended_ids", "source_feed_ids"), source)
    return {**sources, "target_input_ids": target, "target_extended_ids": target}


def load(name: str, job: str, dtype: str) -> processes.Answer:
    """Builds a network for `decode`; returns its number of parameters."""
    sizes = Job.from_json(job)
    model = build(sizes, dtype)
    _loaded[name] = (model, sizes, searches(model, sizes))
    return {"parameters": int(model.count_params())}


def searches(model: "keras.Model", job: Job) -> dict[str, Search]:
    """Returns the searches `compiled` and `eager`.

    A network that computes in bfloat16 has its matrices in bfloat16, too: half the bytes to read at
    each step.
    """
    import jax
    import keras

    from keras_models.decoding import decode

    variables = model.variables
    lengths = {"max_length": job.length, "min_length": job.length}

    def search(values: list[Any], tables: Mapping[str, Any], inputs: Inputs) -> "Hypotheses":
        with keras.StatelessScope(state_mapping=list(zip(variables, values, strict=True))):
            return decode(model, inputs, beam_size=job.beam, tables=tables, **lengths)

    compiled = jax.jit(search)
    dtype = model.compute_dtype
    values = [
        variable.value.astype(dtype) if variable.ndim > 1 else variable.value
        for variable in variables
    ]
    tables = {name: table.astype(dtype) for name, table in model.decoding_tables().items()}

    def eager(inputs: Inputs) -> "Hypotheses":
        # As PyTorch runs it: a loop of Python, which sends one operation after the other.
        with unittest.mock.patch.object(keras.ops, "while_loop", _python_loop):
            return search(values, tables, inputs)

    return {"compiled": lambda inputs: compiled(values, tables, inputs), "eager": eager}


def _python_loop(
    condition: Callable[..., Any],
    body: Callable[..., Any],
    state: tuple[Any, ...],
    maximum_iterations: int | None = None,
) -> tuple[Any, ...]:
    state = tuple(state)
    while bool(condition(*state)):
        state = tuple(body(*state))
    return state


def decode(name: str, how: str, batch: int, source_length: int, calls: int) -> processes.Answer:
    """Decodes the same batch `calls` times.

    Returns:
        The seconds of a call, and the numbers of tokens of its best outputs.
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
            outputs = jax.block_until_ready(search[how](inputs))
    return {"seconds": timer.facts["seconds"] / calls, "lengths": outputs.lengths[:, 0].tolist()}


def train_language_model(
    head: str, dtype: str, sizes: dict[str, int], rows: int, updates: int, epochs: int
) -> processes.Answer:
    """Trains the 2-layer language model on random words.

    Args:
        head: `pointer_sentinel` or `softmax`.
        dtype: a Keras dtype policy.
        sizes: dict of arguments of `LanguageModel`.
        rows: of a batch; an update reads as many words of each as the pointer's window holds.
        updates: of an epoch.
        epochs: the first of which compiles.

    Returns:
        Its rate from the end of the first epoch on.
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
    ends: list[float] = []
    # There are few words to evaluate by, so that an epoch's time is that of its updates.
    language_modeling.fit(
        model, stream, stream[:64], options, lambda entry: ends.append(time.perf_counter())
    )
    rate = len(stream) * (epochs - 1) / (ends[-1] - ends[0])
    return {
        "parameters": int(model.count_params()),
        "rate": rate,
        "operations": operations(model) * rate,
    }


def train_pairs(
    job: str, dtype: str, batch: int, length: int, updates: int, epochs: int
) -> processes.Answer:
    """Trains the job's network on random pairs of one length.

    Returns:
        Its rate, of both sides' tokens, from the end of the first epoch on.
    """
    import keras

    from keras_models.losses import negative_log_likelihood

    job_sizes = Job.from_json(job)
    model = build(job_sizes, dtype)
    inputs = pairs(job_sizes, batch * updates, length, length)
    model.compile(
        optimizer=keras.optimizers.Adam(job_sizes.learning_rate, global_clipnorm=1.0),
        loss=negative_log_likelihood,
    )
    ends: list[float] = []
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


def operations(model: "keras.Model") -> int:
    """Returns the multiplications and additions of training's matrix products for a token.

    There are 6 for a weight, forward 2 and backward 4. The weights are all matrices but those that
    are looked up; products of activations with each other are not counted.
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
