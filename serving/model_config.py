"""TensorFlow Serving's model config: which models a server has, and which of their versions."""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING

from serving import text_protos
from serving.bucket_folder import is_address
from serving.errors import ServeError
from serving.version_folders import check_local

if TYPE_CHECKING:
    from tensorflow_serving.config import model_server_config_pb2


@dataclasses.dataclass(frozen=True)
class VersionPolicy:
    """Which versions in a folder are served: the latest ones, specific ones, or all.

    Attributes:
        latest: how many of the latest; None is no limit.
        specific: the numbers of the versions that may be served; None is every version.
    """

    latest: int | None = 1
    specific: frozenset[int] | None = None

    def allows(self, version: int) -> bool:
        """Whether a version may be served at all."""
        return self.specific is None or version in self.specific


LATEST_VERSION = VersionPolicy()
ALL_VERSIONS = VersionPolicy(latest=None)


@dataclasses.dataclass(frozen=True)
class ModelConfig:
    """One model of a server.

    Attributes:
        name: its name in requests.
        base_path: the folder of its versions.
        policy: which of them are served.
        labels: dict from label to version; a request may name a label instead of a version.
    """

    name: str
    base_path: str
    policy: VersionPolicy = LATEST_VERSION
    labels: dict[str, int] = dataclasses.field(default_factory=dict)


def read_config_file(path: str | os.PathLike[str]) -> list[ModelConfig]:
    """Reads TensorFlow Serving's `--model_config_file`.

    Args:
        path: a text file with a `ModelServerConfig`; relative base paths start at its folder.

    Returns:
        A list of `ModelConfig`.

    Raises:
        ServeError: it cannot be read or understood; one sentence.
    """
    from tensorflow_serving.config import model_server_config_pb2

    config = text_protos.read(path, model_server_config_pb2.ModelServerConfig(), "model config")
    return configs_of(config, os.path.dirname(os.path.abspath(path)))


def configs_of(
    config: model_server_config_pb2.ModelServerConfig, folder: str | None = None
) -> list[ModelConfig]:
    """Returns the list of `ModelConfig` of a `ModelServerConfig` message.

    Args:
        config: the message.
        folder: where relative base paths start; None refuses relative ones.

    Raises:
        ServeError: it lists no model, or one that cannot be served, such as one at an address; one
            sentence.
    """
    if config.WhichOneof("config") != "model_config_list":
        raise ServeError("The model config has no model_config_list, which names the models.")
    configs: list[ModelConfig] = []
    names: set[str] = set()
    for one in config.model_config_list.config:
        if not one.name or not one.base_path:
            raise ServeError("Each model of the model config needs a name and a base_path.")
        if one.name in names:
            raise ServeError(f"The model config names the model {one.name} twice.")
        names.add(one.name)
        if one.model_platform not in ("", "tensorflow"):
            raise ServeError(
                f"The model {one.name} has the platform '{one.model_platform}'; this server only "
                "supports 'tensorflow'."
            )
        base_path = one.base_path.removeprefix("file://")
        if not is_address(base_path):
            check_local(base_path)
        if not is_address(base_path) and not os.path.isabs(base_path):
            if folder is None:
                raise ServeError(
                    f"The base_path of the model {one.name} must be absolute; got "
                    f"'{one.base_path}'."
                )
            base_path = os.path.join(folder, base_path)
        configs.append(ModelConfig(one.name, base_path, _policy(one), dict(one.version_labels)))
    return configs


def _policy(config: model_server_config_pb2.ModelConfig) -> VersionPolicy:
    policy = config.model_version_policy
    choice = policy.WhichOneof("policy_choice")
    if choice == "all":
        return ALL_VERSIONS
    if choice == "specific":
        if not policy.specific.versions:
            raise ServeError(
                f"The version policy of the model {config.name} is specific but names no version."
            )
        return VersionPolicy(latest=None, specific=frozenset(policy.specific.versions))
    return VersionPolicy(latest=policy.latest.num_versions or 1)
