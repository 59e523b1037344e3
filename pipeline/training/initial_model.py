"""The exported model whose weights a training starts from."""

import dataclasses
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf
from numpy.typing import NDArray

from pipeline.common.errors import VerbatimError
from pipeline.recipes.choices import LAST_PUSHED
from pipeline.training.exported_weights import ExportedWeights, ExportedWeightsError

_FACTS_FILE = os.path.join("assets.extra", "verbatim.json")
_SERVING = "Format-Serving"


class InitialModelError(VerbatimError, ValueError):
    """A training cannot start from the weights of the named model; one sentence."""


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
            exported = ExportedWeights.read(path)
        except ExportedWeightsError as error:
            raise InitialModelError(
                f"{str(error).rstrip('.')}, or name another version in training.initialize_from."
            ) from error
        if exported is None:
            raise InitialModelError(
                f"The model {path} was exported by an older version, which did not write the names "
                "of its weights: run its recipe again, or leave training.initialize_from out."
            )
        trained = [weight for weight in exported.weights if weight.trainable]
        return cls(
            path,
            recipe,
            [weight.name for weight in trained],
            [weight.value for weight in trained],
            exported.words,
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
