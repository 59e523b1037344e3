"""Real Flink and real Spark on this machine: each with two machines' worth of processes."""

import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

from pipeline.runners.engine import Engine

ROOT = pathlib.Path(__file__).resolve().parents[2]
#: What `make engines` fetched: the job servers of Beam, and the engines.
FETCHED = ROOT / "build" / "engines"
_HOST = "127.0.0.1"
# Java 17 hides these from Beam and Spark.
_OPENED = (
    *("java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio"),
    *("java.time", "java.util", "java.util.concurrent", "java.util.concurrent.atomic"),
    *("sun.nio.ch", "sun.nio.cs", "sun.security.action", "sun.util.calendar"),
)
JAVA = (
    "java",
    # These processes live for minutes: Java's second compiler and its parallel collectors cost more
    # than they bring.
    *("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
    *(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in _OPENED),
)
#: XLA compiles quickly instead of well. All that is compared has this, so that sums are the same.
COMPILES_QUICKLY = {
    "XLA_FLAGS": "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true",
    "TF_CPP_MIN_LOG_LEVEL": "2",
}
# Each job of Spark leaves its jars behind, in each Worker's folder.
_CLEANS_UP = (
    "-Dspark.worker.cleanup.enabled=true",
    *("-Dspark.worker.cleanup.interval=30", "-Dspark.worker.cleanup.appDataTtl=60"),
)
# In seconds: until a process listens, on a machine with much other work.
_LISTENS_WITHIN = 300


class Processes:
    """Processes that are started together, each with a log, and stopped together."""

    def __init__(self, folder: pathlib.Path) -> None:
        """Takes the folder of the logs."""
        self.folder = folder
        self.by_name: dict[str, subprocess.Popen[bytes]] = {}
        #: Where each listens that was waited for, by name.
        self.ports: dict[str, int] = {}
        self._commands: dict[str, tuple[Sequence[str], dict[str, str]]] = {}
        self._closed = False
        folder.mkdir(parents=True, exist_ok=True)

    def start(self, name: str, command: Sequence[str], **environment: str) -> None:
        """Starts a process in a group of its own.

        Raises:
            RuntimeError: all have been stopped.
        """
        if self._closed:
            raise RuntimeError(f"{name} does not start: the program ends.")
        self._commands[name] = (command, environment)
        with open(self.folder / f"{name}.log", "ab") as log:
            self.by_name[name] = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                env={**os.environ, **environment},
                start_new_session=True,
            )

    def start_again(self, name: str) -> None:
        """Starts a process that was stopped, by the same command."""
        command, environment = self._commands[name]
        self.start(name, command, **environment)

    def wait_for(self, name: str, port: int, seconds: float = _LISTENS_WITHIN) -> None:
        """Waits until a process listens.

        Raises:
            RuntimeError: it ended, or does not listen in time.
        """
        self.ports[name] = port
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            if self.by_name[name].poll() is not None:
                break
            with contextlib.suppress(OSError), socket.create_connection((_HOST, port), 1):
                return
            time.sleep(0.2)
        raise RuntimeError(f"{name} does not listen at {port}: {self.log_of(name)[-2000:]}")

    def log_of(self, name: str) -> str:
        """Returns what a process has printed."""
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def stop(self, name: str, how: int = signal.SIGTERM) -> None:
        """Stops a process and its children."""
        process = self.by_name.pop(name)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, how)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def stop_all(self) -> None:
        """Stops them, the last first; none can be started then."""
        self._closed = True
        for name in reversed(list(self.by_name)):
            self.stop(name)


def scratch(processes: Processes, name: str) -> pathlib.Path:
    """Returns the folder of a machine's temporary files, of which a killed one leaves gigabytes."""
    return processes.folder / "tmp" / name


