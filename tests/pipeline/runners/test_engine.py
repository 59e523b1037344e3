"""What is asked of an engine before a run begins: Beam's job server in Python stands for one."""

import pathlib
import socket
import stat

import pytest
from apache_beam.runners.portability import local_job_service

from pipeline.commands import main
from pipeline.runners import engine_check, worker_pool
from pipeline.runners.engine import Engine
from pipeline.runners.engine_error import EngineError


def free_port():
    with socket.socket() as listener:
        listener.bind(("localhost", 0))
        return listener.getsockname()[1]


@pytest.fixture(scope="module")
def job_server(tmp_path_factory):
    """Its address."""
    service = local_job_service.LocalJobServicer(str(tmp_path_factory.mktemp("staging")))
    yield f"localhost:{service.start_grpc_server()}"
    service.stop()


@pytest.fixture(scope="module")
def workers():
    """The address of a pool."""
    port = free_port()
    server = worker_pool.start(port)
    yield f"localhost:{port}"
    server.stop(0)


def test_an_engine_that_works_passes(job_server, workers, tmp_path):
    engine_check.check(Engine("flink", job_server, workers), tmp_path)
    assert not list(tmp_path.iterdir())


def test_what_does_not_answer_is_named(job_server, workers, tmp_path, monkeypatch):
    monkeypatch.setattr(engine_check, "_ANSWER", 1)
    nobody = f"localhost:{free_port()}"
    for engine, words in {
        Engine("spark", nobody, workers): f"The job server of spark at {nobody} does not answer",
        Engine("spark", workers, workers): f"At {workers} answers something that is no job server",
        Engine("flink", job_server, nobody): f"The pool of workers at {nobody} does not answer",
        Engine("flink", job_server, job_server): f"At {job_server} answers something that is no po",
    }.items():
        with pytest.raises(EngineError, match=words):
            engine_check.check(engine, tmp_path)


def test_workers_that_cannot_start_end_the_check(job_server, workers, tmp_path, monkeypatch):
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text("#!/bin/sh\necho No module named apache_beam >&2; exit 1\n")
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(python.parent), prepend=":")
    with pytest.raises(EngineError, match="started a worker that did not come within 1 seconds"):
        engine_check.check(Engine("flink", job_server, workers), tmp_path, start_within=1)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    with pytest.raises(EngineError, match="cannot start a worker: .*No such file.*python"):
        engine_check.check(Engine("flink", job_server, workers), tmp_path)


# Beam's job server lets the thread of a failed job end with its error.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_folder_that_workers_do_not_see_is_named(job_server, workers, tmp_path, monkeypatch):
    monkeypatch.setattr(pathlib.Path, "touch", lambda path: None)
    with pytest.raises(EngineError, match=f"The workers do not see the folder {tmp_path}: give"):
        engine_check._check_step(Engine("flink", job_server, workers), tmp_path, 60)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--engine", "flink"], "--engine flink needs --master HOST:PORT"),
        (["--master", "localhost:1"], "--master needs --engine"),
        (["--engine", "flink", "--master", "localhost"], "--master is 'localhost': give HOST:PORT"),
        (["--engine", "spark", "--master", "h:1", "--workers", "50000"], "--workers is '50000'"),
        (["--engine", "flink", "--master", "h:1", "--slots", "0"], "--slots is 0"),
    ],
)
def test_options_that_do_not_fit_end_with_a_status_of_their_own(capsys, tmp_path, options, words):
    output = str(tmp_path / "run")
    assert (
        main.main(["run", "localization_en_fr", "--data", "d", "--output", output, *options]) == 4
    )
    assert f"verbatim: {words}" in capsys.readouterr().err


def test_an_engine_fills_in_the_options_of_beam():
    args = Engine("flink", "localhost:8099", "localhost:50000", 2).beam_args()
    assert {"--job_endpoint=localhost:8099", "--parallelism=2"} < set(args)
    args = Engine("spark", "localhost:8099").beam_args()
    assert "--environment_cache_millis=600000" in args
