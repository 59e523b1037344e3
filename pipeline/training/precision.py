"""The precision that a training computes in, and that of the network which it leaves."""

import pathlib
import platform
from typing import Any

import keras

from pipeline.common import progress
from pipeline.recipes.sections import TrainingConfig

_MIXED, _WHOLE = "mixed_bfloat16", "float32"
_CPU_FACTS = pathlib.Path("/proc/cpuinfo")
# What Linux calls the instructions that multiply in bfloat16, on x86 and on Arm.
_INSTRUCTIONS = {"avx512_bf16", "amx_bf16", "bf16"}


def policy(training: TrainingConfig) -> str:
    """Returns Keras' name of the precision."""
    return _MIXED if training.mixed_precision else _WHOLE


def warn_of_slowness(training: TrainingConfig) -> None:
    """Says that bfloat16 gains nothing where neither a GPU nor the processor multiplies in it."""
    import tensorflow as tf

    if not training.mixed_precision or tf.config.list_physical_devices("GPU"):
        return
    if not _INSTRUCTIONS & _instructions():
        progress.warn(
            f"training.mixed_precision makes this training slower: this {platform.machine()} "
            "processor has no instructions for bfloat16 (avx512_bf16 or amx_bf16)"
        )


def _instructions() -> set[str]:
    """The names of the processor's instructions; those for bfloat16 where it does not say."""
    try:
        lines = _CPU_FACTS.read_text(encoding="utf-8").splitlines()
    except OSError:
        return _INSTRUCTIONS
    for line in lines:
        if line.startswith(("flags", "Features")):
            return set(line.partition(":")[2].split())
    return _INSTRUCTIONS


def in_float32(model: keras.Model) -> keras.Model:
    """Returns the network that computes in float32, of the same weights.

    Trained weights are float32 in either precision. A served model computes in float32, because
    single sentences in bfloat16 take three times as long on a CPU (docs/results/speed.md).
    """
    made = keras.saving.serialize_keras_object(model)
    whole = _replaced(made)
    if whole == made:
        return model
    again = keras.saving.deserialize_keras_object(whole)
    again.set_weights(model.get_weights())
    return again


def _replaced(value: Any) -> Any:
    """A serialized network with another policy wherever it names one."""
    if isinstance(value, dict):
        return {key: _replaced(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_replaced(part) for part in value]
    return _WHOLE if value == _MIXED else value
