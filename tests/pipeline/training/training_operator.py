"""What Kubeflow's training operator does with a TFJob, on this machine.

It starts N processes by one command, each with its `TF_CONFIG`, and starts each that ends with
another status than 0 again (`restartPolicy: OnFailure`) with the same `TF_CONFIG`.
"""

import json
import os
import pathlib
import signal
import socket
import subprocess
import time

ROOT = pathlib.Path(__file__).parents[3]


def cluster_of(count):
    """A cluster of workers at free ports."""
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    addresses = [f"127.0.0.1:{listener.getsockname()[1]}" for listener in listeners]
    for listener in listeners:
        listener.close()
    return {"worker": addresses}


def tf_config(cluster, index):
    """`TF_CONFIG` as the operator writes it."""
    task = {"type": "worker", "index": index}
    return json.dumps({"cluster": cluster, "task": task, "environment": "cloud"})


class Operator:
    """Pods of one command.

    Attributes:
        restarts: how often each pod was started again.
        statuses: the status of each pod that ended, the oldest first, by pod.
    """

    def __init__(self, command, count, log, backoff_limit=6):
        self._command, self._log, self._limit = command, log, backoff_limit
        self._cluster = cluster_of(count)
        self.statuses = [[] for _ in range(count)]
        self.pods = [self._start(index) for index in range(count)]

    def _start(self, index):
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "TF_CONFIG": tf_config(self._cluster, index),
        }
        with open(self._log, "ab") as log:
            return subprocess.Popen(
                self._command, env=environment, cwd=ROOT, stdout=log, stderr=log
            )

    def step(self):
        """Looks after the pods one time; returns whether all have ended well."""
        for index, pod in enumerate(self.pods):
            status = pod.poll()
            if status:
                self.statuses[index].append(status)
                assert len(self.statuses[index]) <= self._limit, "backoffLimit"
                self.pods[index] = self._start(index)
        time.sleep(0.05)
        return all(pod.poll() == 0 for pod in self.pods)

    def kill(self, index):
        """Kills a pod's first process; what it started must end by itself."""
        self.pods[index].send_signal(signal.SIGKILL)
        self.pods[index].wait()

    def close(self):
        """Ends what is left."""
        for pod in self.pods:
            pod.kill()
            pod.wait()
