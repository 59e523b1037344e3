"""Tiny encoder-decoders of keras-hub, of random weights."""

import keras
import numpy as np
import pytest

keras_hub = pytest.importorskip("keras_hub", exc_type=ImportError)

VOCABULARY = 14
SIZES = {
    "vocabulary_size": VOCABULARY,
    "num_layers": 2,
    "num_heads": 2,
    "hidden_dim": 8,
    "intermediate_dim": 12,
    "dropout": 0.0,
}


def backbone(kind, seed=0, **options):
    """Returns a backbone: `t5` (gated, an own softmax), `t5_tied` or `bart`."""
    if kind == "bart":
        made = keras_hub.models.BartBackbone(**{**SIZES, "max_sequence_length": 16, **options})
    else:
        kinds = {
            "t5": {"use_gated_activation": True, "tie_embedding_weights": False},
            "t5_tied": {"use_gated_activation": False, "key_value_dim": 3},
        }
        made = keras_hub.models.T5Backbone(**{**SIZES, **kinds[kind], **options})
    rng = np.random.default_rng(seed)
    for weight in made.weights:
        weight.assign(rng.normal(scale=0.5, size=weight.shape).astype("float32"))
    keras.utils.set_random_seed(seed)
    return made
