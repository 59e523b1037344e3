"""A run that is ended when one of its components has ended."""

import pathlib
import signal
import time
from collections.abc import Callable, Sequence

from tests.engines import artifacts, clusters, runs

INGESTION = "ParallelTextExampleGen"
TRANSFORM = "TextTransform"
EVALUATOR = "Evaluator"
# In seconds: for a component with all its tries.
_PATIENCE = 3600.0


class UntilDone:
    """A run that is ended when a component has ended; it can be started again, and goes on."""

    def __init__(
        self,
        component: str,
        folder: pathlib.Path,
        data: pathlib.Path,
        processes: clusters.Processes,
        recipe: str = runs.RECIPE,
        settings: Sequence[str] = runs.SETTINGS,
    ) -> None:
        """Prepares it.

        Args:
            component: its name.
            folder: of the run.
            data: the pairs.
            processes: those to which the run's process is added, under the folder's name.
            recipe: its name.
            settings: what is set in it.
        """
        self.component = component
        self.folder = folder
        self._data = data
        self._processes = processes
        self._recipe, self._settings = recipe, settings

    def start(self, *options: str) -> None:
        """Starts it."""
        (self.folder / "run.log").unlink(missing_ok=True)
        runs.start(
            self._processes,
            self.folder.name,
            self._data,
            self.folder,
            *options,
            recipe=self._recipe,
            settings=self._settings,
        )

    def is_running(self) -> bool:
        """Returns whether the component has begun."""
        return self._logged("is running")

    def is_done(self) -> bool:
        """Returns whether the component has ended well."""
        return self._logged("is finished")

    def is_writing(self) -> bool:
        """Returns whether shards are being written."""
        found = (self.folder / "pipeline" / self.component).glob("*/*/Split-*/beam-temp-*/*")
        return any(found)

    def has_ended(self) -> bool:
        """Returns whether the process has ended."""
        return self._processes.by_name[self.folder.name].poll() is not None

    def wait_until(self, *conditions: Callable[[], bool]) -> None:
        """Waits until one of some conditions is true.

        Raises:
            RuntimeError: none is, in time.
        """
        end = time.monotonic() + _PATIENCE
        while not any(condition() for condition in conditions):
            if time.monotonic() > end:
                raise RuntimeError(f"{self.component}: nothing has happened for {_PATIENCE} s.")
            time.sleep(0.02)

    def finish(self) -> None:
        """Waits until the component is done, and ends the run.

        Raises:
            RuntimeError: the run has failed; what it said last.
        """
        self.wait_until(self.is_done, self.has_ended)
        done, said = self.is_done(), self.last_line()
        self.stop()
        if not done:
            raise RuntimeError(said)

    def stop(self) -> None:
        """Ends it."""
        self._processes.stop(self.folder.name, signal.SIGKILL)

    def last_line(self) -> str:
        """Returns what it said last."""
        lines = self._processes.log_of(self.folder.name).strip().splitlines()
        return lines[-1] if lines else ""

    def log(self) -> str:
        """Returns what it has logged since its last start."""
        path = self.folder / "run.log"
        return path.read_text(errors="replace") if path.is_file() else ""

    def written(self) -> dict[str, str]:
        """Returns digests of what the component has written."""
        found = artifacts.of_components(self.folder / "pipeline")
        return {key: value for key, value in found.items() if key.startswith(f"{self.component}/")}

    def _logged(self, words: str) -> bool:
        return f"Component {self.component} {words}" in self.log()
