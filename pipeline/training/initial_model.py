"""The exported model whose weights a training starts from."""

import dataclasses
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from pipeline.common.errors import VerbatimError
from pipeline.common.whole_files import whole_file
from pipeline.recipes.choices import LAST_PUSHED

_EXTRA = "assets.extra"
_NAMES_FILE = os.path.join(_EXTRA, "weights.json")
_FACTS_FILE = os.path.join(_EXTRA, "verbatim.json")
# How a SavedModel's variables are called, whatever holds them: see `pipeline.export.kept_weights`.
_VARIABLE = "model_weights/{}/.ATTRIBUTES/VARIABLE_VALUE"
_SERVING = "Format-Serving"


class InitialModelError(VerbatimError, ValueError):
    """A training cannot start from the weights of the named model; one sentence."""


class _Name(TypedDict):
    path: str
    trainable: bool


@dataclasses.dataclass(frozen=True)
class InitialModel:
    """A model that another training starts from.

    Attributes:
        path: the folder of its version.
        recipe: the recipe that it was trained by, as a dict.
        names: of its trained weights, as Keras calls them, in their order.
        weights: their values.
        words: from the name of a vocabulary's file to its entries, by id.
    """

    path: str
    recipe: Mapping[str, Any]
    names: Sequence[str]
    weights: Sequence[NDArray[Any]]
    words: Mapping[str, Sequence[str]]

    @classmethod
    def read(cls, path: str) -> "InitialModel":
        """Reads the weights and vocabularies of an exported model.

        Args:
            path: the folder of a version, as `find_version` returns it, or what TFX's Trainer is
                given as its base model.

        Raises:
            InitialModelError: it cannot be read, or was exported by an older Verbatim.
        """
        path = _without_serving_folder(path)
        recipe = read_recipe(path)
        try:
            with tf.io.gfile.GFile(os.path.join(path, _NAMES_FILE)) as file:
                names: list[_Name] = json.load(file)
        except tf.errors.NotFoundError:
            raise InitialModelError(
                f"The model {path} was exported by an older version, which did not write the names "
                "of its weights: run its recipe again, or leave training.initialize_from out."
            ) from None
        try:
            reader = tf.train.load_checkpoint(os.path.join(path, "variables", "variables"))
            folder = os.path.join(path, "assets")
            words = {name: _read_lines(folder, name) for name in tf.io.gfile.listdir(folder)}
            keys = {key.split("model_weights/")[0] for key in reader.get_variable_to_shape_map()}
            (prefix,) = {key for key in keys if reader.has_tensor(f"{key}{_VARIABLE.format(0)}")}
            trained = [
                (name["path"], reader.get_tensor(f"{prefix}{_VARIABLE.format(number)}"))
                for number, name in enumerate(names)
                if name["trainable"]
            ]
        except (ValueError, IndexError, tf.errors.OpError) as error:
            raise InitialModelError(
                f"The weights of the model {path} cannot be read ({_first_line(error)}): copy the "
                "folder again, or name another version in training.initialize_from."
            ) from error
        return cls(
            path,
            recipe,
            [name for name, _ in trained],
            [np.asarray(value) for _, value in trained],
            words,
        )


def find_version(place: str, push_directory: str) -> str:
    """Returns the folder of the version that `training.initialize_from` names.

    Args:
        place: the folder of a version, of a model with numbered versions, or of a run; or
            `LAST_PUSHED`.
        push_directory: where this run pushes its model.

    Raises:
        InitialModelError: there is none.
    """
    if place == LAST_PUSHED:
        newest = _newest(push_directory)
        if newest is None:
            raise InitialModelError(
                f"No model was pushed to {push_directory} yet: run once without "
                "training.initialize_from, or name a model's folder there."
            )
        return newest
    # A version's own folder; one of versions; a run's, whose only model is meant.
    if tf.io.gfile.exists(os.path.join(place, "saved_model.pb")):
        return place
    if newest := _newest(place):
        return newest
    pushed = os.path.join(place, "models")
    models = [os.path.join(pushed, name) for name in _folders(pushed)]
    with_versions = [(model, newest) for model in models if (newest := _newest(model))]
    if len(with_versions) == 1:
        return with_versions[0][1]
    if with_versions:
        listed = " or ".join(model for model, _ in with_versions)
        raise InitialModelError(
            f"The folder {place} of training.initialize_from contains several models: name "
            f"{listed}."
        )
    raise InitialModelError(
        f"The folder {place} of training.initialize_from contains no exported model: give the "
        "folder of a version, of a model or of a run that pushed one."
    )


def read_recipe(path: str) -> Mapping[str, Any]:
    """Returns the recipe that an exported model was trained by, as a dict.

    Raises:
        InitialModelError: the folder holds no model of Verbatim's.
    """
    path = _without_serving_folder(path)
    try:
        with tf.io.gfile.GFile(os.path.join(path, _FACTS_FILE)) as file:
            recipe: Mapping[str, Any] = json.load(file)["recipe"]
            return recipe
    except (ValueError, KeyError, tf.errors.OpError):
        raise InitialModelError(
            f"The folder {path} contains no model that Verbatim exported: give an output of the "
            "Exporter, or a pushed version."
        ) from None


def write_names(directory: str, model: keras.Model) -> None:
    """Writes the names of a network's weights beside its SavedModel, for `InitialModel.read`."""
    names: list[_Name] = [
        {"path": variable.path, "trainable": bool(variable.trainable)}
        for variable in model.variables
    ]
    tf.io.gfile.makedirs(os.path.join(directory, _EXTRA))
    with whole_file(os.path.join(directory, _NAMES_FILE)) as file:
        json.dump(names, file)


def _without_serving_folder(path: str) -> str:
    """Returns a version's folder, in which TFX expects a folder."""
    path = path.rstrip("/")
    has_none = os.path.basename(path) == _SERVING and not tf.io.gfile.exists(path)
    return os.path.dirname(path) if has_none else path


def _newest(directory: str) -> str | None:
    versions = [
        name
        for name in _folders(directory)
        if name.isdigit() and tf.io.gfile.exists(os.path.join(directory, name, "saved_model.pb"))
    ]
    return os.path.join(directory, max(versions, key=int)) if versions else None


def _folders(directory: str) -> list[str]:
    if not tf.io.gfile.isdir(directory):
        return []
    return sorted(name.rstrip("/") for name in tf.io.gfile.listdir(directory))


def _read_lines(folder: str, name: str) -> list[str]:
    with tf.io.gfile.GFile(os.path.join(folder, name), "rb") as file:
        lines: list[str] = file.read().decode("utf-8", errors="replace").split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _first_line(error: Exception) -> str:
    return str(getattr(error, "message", None) or error).partition("\n")[0].rstrip(".")
