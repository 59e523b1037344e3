"""The weights and the vocabularies that a SavedModel holds, by their names."""

import dataclasses
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypedDict

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from pipeline.common.errors import VerbatimError
from pipeline.common.whole_files import whole_file

_EXTRA = "assets.extra"
_NAMES_FILE = os.path.join(_EXTRA, "weights.json")
# How a SavedModel's variables are called, whatever holds them: see `pipeline.export.kept_weights`.
_VARIABLE = "model_weights/{}/.ATTRIBUTES/VARIABLE_VALUE"


class ExportedWeightsError(VerbatimError, ValueError):
    """Weights that cannot be read; one sentence."""


class _Name(TypedDict):
    path: str
    trainable: bool


class Weight(NamedTuple):
    """One weight of a network.

    Attributes:
        name: as Keras calls it.
        trainable: whether its training changed it.
        value: its numbers.
    """

    name: str
    trainable: bool
    value: NDArray[Any]


@dataclasses.dataclass(frozen=True)
class ExportedWeights:
    """What a SavedModel holds of its network.

    Attributes:
        weights: in the network's order.
        words: from the name of a vocabulary's file to its entries, by id.
    """

    weights: Sequence[Weight]
    words: Mapping[str, Sequence[str]]

    @classmethod
    def read(cls, path: str) -> "ExportedWeights | None":
        """Reads an exported model.

        Args:
            path: the folder of a version.

        Returns:
            The weights; None if an older version exported the model, without names.

        Raises:
            ExportedWeightsError: they cannot be read.
        """
        try:
            with tf.io.gfile.GFile(os.path.join(path, _NAMES_FILE)) as file:
                names: list[_Name] = json.load(file)
        except tf.errors.NotFoundError:
            return None
        try:
            reader = tf.train.load_checkpoint(os.path.join(path, "variables", "variables"))
            folder = os.path.join(path, "assets")
            words = {name: _read_lines(folder, name) for name in tf.io.gfile.listdir(folder)}
            keys = {key.split("model_weights/")[0] for key in reader.get_variable_to_shape_map()}
            (prefix,) = {key for key in keys if reader.has_tensor(f"{key}{_VARIABLE.format(0)}")}
            weights = [
                Weight(
                    name["path"],
                    name["trainable"],
                    np.asarray(reader.get_tensor(f"{prefix}{_VARIABLE.format(number)}")),
                )
                for number, name in enumerate(names)
            ]
        except (ValueError, IndexError, tf.errors.OpError) as error:
            raise ExportedWeightsError(
                f"The weights of the model {path} cannot be read ({_first_line(error)}): copy the "
                "folder again."
            ) from error
        return cls(weights, words)


def write_names(directory: str, model: keras.Model) -> None:
    """Writes the names of a network's weights beside its SavedModel, for `ExportedWeights.read`."""
    names: list[_Name] = [
        {"path": variable.path, "trainable": bool(variable.trainable)}
        for variable in model.variables
    ]
    tf.io.gfile.makedirs(os.path.join(directory, _EXTRA))
    with whole_file(os.path.join(directory, _NAMES_FILE)) as file:
        json.dump(names, file)


def _read_lines(folder: str, name: str) -> list[str]:
    with tf.io.gfile.GFile(os.path.join(folder, name), "rb") as file:
        lines: list[str] = file.read().decode("utf-8", errors="replace").split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _first_line(error: Exception) -> str:
    return str(getattr(error, "message", None) or error).partition("\n")[0].rstrip(".")
