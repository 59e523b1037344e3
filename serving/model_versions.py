"""The versions of one model: loaded, warmed up, used, and retired without dropping a request."""

import contextlib
import dataclasses
import gc
import logging
import os
import pathlib
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence

import grpc

from serving import memory
from serving.batching import Batching
from serving.bucket_folder import BucketFolder, is_address
from serving.errors import RequestRefused, ServeError, invalid
from serving.human_sentence import human_sentence
from serving.model_config import LATEST_VERSION, VersionPolicy
from serving.servable import Servable
from serving.version_folders import (
    MODEL_FILE,
    Fingerprint,
    check_holds_a_model,
    fingerprint_of,
    numbered_folders,
)
from serving.warm_up import WarmUp, WarmUpsBehind

logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class VersionState:
    """The state of one version.

    Attributes:
        version: its number.
        state: a name of `ModelVersionStatus.State`.
        error: why it could not be loaded; empty if it could.
    """

    version: int
    state: str
    error: str = ""


@dataclasses.dataclass
class _Loaded:
    servable: Servable
    running: int = 0
    retired: bool = False


class ModelVersions:
    """The versions of one model folder, of which the latest good ones answer.

    One thread calls `load_first` and then `poll` repeatedly; any number of threads call `use`,
    `states` and `configure`.

    A version is loaded when it holds `saved_model.pb`. While serving, its files must also be the
    same at two polls, and not change while they are read: a folder that is still being copied
    waits. A version that cannot be loaded is logged, and tried again only when its files change;
    where the policy asks for the latest ones, the one before it answers in its place. A version
    ends when policy or folder no longer has it and its replacement has been loaded. When all are
    deleted, the loaded ones keep answering.

    Args:
        name: the model's name, for messages.
        base: the folder that holds the version folders, or its address in a bucket.
        policy: the `VersionPolicy`; by default the latest version is served.
        labels: label to version.
        batching: see `Servable`.
        warms_up: whether a version runs its warm-up requests. The first versions answer after one
            of them, without XLA at first, and run the others when they are asked for; later
            versions replace one that answers, and run all of them before.

    Raises:
        ServeError: the folder does not exist or holds no version with a SavedModel.
    """

    def __init__(
        self,
        name: str,
        base: str | os.PathLike[str],
        policy: VersionPolicy = LATEST_VERSION,
        labels: Mapping[str, int] | None = None,
        batching: Batching | None = None,
        warms_up: bool = True,
    ) -> None:
        self.name = name
        self.base_path = os.fspath(base)
        self._bucket = BucketFolder(self.base_path) if is_address(base) else None
        self.base = self._bucket.folder if self._bucket else pathlib.Path(base)
        self.policy = policy
        self.labels = dict(labels or {})
        self._batching = batching
        self._warms_up = warms_up
        # Held while what requests read is read or changed.
        self._lock = threading.Lock()
        # Held while versions are loaded and retired.
        self._changing = threading.RLock()
        # The versions that answer.
        self._loaded: dict[int, _Loaded] = {}
        self._states: dict[int, VersionState] = {}
        # Fingerprints of files: of those that could not be loaded, and at the last poll.
        self._failed: dict[int, Fingerprint] = {}
        self._seen: dict[int, Fingerprint] = {}
        self._behind = WarmUpsBehind()
        self._bring()
        check_holds_a_model(self.base_path, self.base, self._versions_on_disk())
        for version, _ in self._candidates()[: self.policy.latest]:
            self._set_state(version, "START")

    @property
    def version(self) -> int | None:
        """The number of the latest version that answers; None before the first is loaded."""
        with self._lock:
            return max(self._loaded, default=None)

    def states(self) -> list[VersionState]:
        """Returns the `VersionState` of every version seen so far, the latest first."""
        with self._lock:
            return [self._states[version] for version in sorted(self._states, reverse=True)]

    def version_of(self, label: str) -> int:
        """Returns the version that has a label.

        Raises:
            RequestRefused: INVALID_ARGUMENT, there is no such label.
        """
        labels = self.labels
        if label not in labels:
            raise invalid(f"Unrecognized servable version label: {label}.")
        return labels[label]

    @contextlib.contextmanager
    def use(self, version: int | None = None) -> Iterator[Servable]:
        """Lends a `Servable` that answers; it is not retired while it is lent.

        Args:
            version: its number; None is the latest.

        Raises:
            RequestRefused: NOT_FOUND, the version is not one that answers.
        """
        with self._lock:
            number = max(self._loaded, default=0) if version is None else version
            loaded = self._loaded.get(number)
            if loaded is None:
                asked = (
                    f"Latest({self.name})"
                    if version is None
                    else f"Specific({self.name}, {version})"
                )
                raise RequestRefused(
                    grpc.StatusCode.NOT_FOUND, f"Servable not found for request: {asked}."
                )
            loaded.running += 1
        try:
            yield loaded.servable
        finally:
            with self._lock:
                loaded.running -= 1
                ended = self._ends(loaded)
            if ended:
                loaded.servable.close()

    def load_first(self) -> None:
        """Loads the versions that the policy asks for; of the latest, those that can be loaded.

        Raises:
            ServeError: there is none, a specific one is missing or bad, or a label has no version
                that answers.
        """
        with self._changing:
            self._load_missing(answers_early=True)
            while not self._has_enough(self._allowed()) and self._bring():
                self._load_missing(answers_early=True)
            if not self._loaded:
                errors = "; ".join(
                    f"version {state.version}: {state.error or 'its folder is gone'}"
                    for state in self.states()
                )
                raise ServeError(f"No version in {self.base} can be loaded ({errors}).")
            self._check(self.labels)

    def configure(self, policy: VersionPolicy, labels: Mapping[str, int]) -> None:
        """Switches to another policy and other labels, and loads and retires versions accordingly.

        Raises:
            ServeError: a specific version, or that of a label, cannot be served; then nothing
                changes.
        """
        with self._changing:
            before, self.policy = self.policy, policy
            try:
                self._bring()
                self._load_missing()
                self._check(labels)
            except BaseException:
                self.policy = before
                self._retire_all_but(self._chosen())
                raise
            self.labels = dict(labels)
            self._retire_all_but(self._chosen())

    def poll(self) -> None:
        """Checks the folder once: loads new versions, retires those that the policy drops."""
        with self._changing:
            if self._bucket:
                self._bucket.look(self.policy.allows, self._needed())
            seen, self._seen = self._seen, {}
            chosen: list[int] = []
            for version, path in self._candidates():
                if self._has_enough(chosen):
                    break
                if version in self._loaded:
                    chosen.append(version)
                    continue
                fingerprint = self._seen[version] = fingerprint_of(path)
                if self._failed.get(version) == fingerprint:
                    continue
                # Not the same as at the last poll: the files are still being written. An older
                # version is not loaded in the meantime: the next poll would replace it.
                if seen.get(version) != fingerprint:
                    return
                if self._load(version, path, fingerprint):
                    chosen.append(version)
            self._retire_all_but(chosen)

    def unload(self) -> None:
        """Ends every version after its last request; none answers any more."""
        with self._changing:
            self._retire(list(self._loaded))
            if self._bucket:
                self._bucket.close()

    def _bring(self) -> bool:
        """Copies what the policy asks for from a bucket; returns whether there was any."""
        bucket = self._bucket
        return bucket is not None and bucket.bring_first(self.policy.allows, self._needed())

    def _needed(self) -> int | None:
        """Returns how many of the latest versions may have to answer; None for all."""
        return None if self.policy.latest is None else self.policy.latest + len(self._failed)

    def _has_enough(self, versions: Sequence[int]) -> bool:
        return self.policy.latest is not None and len(versions) >= self.policy.latest

    def _allowed(self) -> list[int]:
        """Returns the loaded versions that the policy allows."""
        return [version for version in self._loaded if self.policy.allows(version)]

    def _load_missing(self, answers_early: bool = False) -> None:
        """Loads the latest versions that can be loaded, until the policy has enough of them."""
        for version, path in self._candidates():
            if self._has_enough(self._allowed()):
                return
            if version not in self._loaded:
                self._load(version, path, fingerprint_of(path), answers_early)

    def _chosen(self) -> list[int]:
        """Returns the loaded versions that the policy and the folder have."""
        versions = [version for version, _ in self._candidates() if version in self._loaded]
        return versions if self.policy.latest is None else versions[: self.policy.latest]

    def _check(self, labels: Mapping[str, int]) -> None:
        """Refuses labels, and a policy, that the loaded versions cannot fulfil."""
        versions = self._allowed()
        errors = {state.version: state.error for state in self.states()}
        for version in sorted(self.policy.specific or ()):
            if version not in versions:
                reason = errors.get(version) or "there is no such version"
                raise ServeError(f"Version {version} of {self.name} cannot be served: {reason}.")
        for label, version in labels.items():
            if version not in versions:
                raise ServeError(
                    f"The label '{label}' of {self.name} names version {version}, which is not "
                    "served; label one that is."
                )

    def _versions_on_disk(self) -> dict[int, pathlib.Path]:
        """Returns number to folder of the versions that the policy allows, the latest first."""
        numbered = numbered_folders(self.base)
        return {
            version: numbered[version]
            for version in sorted(numbered, reverse=True)
            if self.policy.allows(version)
        }

    def _candidates(self) -> list[tuple[int, pathlib.Path]]:
        return [
            (version, path)
            for version, path in self._versions_on_disk().items()
            if (path / MODEL_FILE).is_file()
        ]

    def _load(
        self,
        version: int,
        path: pathlib.Path,
        fingerprint: Fingerprint,
        answers_early: bool = False,
    ) -> bool:
        """Loads one version and lets it answer; returns whether that succeeded.

        Args:
            answers_early: whether it answers before it is warm.
        """
        self._set_state(version, "LOADING")
        logger.info("Loading %s version %d from %s.", self.name, version, path)
        servable = warm_up = None
        try:
            servable = Servable(path, version, self._batching)
            if self._warms_up:
                warm_up = WarmUp(servable, path, self.name)
                if answers_early:
                    warm_up.run_first()
                else:
                    warm_up.run_all()
            if fingerprint_of(path) != fingerprint:
                raise ValueError("its files changed while it was loaded")
        # Whatever error a new version has, the old one must keep answering.
        except Exception as error:
            reason = human_sentence(str(error)) if str(error) else type(error).__name__
            if servable is not None:
                servable.close()
            self._failed[version] = fingerprint
            self._set_state(version, "END", reason)
            answering = self.version
            others = "no version answers" if answering is None else f"version {answering} answers"
            logger.warning(
                "%s version %d cannot be loaded and is skipped (%s): %s",
                self.name,
                version,
                others,
                reason,
            )
            logger.debug("The failure in full:", exc_info=True)
            return False
        self._failed.pop(version, None)
        memory.give_back()
        with self._lock:
            self._loaded[version] = _Loaded(servable)
            self._states[version] = VersionState(version, "AVAILABLE")
        logger.info("%s version %d is available.", self.name, version)
        if warm_up and answers_early:
            self._behind.start(warm_up, lambda: self.use(version))
        return True

    def stop_warming_up(self, seconds: float) -> None:
        """Ends the warm-up of versions that answer, and waits so long for what XLA compiles."""
        self._behind.stop(seconds)

    def _retire_all_but(self, versions: Collection[int]) -> None:
        """Retires what is loaded and not among these; if these are none, everything stays."""
        if versions:
            self._retire([version for version in self._loaded if version not in versions])

    def _retire(self, versions: Collection[int]) -> None:
        ended = []
        with self._lock:
            before = max(self._loaded, default=0)
            for version in versions:
                loaded = self._loaded.pop(version)
                loaded.retired = True
                self._states[version] = VersionState(version, "UNLOADING")
                if self._ends(loaded):
                    ended.append(loaded)
            latest = max(self._loaded, default=None)
        for version in versions:
            logger.info("%s version %d is retired.", self.name, version)
        if latest is not None and latest < before:
            logger.warning(
                "%s is rolled back from version %d to version %d.", self.name, before, latest
            )
        for loaded in ended:
            loaded.servable.close()
        if versions:
            # Graphs refer to themselves.
            gc.collect()

    def _ends(self, loaded: _Loaded) -> bool:
        """Whether a version must be closed: it is retired and nobody uses it.

        It notes the end. The lock is held.
        """
        if not loaded.retired or loaded.running:
            return False
        version = loaded.servable.version
        # Otherwise the same version has been loaded anew since.
        if version not in self._loaded:
            self._states[version] = VersionState(version, "END")
        return True

    def _set_state(self, version: int, state: str, error: str = "") -> None:
        with self._lock:
            self._states[version] = VersionState(version, state, error)
