"""What stands for an engine: Beam's job server in Python, and a pool of workers."""

import pytest

from tests.engines.clusters import free_port

# The steps of these tests need no more.
MODULES = ("apache_beam.runners.worker.sdk_worker",)


@pytest.fixture(scope="module")
def job_server(tmp_path_factory):
    """Its address."""
    from apache_beam.runners.portability import local_job_service

    service = local_job_service.LocalJobServicer(str(tmp_path_factory.mktemp("staging")))
    yield f"localhost:{service.start_grpc_server()}"
    service.stop()


@pytest.fixture(scope="module")
def workers():
    """The address of a pool."""
    from pipeline.runners import worker_pool

    port = free_port()
    server = worker_pool.start(port, MODULES)
    yield f"localhost:{port}"
    server.stop(0)
