"""Trains a network on arrays and saves it, as a machine without TensorFlow does.

Run with KERAS_BACKEND=jax.

    python -m tests.end_to_end.jax_training CONFIG.json ARRAYS.npz NETWORK.keras ANSWERS.npz

Writes how it answers the arrays' sources itself, for comparison.
"""

import json
import pathlib
import sys

import keras
import numpy as np
from keras import ops

from keras_models import losses
from keras_models.decoding import decode
from keras_models.models import RecurrentSeq2Seq


def main(config, arrays, network, answers):
    assert keras.backend.backend() == "jax" and "tensorflow" not in sys.modules
    keras.utils.set_random_seed(1)
    model = RecurrentSeq2Seq.from_config(
        json.loads(pathlib.Path(config).read_text(encoding="utf-8"))
    )
    inputs = dict(np.load(arrays))
    model.compile(
        optimizer=keras.optimizers.Adam(0.02, global_clipnorm=1.0),
        loss=losses.negative_log_likelihood,
    )
    history = model.fit(
        inputs, inputs["target_extended_ids"], batch_size=32, epochs=30, verbose=0
    ).history["loss"]
    assert history[-1] < history[0], history
    model.save(network)
    sources = {
        name: ops.convert_to_tensor(value)
        for name, value in inputs.items()
        if name.startswith("source")
    }
    found = decode(model, sources, max_length=8, beam_size=2, n_best=2, min_length=1)
    found = {
        name: np.asarray(value) for name, value in found._asdict().items() if value is not None
    }
    np.savez(answers, **found, losses=history)


if __name__ == "__main__":
    main(*sys.argv[1:])
