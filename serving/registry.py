"""The models of a server: found by what a request names, changed while it runs."""

import contextlib
import logging
import os
import pathlib
import threading

import grpc

from serving.errors import RequestRefused, ServeError, invalid
from serving.model_config import LATEST_VERSION, ModelConfig, VersionPolicy
from serving.servable import MODEL_FILE
from serving.versions import ModelVersions

logger = logging.getLogger(__name__)


def configs_of_folders(models, name=None):
    """Returns a list of `ModelConfig` for a model folder, one of its versions, or a dict of names
    to such folders.

    Args:
        models: the folder or folders; of a version's folder that version alone is served.
        name: the model's name; by default the folder's. Not used when `models` is a dict.

    Raises:
        ServeError: there is none, or a SavedModel whose folder has no number.
    """
    if not isinstance(models, dict):
        base, _ = _split_version(models)
        models = {name or base.name: models}
    elif not models:
        raise ServeError("There is no model to serve.")
    configs = []
    for key, folder in models.items():
        base, version = _split_version(folder)
        policy = (
            LATEST_VERSION
            if version is None
            else VersionPolicy(latest=None, specific=frozenset([version]))
        )
        configs.append(ModelConfig(key, str(base), policy))
    return configs


def _split_version(folder):
    """Returns the model folder and, where `folder` is one of its versions, that version; else None."""
    folder = pathlib.Path(os.path.abspath(folder))  # so that `models/demo/.` has a name, too
    if not (folder / MODEL_FILE).is_file():
        return folder, None
    if not (folder.name.isascii() and folder.name.isdecimal()):
        raise ServeError(
            f"The folder {folder} holds a SavedModel but is not named by a version number; move "
            f"it to {folder}/1."
        )
    return folder.parent, int(folder.name)


class Registry:
    """All models of a server, by name.

    Args:
        configs: list of `ModelConfig`.
        batching: see `Servable`.
        on_reload: function called after each `reload` with the names that are served no more; None
            is nothing.

    Attributes:
        models: dict from name to `ModelVersions`; replaced as a whole, never changed.

    Raises:
        ServeError: a folder has no model; one sentence.
    """

    def __init__(self, configs, batching=None, on_reload=None):
        self._batching = batching
        self._on_reload = on_reload
        self.models = {config.name: self._open(config) for config in configs}
        self._reloading = threading.Lock()

    def load_first(self):
        """Loads what each model's policy asks for.

        Raises:
            ServeError: a model has no version that can be loaded.
        """
        for model in self.models.values():
            model.load_first()

    def poll(self):
        """Looks at every folder once for new versions."""
        for model in list(self.models.values()):
            try:
                model.poll()
            except Exception:  # the next poll may well succeed
                logger.exception("Looking for new versions of %s failed.", model.name)

    def reload(self, configs):
        """Takes on another list of models:
        loads the new ones, changes those it has, and lets the others end.

        Args:
            configs: list of `ModelConfig`.

        Raises:
            ServeError: one of them cannot be served; then the server's models are those that it
                had.
        """
        with self._reloading, contextlib.ExitStack() as undo:
            models = {}
            for config in configs:
                known = self.models.get(config.name)
                if known is not None and known.base == pathlib.Path(config.base_path):
                    undo.callback(known.configure, known.policy, known.labels)
                    known.configure(config.policy, config.labels)
                    models[config.name] = known
                else:
                    new = self._open(config)
                    undo.callback(new.unload)
                    new.load_first()
                    models[config.name] = new
            undo.pop_all()
            before, self.models = self.models, models
            if self._on_reload:  # before they end, so that nobody is sent to them
                self._on_reload(before.keys() - models.keys())
        for name, model in before.items():
            if models.get(name) is not model:
                model.unload()
                logger.info("%s is served no more.", name)

    def find(self, spec):
        """Returns the `ModelVersions` and the version asked for (None:
        the latest) of a `ModelSpec`.

        Raises:
            RequestRefused: no such model or version label.
        """
        models, name = self.models, spec.name
        if not name:
            if len(models) != 1:
                raise invalid(
                    f"ModelSpec has no name specified; this server has {', '.join(sorted(models))}."
                )
            name = next(iter(models))
        which = spec.WhichOneof("version_choice")
        version = spec.version.value if which == "version" else None
        if name not in models:
            asked = f"Latest({name})" if version is None else f"Specific({name}, {version})"
            raise RequestRefused(
                grpc.StatusCode.NOT_FOUND,
                f"Servable not found for request: {asked}; this server has "
                f"{', '.join(sorted(models))}.",
            )
        if which == "version_label":
            version = models[name].version_of(spec.version_label)
        return models[name], version

    def _open(self, config):
        return ModelVersions(
            config.name, config.base_path, config.policy, config.labels, self._batching
        )
