"""serving/deploy: the embedded server runs on its files, and passes its health checks."""

import pathlib
import re
import shlex
import shutil
import subprocess
import urllib.request

import grpc
import pytest
import tensorflow as tf
from google.protobuf import text_format
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tensorflow_serving.apis import (
    model_management_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

from serving.batching import Batching
from serving.batching_config import read_batching_file
from serving.model_config import ModelConfig, read_config_file
from serving.server import ModelServer, ServerSettings
from tests.serving.manifests import CONFIG, compose_services

WAIT = 60


def test_our_server_reads_the_files(caplog):
    assert read_config_file(CONFIG / "models.config") == [
        ModelConfig("localization_en_fr", "/models/localization_en_fr")
    ]
    # As many texts as a request may hold.
    assert read_batching_file(CONFIG / "batching.config") == Batching(
        128, 0.002, max_queued=1024, parallel=2
    )
    assert not caplog.text


@pytest.fixture
def served(tmp_path, saved_models):
    """The configuration with its paths replaced, and a server that runs on it."""
    models = tmp_path / "models"
    text = (
        (CONFIG / "models.config").read_text(encoding="utf-8").replace('"/models/', f'"{models}/')
    )
    path = tmp_path / "models.config"
    path.write_text(text, encoding="utf-8")
    for config in read_config_file(path):
        shutil.copytree(saved_models / "plain", pathlib.Path(config.base_path) / "1")
    shutil.copytree(saved_models / "starred", models / "second" / "1")
    batching = read_batching_file(CONFIG / "batching.config")
    settings = ServerSettings(port=0, rest_port=0, batching=batching)
    with (
        ModelServer(read_config_file(path), settings) as server,
        grpc.insecure_channel(server.address) as channel,
    ):
        server.channel, server.config, server.folder = channel, text, models
        yield server


def serving(server, service=""):
    """Whether a probe of Kubernetes would pass."""
    request = health_pb2.HealthCheckRequest(service=service)
    status = health_pb2_grpc.HealthStub(server.channel).Check(request, timeout=WAIT).status
    return status == health_pb2.HealthCheckResponse.SERVING


def answer(server, model):
    message = predict_pb2.PredictRequest()
    message.model_spec.name = model
    message.inputs["source"].CopyFrom(tf.make_tensor_proto(["a %s"]))
    response = prediction_service_pb2_grpc.PredictionServiceStub(server.channel).Predict(
        message, timeout=WAIT
    )
    return response.outputs["text"].string_val[0]


def test_our_server_runs_on_the_files_and_is_ready_after_a_reload(served):
    assert serving(served) and answer(served, "localization_en_fr") == b"A %s"
    message = model_management_pb2.ReloadConfigRequest()
    text_format.Parse(served.config, message.config)
    second = message.config.model_config_list.config.add()
    second.CopyFrom(message.config.model_config_list.config[0])
    second.name, second.base_path = "second", str(served.folder / "second")
    stub = model_service_pb2_grpc.ModelServiceStub(served.channel)
    assert stub.HandleReloadConfigRequest(message, timeout=WAIT).status.error_code == 0
    assert serving(served) and serving(served, "localization_en_fr") and serving(served, "second")
    assert (answer(served, "localization_en_fr"), answer(served, "second")) == (b"A %s", b"A %s*")


def test_the_health_check_of_compose(served):
    if not shutil.which("bash"):
        pytest.skip("bash is not installed")
    for service in compose_services().values():
        kind, *command = service["healthcheck"]["test"]
        assert kind == "CMD"
        script = command.pop().replace("127.0.0.1/8501", f"127.0.0.1/{served.rest_port}")
        assert str(served.rest_port) in script

        def healthy(script, command=command):
            return (
                subprocess.run([*command, script], capture_output=True, timeout=WAIT).returncode
                == 0
            )

        assert healthy(script), shlex.join([*command, script])
        assert not healthy(script.replace("localization_en_fr", "another"))
        assert not healthy(script.replace(str(served.rest_port), "1"))


def test_prometheus_finds_both_servers_at_the_same_path(served):
    text = (CONFIG / "monitoring.config").read_text(encoding="utf-8")
    path = re.fullmatch(
        r'prometheus_config \{\s+enable: true\s+path: "(\S+)"\s+\}\s+', re.sub("#.*\n", "", text)
    )[1]
    with urllib.request.urlopen(f"http://{served.rest_address}{path}", timeout=WAIT) as response:
        assert b"verbatim_model_version_available" in response.read()
