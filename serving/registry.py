"""The models of a server: found by a request's names, changed while it runs."""

import contextlib
import logging
import os
import pathlib
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence

import grpc
from tensorflow_serving.apis import model_pb2

from serving.batching import Batching
from serving.bucket_folder import is_address
from serving.errors import RequestRefused, ServeError, invalid
from serving.model_config import LATEST_VERSION, ModelConfig, VersionPolicy
from serving.model_versions import ModelVersions
from serving.version_folders import MODEL_FILE, check_local

Path = str | os.PathLike[str]

logger = logging.getLogger(__name__)


def configs_of_folders(
    models: Path | Mapping[str, Path], name: str | None = None
) -> list[ModelConfig]:
    """Returns the configs of folders.

    Args:
        models: a model folder, one of its versions, or a dict of names to such folders. For a
            version's folder, only that version is served.
        name: the model's name; by default the folder's. Not used when `models` is a dict.

    Raises:
        ServeError: there is none, or a SavedModel whose folder has no number.
    """
    if not isinstance(models, Mapping):
        base, _ = _split_version(models)
        models = {name or os.path.basename(base): models}
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
        configs.append(ModelConfig(key, base, policy))
    return configs


def _split_version(path: Path) -> tuple[str, int | None]:
    """Returns the model folder, and the version if `path` is the folder of one."""
    if is_address(path):
        address = os.fspath(path).rstrip("/")
        base, _, name = address.rpartition("/")
        # A model is not named by a number.
        return (base, int(name)) if name.isascii() and name.isdecimal() else (address, None)
    check_local(path)
    # Made absolute, `models/demo/.` has a name, too.
    folder = pathlib.Path(os.path.abspath(path))
    if not (folder / MODEL_FILE).is_file():
        return str(folder), None
    if not (folder.name.isascii() and folder.name.isdecimal()):
        raise ServeError(
            f"The folder {folder} holds a SavedModel but is not named by a version number; move "
            f"it to {folder}/1."
        )
    return str(folder.parent), int(folder.name)


class Registry:
    """All models of a server, by name.

    Args:
        configs: list of `ModelConfig`.
        batching: see `Servable`.
        warms_up: see `ModelVersions`.
        on_reload: function called after each `reload` with the names that are no longer served.

    Attributes:
        models: dict from name to `ModelVersions`; replaced as a whole, never changed.

    Raises:
        ServeError: a folder has no model; one sentence.
    """

    def __init__(
        self,
        configs: Sequence[ModelConfig],
        batching: Batching | None = None,
        on_reload: Callable[[Iterable[str]], None] | None = None,
        warms_up: bool = True,
    ) -> None:
        self._batching = batching
        self._warms_up = warms_up
        self._on_reload = on_reload
        self.models = {config.name: self._open(config) for config in configs}
        # New models of a reload, while they are loaded: they cannot answer yet.
        self._arriving: dict[str, ModelVersions] = {}
        self._reloading = threading.Lock()

    def load_first(self) -> None:
        """Loads what each model's policy asks for.

        Raises:
            ServeError: a model has no version that can be loaded.
        """
        for model in self.models.values():
            model.load_first()

    def unload(self) -> None:
        """Ends every model after its last request; none answers any more."""
        for model in self.models.values():
            model.unload()

    def stop_warming_up(self, seconds: float) -> None:
        """Ends the warm-up of models that answer, and waits so long for what XLA compiles."""
        for model in self.models.values():
            model.stop_warming_up(seconds)

    def poll(self) -> None:
        """Checks every folder once for new versions."""
        for model in list(self.models.values()):
            try:
                model.poll()
            # The next poll may well succeed.
            except Exception:
                logger.exception("Looking for new versions of %s failed.", model.name)

    def reload(self, configs: Sequence[ModelConfig]) -> None:
        """Switches to another list of models.

        New models are loaded, known ones changed, and the others end.

        Args:
            configs: the `ModelConfig` of each model.

        Raises:
            ServeError: one of them cannot be served; then the server keeps the models that it had.
        """
        with self._reloading, contextlib.ExitStack() as after, contextlib.ExitStack() as undo:
            after.callback(setattr, self, "_arriving", {})
            models = {}
            for config in configs:
                known = self.models.get(config.name)
                if known is not None and pathlib.Path(known.base_path) == pathlib.Path(
                    config.base_path
                ):
                    undo.callback(known.configure, known.policy, known.labels)
                    known.configure(config.policy, config.labels)
                    models[config.name] = known
                else:
                    new = self._open(config)
                    undo.callback(new.unload)
                    self._arriving = {**self._arriving, config.name: new}
                    new.load_first()
                    models[config.name] = new
            undo.pop_all()
            before, self.models = self.models, models
            # Before they end, so that no client is sent to them.
            if self._on_reload:
                self._on_reload(before.keys() - models.keys())
        for name, model in before.items():
            if models.get(name) is not model:
                model.unload()
                logger.info("%s is no longer served.", name)

    def find(
        self, spec: model_pb2.ModelSpec, arriving: bool = False
    ) -> tuple[ModelVersions, int | None]:
        """Returns the model that a `ModelSpec` names, and the version; None is the latest.

        Args:
            spec: the `ModelSpec`.
            arriving: whether a model counts that a reload is still loading.

        Raises:
            RequestRefused: there is no such model or version label.
        """
        models, name = self.models, spec.name
        if arriving:
            models = {**self._arriving, **models}
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

    def _open(self, config: ModelConfig) -> ModelVersions:
        return ModelVersions(
            config.name,
            config.base_path,
            config.policy,
            config.labels,
            self._batching,
            self._warms_up,
        )
