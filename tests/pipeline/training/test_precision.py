"""A network that trained in bfloat16 is left in float32, with its own weights."""

import logging

import keras
import numpy as np
import pytest

from pipeline.common import progress
from pipeline.recipes.sections import TrainingConfig
from pipeline.training import precision

BODIES = ("gru", "lstm_bahdanau", "transformer", "language_model", "ensemble", "keras_hub")


def make(body, dtype):
    """A small network of that body and precision."""
    from keras_models.models import (
        Ensemble,
        KerasHubSeq2Seq,
        LanguageModel,
        RecurrentSeq2Seq,
        TransformerSeq2Seq,
    )
    from tests.keras_models import keras_hub_presets

    keras.utils.set_random_seed(1)
    sizes = {"embedding_size": 8, "hidden_size": 8, "dtype": dtype}
    if body == "language_model":
        return LanguageModel(20, **sizes)
    if body == "transformer":
        return TransformerSeq2Seq(20, 12, feed_forward_size=16, tie_embeddings="target", **sizes)
    if body == "ensemble":
        return Ensemble([make("gru", dtype), make("gru", dtype)])
    if body == "keras_hub":
        return KerasHubSeq2Seq(20, 12, keras_hub_presets.backbone("t5"), dtype=dtype)
    options = {"cell": "lstm", "decoder": "bahdanau"} if body == "lstm_bahdanau" else {}
    return RecurrentSeq2Seq(20, 12, **options, **sizes)


def policies(layer):
    """The names of all policies in a network."""
    return {one.dtype_policy.name for one in layer._flatten_layers()}


@pytest.mark.parametrize("body", BODIES)
def test_a_network_of_mixed_precision_becomes_the_same_one_of_float32(body):
    mixed = make(body, "mixed_bfloat16")
    assert "mixed_bfloat16" in policies(mixed)
    draw = np.random.default_rng(0)
    mixed.set_weights([draw.normal(size=weight.shape) for weight in mixed.get_weights()])
    found = precision.in_float32(mixed)
    assert type(found) is type(mixed) and policies(found) == {"float32"}
    assert len(found.weights) == len(mixed.weights) == len(make(body, "float32").weights)
    for ours, theirs in zip(found.get_weights(), mixed.get_weights()):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("body", BODIES)
def test_a_network_of_float32_stays_as_it_is(body):
    model = make(body, "float32")
    assert precision.in_float32(model) is model


@pytest.mark.parametrize(
    "facts, slow",
    [
        ("flags\t\t: fpu avx512f avx512_bf16 sse", False),
        ("processor : 0\nflags\t\t: fpu amx_bf16\n", False),
        ("Features\t: fp asimd bf16", False),
        ("flags\t\t: fpu avx2 avx512f\nflags\t\t: fpu avx2 avx512f", True),
        ("Features\t: fp asimd", True),
        # Nothing is known.
        ("model name: one", False),
        (None, False),
    ],
)
def test_a_processor_without_bfloat16_is_warned_of(facts, slow, tmp_path, monkeypatch, caplog):
    path = tmp_path / "cpuinfo"
    if facts is not None:
        path.write_text(facts, encoding="utf-8")
    monkeypatch.setattr(precision, "_CPU_FACTS", path)
    monkeypatch.setattr("tensorflow.config.list_physical_devices", lambda kind: [])
    monkeypatch.setattr(progress.LOGGER, "propagate", True)
    with caplog.at_level(logging.WARNING, progress.LOGGER.name):
        precision.warn_of_slowness(TrainingConfig(mixed_precision=False))
        assert not caplog.messages
        precision.warn_of_slowness(TrainingConfig(mixed_precision=True))
    assert len(caplog.messages) == slow
    assert all("no instructions for bfloat16" in message for message in caplog.messages)
