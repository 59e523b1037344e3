"""The pool that starts the Python workers of an engine, on each of its machines."""

import os
import shutil
import sys
import threading
from typing import Any

from apache_beam.runners.worker import worker_pool_main


class WorkerPool(worker_pool_main.BeamFnExternalWorkerPoolServicer):
    """Beam's pool, for engines of several processes that share a machine.

    Two TaskManagers give their workers the same names. Beam's own pool then stops the worker of one
    when the other has done its work. Here workers are not stopped: each ends when its engine closes
    the connection to it.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._lock = threading.Lock()
        self._number = 0

    def StartWorker(self, start_worker_request: Any, unused_context: Any) -> Any:
        """Starts a worker; see the base."""
        with self._lock:
            response = super().StartWorker(start_worker_request, unused_context)
            process = self._worker_processes.pop(start_worker_request.worker_id, None)
            if process:
                self._number += 1
                self._worker_processes[f"process {self._number}"] = process
                # Nobody else reads what a worker prints, which would fill the pipe.
                threading.Thread(
                    target=shutil.copyfileobj, args=(process.stdout, sys.stderr.buffer), daemon=True
                ).start()
            for name, other in list(self._worker_processes.items()):
                if other.poll() is not None:
                    del self._worker_processes[name]
        return response


def start(port: int) -> Any:
    """Starts a pool; returns its server, which ends with the process.

    Args:
        port: where it listens.
    """
    # Beam starts `python`, which must be this one.
    os.environ["PATH"] = os.pathsep.join((os.path.dirname(sys.executable), os.environ["PATH"]))
    _, server = WorkerPool.start(use_process=True, port=port)
    return server
