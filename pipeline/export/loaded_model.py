"""A SavedModel in this process, checked and called by signature."""

import json
import os
import pathlib
from collections.abc import Sequence, Set
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from pipeline.common.errors import VerbatimError
from pipeline.common.whole_files import is_remote
from pipeline.export import shared_model

if TYPE_CHECKING:
    import tensorflow as tf

    from pipeline.export.extra_files import ModelFacts

#: The outputs of a signature, by name.
Arrays = dict[str, NDArray[Any]]

# Outputs that must be numbers.
_SCORES = {"score", "log_probability", "log_probability_with_copies"}
# The batch size if a model does not name one.
_BATCH_BUCKETS = [32]


class ModelError(VerbatimError, ValueError):
    """A model that cannot be used; its message is one sentence for the user."""


class TextRefused(ModelError):
    """A model refuses a batch because of a text; the message names it within the batch."""


def version_directory(directory: str | os.PathLike[str]) -> pathlib.Path:
    """Returns the folder of the SavedModel: the directory itself, or its highest numbered version.

    Raises:
        ModelError: neither is there, or the directory is an address.
    """
    if is_remote(os.fspath(directory)):
        raise ModelError(
            f"The model folder {os.fspath(directory)} is an address, but models are read from "
            "folders of this machine: copy it here."
        )
    path = pathlib.Path(directory)
    if (path / "saved_model.pb").is_file():
        return path
    if not path.exists():
        raise ModelError(f"The model folder {path} does not exist.")
    if not path.is_dir():
        raise ModelError(
            f"The model folder {path} is a file: give the folder of numbered SavedModels."
        )
    versions = [
        child
        for child in path.iterdir()
        if child.name.isdigit() and (child / "saved_model.pb").is_file()
    ]
    if not versions:
        raise ModelError(
            f"The model folder {path} contains no version: give the folder of numbered SavedModels."
        )
    return max(versions, key=lambda child: int(child.name))


def read_facts(directory: str | os.PathLike[str]) -> "ModelFacts":
    """Returns the facts of a model that the export wrote into `assets.extra/verbatim.json`.

    It is empty if there is no such file.

    Raises:
        ModelError: the file cannot be understood.
    """
    path = pathlib.Path(directory) / "assets.extra" / "verbatim.json"
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ModelError(f"The facts of the model, {path}, cannot be read: {error}.") from None
    if not isinstance(facts, dict):
        raise ModelError(f"The facts of the model, {path}, must be one JSON object.")
    return cast("ModelFacts", facts)


class LoadedModel:
    """Loads a SavedModel and calls its signatures with lists of texts.

    Args:
        directory: a SavedModel, or a folder of numbered versions, the newest of which is used.

    Attributes:
        directory: the SavedModel's folder.
        facts: the facts that the export wrote; empty if it wrote none.

    Raises:
        ModelError: no SavedModel, or one that cannot be loaded.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        import tensorflow as tf

        self.directory = version_directory(directory)
        self.facts = read_facts(self.directory)
        try:
            self._loaded = shared_model.load(self.directory)
        # Any error that TensorFlow raises for the files.
        except Exception as error:
            reason = str(error).strip().partition("\n")[0] or type(error).__name__
            raise ModelError(
                f"The model {self.directory} cannot be loaded ({reason.rstrip('.')}): copy or "
                "export it again."
            ) from error
        self._constant = tf.constant
        self._invalid_argument = tf.errors.InvalidArgumentError

    @property
    def _largest_batch(self) -> int:
        """The largest batch that the model compiles for."""
        return max(self.facts.get("batch_buckets", _BATCH_BUCKETS))

    def _signature(
        self, name: str, inputs: Set[str], outputs: Set[str]
    ) -> "tf.types.experimental.ConcreteFunction":
        """Returns a signature, after checking that its inputs and outputs are those of Verbatim.

        Raises:
            ModelError: it is missing, or is another.
        """
        function = self._loaded.signatures.get(name)
        if function is None:
            raise ModelError(
                f"The model {self.directory} has no signature '{name}': it is not a Verbatim "
                "model, or an older version exported it; export it again."
            )
        taken, given = set(function.structured_input_signature[1]), set(function.structured_outputs)
        if taken != inputs or not outputs <= given:
            raise ModelError(
                f"The signature '{name}' of the model {self.directory} takes "
                f"{', '.join(sorted(taken)) or 'nothing'} and returns "
                f"{', '.join(sorted(given)) or 'nothing'}: it is not a Verbatim model."
            )
        return function

    def _call(
        self,
        function: "tf.types.experimental.ConcreteFunction",
        **inputs: Sequence[str] | NDArray[Any],
    ) -> Arrays:
        """Calls a signature.

        Raises:
            TextRefused: it refuses a text.
            ModelError: it returns a score that is not a number.
        """
        try:
            outputs = function(**{name: self._constant(value) for name, value in inputs.items()})
        except self._invalid_argument as error:
            from serving.human_sentence import human_sentence

            raise TextRefused(human_sentence(error.message)) from None
        arrays: Arrays = {name: value.numpy() for name, value in outputs.items()}
        for name in _SCORES & set(arrays):
            if arrays[name].dtype.kind == "f" and np.isnan(arrays[name]).any():
                raise ModelError(
                    f"The model {self.directory} returned a '{name}' that is not a number: it is "
                    "damaged, or its training diverged."
                )
        return arrays
