"""The engine on which the Beam work of a run is done: Flink or Spark, by Beam's job server."""

import dataclasses
import re

from pipeline.runners.engine_error import EngineError

#: The names of the engines.
ENGINES = ("flink", "spark")
#: Where the pool of workers is, as seen from each machine of the engine.
WORKERS = "localhost:50000"
# In seconds: how long Beam waits for the job server, and for a job to be accepted. One that is gone
# is waited for as long.
_ACCEPTED_WITHIN = 600
#: Keeps TFX from packing itself for workers: seconds and 49 MB in the temporary folder for each
#: component, never removed. Workers that are forks of ours have all that they import. TFX packs
#: nothing where an image is named; no image is used.
NO_PACKAGE = "--sdk_container_image=unused"


@dataclasses.dataclass(frozen=True)
class Engine:
    """Where Flink or Spark is.

    Attributes:
        name: one of `ENGINES`.
        master: HOST:PORT of the job server that Beam has for the engine.
        workers: HOST:PORT of the pool of Python workers, as seen from the machines of the engine.
        slots: how many workers work at the same time; Spark takes its own number of cores.

    Raises:
        EngineError: an address is not HOST:PORT.
    """

    name: str
    master: str
    workers: str = WORKERS
    slots: int = 1

    def __post_init__(self) -> None:
        for key, address in (("--master", self.master), ("--workers", self.workers)):
            if not re.fullmatch(r"[^\s:/]+:\d{1,5}", address):
                raise EngineError(f"{key} is '{address}': give HOST:PORT, such as localhost:8099.")
        if self.slots < 1:
            raise EngineError(f"--slots is {self.slots}: give 1 or more.")

    def beam_args(self, accepted_within: int = _ACCEPTED_WITHIN) -> list[str]:
        """Returns the options of Beam.

        Args:
            accepted_within: how many seconds the job server has to accept a job.
        """
        return [
            "--runner=PortableRunner",
            f"--job_endpoint={self.master}",
            "--environment_type=EXTERNAL",
            f"--environment_config={self.workers}",
            f"--job_server_timeout={accepted_within}",
            NO_PACKAGE,
            *self._of_its_own(),
        ]

    def _of_its_own(self) -> list[str]:
        """Returns the options of one engine.

        A job of Flink keeps its workers from stage to stage. Spark's executors would keep those
        that have died, too: each repetition of a task would get the same dead worker.
        """
        if self.name == "flink":
            return ["--environment_cache_millis=600000", f"--parallelism={self.slots}"]
        return []
