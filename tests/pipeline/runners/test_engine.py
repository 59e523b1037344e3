"""What is asked of an engine before a run begins: Beam's job server in Python stands for one."""

import contextlib
import queue
import threading
from concurrent import futures

import apache_beam as beam
import grpc
import pytest
from apache_beam.portability.api import beam_fn_api_pb2, beam_fn_api_pb2_grpc, endpoints_pb2
from apache_beam.runners.worker import data_plane
from tfx.utils import dependency_utils

from pipeline.commands import main
from pipeline.runners import engine_check, local_runner, worker_pool
from pipeline.runners.engine import Engine
from pipeline.runners.engine_error import EngineError
from tests.engines.clusters import free_port
from tests.pipeline.conftest import MODULES


def test_an_engine_that_works_passes(job_server, workers, tmp_path):
    engine_check.check(Engine("flink", job_server, workers), tmp_path)
    assert not list(tmp_path.iterdir())


def test_what_does_not_answer_is_named(workers, job_server, tmp_path, monkeypatch):
    monkeypatch.setattr(engine_check, "_ANSWER", 1)
    nobody = f"localhost:{free_port()}"
    with pytest.raises(EngineError, match=f"The job server of spark at {nobody} does not answer"):
        engine_check.check(Engine("spark", nobody, workers), tmp_path)
    with pytest.raises(EngineError, match=f"The pool of workers at {nobody} does not answer"):
        engine_check._check_workers(Engine("flink", job_server, nobody), 1)


def test_what_is_something_else_is_named(workers, job_server, tmp_path):
    with pytest.raises(EngineError, match=f"The program at {workers} is not a job server"):
        engine_check.check(Engine("spark", workers, workers), tmp_path)
    with pytest.raises(EngineError, match=f"The program at {job_server} is not a pool"):
        engine_check.check(Engine("flink", job_server, job_server), tmp_path)


def test_workers_that_cannot_start_end_the_check(job_server, workers, tmp_path, monkeypatch):
    monkeypatch.setattr(worker_pool.WorkerPool, "StartWorker", lambda *_: _started())
    with pytest.raises(EngineError, match="started a worker that did not connect within 1 seconds"):
        _check_with(worker_pool.start(port := free_port(), MODULES), job_server, port, tmp_path)
    why = "No space left"
    monkeypatch.setattr(worker_pool.WorkerPool, "StartWorker", lambda *_: _started(why))
    with pytest.raises(EngineError, match="cannot start a worker: No space left"):
        _check_with(worker_pool.start(port := free_port(), MODULES), job_server, port, tmp_path)


def _started(why=""):
    return beam_fn_api_pb2.StartWorkerResponse(error=why)


def _check_with(pool, job_server, port, folder):
    try:
        engine_check.check(Engine("flink", job_server, f"localhost:{port}"), folder, start_within=1)
    finally:
        pool.stop(0)


def test_a_pool_that_cannot_work_does_not_start(workers):
    """Whoever starts it reads why, instead of a job that waits without end."""
    with pytest.raises(EngineError, match="Workers cannot start: ModuleNotFoundError: .*'absent'"):
        worker_pool.start(free_port(), ("absent",))
    port = workers.rpartition(":")[2]
    with pytest.raises(EngineError, match=f"Port {port} is taken"):
        worker_pool.start(int(port), MODULES)


def test_a_folder_that_workers_do_not_see_is_named(tmp_path, monkeypatch):
    """The engine's error holds what the worker raised."""
    with pytest.raises(RuntimeError) as raised:
        engine_check.see(str(tmp_path / "absent"))

    def run(pipeline):
        raise RuntimeError(f"Pipeline failed in state FAILED: {raised.value} [while running 'Map']")

    monkeypatch.setattr(beam.Pipeline, "run", run)
    with pytest.raises(EngineError, match=f"The workers do not see the folder {tmp_path}: give"):
        engine_check._check_step(Engine("flink", "localhost:1"), tmp_path, 60)
    assert not list(tmp_path.iterdir())


def test_a_job_that_waits_for_slots_says_how_many(tmp_path, monkeypatch):
    class Waiting:
        cancelled = False

        def wait_until_finish(self, duration):
            return "RUNNING"

        def cancel(self):
            self.cancelled = True

    result = Waiting()
    monkeypatch.setattr(beam.Pipeline, "run", lambda _: result)
    engine = Engine("flink", "localhost:1", "localhost:2", slots=8)
    with pytest.raises(EngineError, match=r"lacks 8 free slots, .*\. Cancel that job"):
        engine_check._check_step(engine, tmp_path, 60)
    assert result.cancelled and not list(tmp_path.iterdir())


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
    # Its executors would keep a worker that has died for each repetition of a task.
    assert not [word for word in args if word.startswith("--environment_cache_millis")]