def children_of(parent: int) -> dict[int, str]:
    """Returns the command of each child of a process, by number, the oldest first."""
    found: dict[int, str] = {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(stat.read_text().rpartition(")")[2].split()[1]) == parent:
                found[int(stat.parent.name)] = (stat.parent / "cmdline").read_text()
    return dict(sorted(found.items()))


def free_port() -> int:
    """Returns a port at which nobody listens."""
    with socket.socket() as listener:
        listener.bind((_HOST, 0))
        port: int = listener.getsockname()[1]
        return port


def _jars(*folders: pathlib.Path) -> str:
    return os.pathsep.join(f"{folder}/*" for folder in folders)


def _start_workers(processes: Processes) -> str:
    """Starts a pool of workers; returns its address."""
    port = free_port()
    processes.start(
        "workers",
        [sys.executable, "-m", "pipeline.commands.main", "workers", "--port", str(port)],
        PYTHONPATH=str(ROOT),
        # One worker per core: threads of their own would only get in each other's way.
        OMP_NUM_THREADS="1",
        **COMPILES_QUICKLY,
    )
    processes.wait_for("workers", port)
    return f"localhost:{port}"


def _start_job_server(
    processes: Processes, command: Sequence[str], *options: str, **environment: str
) -> str:
    """Starts a job server of Beam; returns its address."""
    port = free_port()
    processes.start(
        "job-server",
        [
            *command,
            f"--job-port={port}",
            "--artifact-port=0",
            "--expansion-port=0",
            f"--artifacts-dir={processes.folder / 'artifacts'}",
            *options,
        ],
        **environment,
    )
    processes.wait_for("job-server", port)
    return f"localhost:{port}"


@contextlib.contextmanager
def flink(folder: pathlib.Path, network: str = "128m") -> Iterator[tuple[Engine, Processes]]:
    """Runs a JobManager and two TaskManagers of a slot each, with Beam's job server and workers.

    Args:
        folder: where the processes write.
        network: memory of a TaskManager for what tasks exchange; Flink's own is 128m.
    """
    processes = Processes(folder)
    rpc, rest = free_port(), free_port()
    settings = {
        "jobmanager.rpc.address": _HOST,
        "jobmanager.rpc.port": rpc,
        "rest.address": _HOST,
        "rest.port": rest,
        "rest.bind-port": rest,
        "taskmanager.host": _HOST,
        "taskmanager.numberOfTaskSlots": 1,
        "taskmanager.cpu.cores": "1.0",
        "taskmanager.memory.framework.heap.size": "128m",
        "taskmanager.memory.task.heap.size": "384m",
        "taskmanager.memory.framework.off-heap.size": "128m",
        "taskmanager.memory.task.off-heap.size": "0m",
        "taskmanager.memory.network.min": network,
        "taskmanager.memory.network.max": network,
        "taskmanager.memory.managed.size": "256m",
        "taskmanager.memory.jvm-metaspace.size": "256m",
        "taskmanager.memory.jvm-overhead.min": "192m",
        "taskmanager.memory.jvm-overhead.max": "192m",
        # Ingestion branches: with 512 buffers for each exchange, as Flink has it, ten times this
        # memory would be needed.
        "taskmanager.network.sort-shuffle.min-buffers": 64,
        # A task that was lost with its machine or its Python worker is done again. A fixed delay
        # counts each of the tasks that a machine takes along: three attempts end at once. Together
        # the delays are longer than the 50 seconds after which Flink gives up a lost machine.
        "restart-strategy.type": "exponential-delay",
        "restart-strategy.exponential-delay.initial-backoff": "3s",
        "restart-strategy.exponential-delay.backoff-multiplier": 2.0,
        "restart-strategy.exponential-delay.max-backoff": "30s",
        "restart-strategy.exponential-delay.attempts-before-reset-backoff": 5,
        "io.tmp.dirs": str(folder / "tmp"),
    }
    (folder / "tmp").mkdir(parents=True, exist_ok=True)
    (folder / "flink-conf.yaml").write_text(
        "".join(f"{key}: {value}\n" for key, value in settings.items())
    )
    (folder / "log4j2.properties").write_text(
        "rootLogger.level = INFO\nrootLogger.appenderRef.out.ref = Out\nappender.out.name = Out\n"
        "appender.out.type = CONSOLE\nappender.out.layout.type = PatternLayout\n"
        "appender.out.layout.pattern = %d %p %c{1} %m%n\n"
    )
    logs = f"-Dlog4j.configurationFile=file:{folder / 'log4j2.properties'}"
    libraries = _jars(FETCHED / "packages" / "pyflink" / "lib")
    of_runtime, where = "org.apache.flink.runtime", f"--configDir={folder}"
    manager = [f"{of_runtime}.entrypoint.StandaloneSessionClusterEntrypoint", where]
    task = [f"{of_runtime}.taskexecutor.TaskManagerRunner", where]
    try:
        processes.start("jobmanager", [*JAVA, "-Xmx512m", logs, "-cp", libraries, *manager])
        processes.wait_for("jobmanager", rest)
        for name in ("taskmanager-1", "taskmanager-2"):
            own = scratch(processes, name)
            own.mkdir(parents=True, exist_ok=True)
            # A thread of Beam ends where the heap is full; a job would wait for it for ever.
            memory = ("-Xmx512m", "-XX:MaxMetaspaceSize=256m", "-XX:+ExitOnOutOfMemoryError")
            command = [*JAVA, *memory, logs, "-cp", libraries, *task, f"-Dio.tmp.dirs={own}"]
            processes.start(name, command)
        driver = "org.apache.beam.runners.flink.FlinkJobServerDriver"
        command = [*JAVA, "-Xmx768m", "-cp", _jars(FETCHED / "jars" / "flink"), driver]
        master = _start_job_server(processes, command, f"--flink-master={_HOST}:{rest}")
        yield Engine("flink", master, _start_workers(processes), slots=2), processes
    finally:
        processes.stop_all()


@contextlib.contextmanager
def spark(folder: pathlib.Path, tasks: int = 0) -> Iterator[tuple[Engine, Processes]]:
    """Runs a Master and two Workers of a core each, with Beam's job server and workers.

    Args:
        folder: of logs and of what the processes write.
        tasks: into how many a stage is divided; 0 is one for each core. An executor holds in
            memory what a task gives, and each task takes time of its own.
    """
    processes = Processes(folder)
    home = FETCHED / "packages" / "pyspark"
    environment = {
        "SPARK_HOME": str(home),
        "SPARK_SCALA_VERSION": "2.12",
        "SPARK_LOCAL_IP": _HOST,
        "SPARK_LOCAL_DIRS": str(folder / "tmp"),
    }
    port = free_port()
    url = f"spark://{_HOST}:{port}"
    java = [*JAVA, "-cp", _jars(home / "jars")]
    where = ["--host", _HOST, "--webui-port", "0"]
    try:
        processes.start(
            "master",
            [*java, "org.apache.spark.deploy.master.Master", *where, "--port", str(port)],
            **environment,
        )
        processes.wait_for("master", port)
        for number in (1, 2):
            of_worker = ["--cores", "1", "--memory", "1g", "--work-dir", str(folder / "work"), url]
            processes.start(
                f"worker-{number}",
                [*java, *_CLEANS_UP, "org.apache.spark.deploy.worker.Worker", *where, *of_worker],
                **environment,
            )
        settings = {
            "spark.driver.host": _HOST,
            "spark.driver.bindAddress": _HOST,
            "spark.executor.memory": "768m",
            # Java's own cannot write what Beam keeps between stages.
            "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
            "spark.ui.enabled": "false",
            "spark.local.dir": str(folder / "tmp"),
            **({"spark.default.parallelism": str(tasks)} if tasks else {}),
        }
        command = [
            *JAVA,
            "-Xmx1g",
            *(f"-D{key}={value}" for key, value in settings.items()),
            "-cp",
            _jars(FETCHED / "jars" / "spark", home / "jars"),
            "org.apache.beam.runners.spark.SparkJobServerDriver",
        ]
        master = _start_job_server(processes, command, f"--spark-master-url={url}", **environment)
        yield Engine("spark", master, _start_workers(processes), slots=2), processes
    finally:
        processes.stop_all()


#: What brings up each engine.
CLUSTERS = {"flink": flink, "spark": spark}