@pytest.mark.parametrize(
    "engine, more",
    [(Engine("spark", "localhost:8099"), []), (None, ["--direct_running_mode=multi_threading"])],
    ids=["an engine", "this machine"],
)
def test_tfx_packs_nothing_for_workers_that_have_all(monkeypatch, tmp_path, engine, more):
    """It left 49 MB in the temporary folder for each component, which no worker read."""
    monkeypatch.setattr(engine_check, "check", lambda *_: None)
    monkeypatch.setattr(dependency_utils, "build_ephemeral_package", lambda: pytest.fail("packed"))
    args = local_runner._on_engine(engine, tmp_path, more)
    assert dependency_utils.make_beam_dependency_flags(args) == args
    assert args[len(args) - len(more) :] == more


def test_the_options_of_another_runner_are_left_alone(tmp_path):
    for args in ([], ["--runner=DataflowRunner", "--region=europe-west4"]):
        assert local_runner._on_engine(None, tmp_path, args) == args


@pytest.mark.parametrize("waiting", [False, True])
def test_workers_send_small_messages(monkeypatch, waiting):
    """An engine keeps 100 messages; of Beam's 10 MB, ingestion of 5 million pairs filled Flink."""
    for name in ("SizeBasedBufferingClosableOutputStream", "_DEFAULT_SIZE_FLUSH_THRESHOLD"):
        monkeypatch.setattr(data_plane, name, getattr(data_plane, name))
    worker_pool.limit_messages()
    channel = data_plane._GrpcDataChannel()
    sent = channel._write_outputs()
    stream = channel.output_stream("instruction", "transform")
    sizes = []
    for _ in range(60):
        stream.write(bytes(100_000))
        stream.maybe_flush()
        if not waiting and channel._to_send.qsize():
            sizes.append(next(sent).ByteSize())
    stream.close()
    channel.close()
    sizes += [message.ByteSize() for message in sent]
    assert sum(sizes) >= 6_000_000
    assert max(sizes) < 1_300_000


class Control(beam_fn_api_pb2_grpc.BeamFnControlServicer):
    """An engine that gives its workers something to do, and waits."""

    def __init__(self):
        self.came = queue.Queue()
        self.end = threading.Event()

    def Control(self, responses, context):
        yield beam_fn_api_pb2.InstructionRequest(
            instruction_id="1",
            process_bundle=beam_fn_api_pb2.ProcessBundleRequest(process_bundle_descriptor_id="1"),
        )
        next(responses)
        self.came.put(dict(context.invocation_metadata())["worker_id"])
        self.end.wait()

    @contextlib.contextmanager
    def at(self, port):
        server = grpc.server(futures.ThreadPoolExecutor(4))
        beam_fn_api_pb2_grpc.add_BeamFnControlServicer_to_server(self, server)
        server.add_insecure_port(f"localhost:{port}")
        server.start()
        try:
            yield
        finally:
            self.end.set()
            server.stop(0)


def start_worker(pool, port, name):
    control = endpoints_pb2.ApiServiceDescriptor(url=f"localhost:{port}")
    request = beam_fn_api_pb2.StartWorkerRequest(worker_id=name, control_endpoint=control)
    assert not pool.StartWorker(request, None).error


def watching(name):
    return [thread for thread in threading.enumerate() if thread.name == f"worker {name}"]


def test_a_worker_that_died_before_it_connected_is_replaced():
    """Its engine waits for it without end; one that was given work is the engine's to ask for."""
    pool, control, port = worker_pool.WorkerPool(MODULES), Control(), free_port()
    start_worker(pool, port, "lost-1")
    first = pool.workers[-1]
    first.kill()
    with control.at(port):
        assert control.came.get(timeout=60) == "lost-1"
        (second,) = pool.workers
        assert second.pid != first.pid
        (watch,) = watching("lost-1")
        second.kill()
        watch.join(timeout=60)
        assert not watch.is_alive()
    assert not pool.workers


def test_a_worker_that_always_dies_is_started_three_times(caplog, monkeypatch):
    pool = worker_pool.WorkerPool(MODULES)
    start = pool._start

    def start_and_kill(*asked):
        worker, connection = start(*asked)
        worker.kill()
        return worker, connection

    monkeypatch.setattr(pool, "_start", start_and_kill)
    with caplog.at_level("WARNING"):
        start_worker(pool, free_port(), "lost-2")
        for watch in watching("lost-2"):
            watch.join(timeout=60)
    said = [record.getMessage().rpartition(": ")[2] for record in caplog.records]
    assert said == ["it is started again"] * 2 + ["that was its last start"]


def test_two_engines_that_name_their_workers_alike_keep_them():
    """Beam's own pool stops the first one's worker when the second stops its own."""
    pool = worker_pool.WorkerPool(MODULES)
    # Nobody listens there: the workers try for a while.
    for port in (free_port(), free_port()):
        start_worker(pool, port, "1-1")
    pool.StopWorker(beam_fn_api_pb2.StopWorkerRequest(worker_id="1-1"), None)
    assert [worker.is_alive() for worker in pool.workers] == [True, True]
    # Nothing takes the place of those that were told to end.
    watches = watching("1-1")
    for worker in list(pool.workers):
        worker.terminate()
    for watch in watches:
        watch.join(timeout=60)
    assert not pool.workers
