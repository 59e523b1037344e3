"""The model config: its file, version policies, and a config that changes while serving."""

import shutil

import grpc
import pytest
import tensorflow as tf
from google.protobuf import text_format
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tensorflow_serving.apis import (
    get_model_status_pb2,
    model_management_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

from serving.errors import RequestRefused, ServeError
from serving.model_config import ALL_VERSIONS, ModelConfig, VersionPolicy, read_config_file
from serving.model_versions import ModelVersions
from serving.server import ModelServer, ServerSettings


@pytest.fixture
def folder(tmp_path, saved_models):
    """`models/shouter` with versions 1, 3 (texts end in `*`) and 12."""
    base = tmp_path / "models" / "shouter"
    for version, kind in (1, "plain"), (3, "starred"), (12, "plain"):
        shutil.copytree(saved_models / kind, base / str(version))
    return base


def available(model):
    return [state.version for state in model.states() if state.state == "AVAILABLE"]


def loaded(folder, **options):
    model = ModelVersions("shouter", folder, **options)
    model.load_first()
    return model


# The file


def test_a_config_file_is_read_as_tensorflow_serving_reads_it(tmp_path):
    path = tmp_path / "models.config"
    path.write_text(
        """
        model_config_list {
          config { name: "a" base_path: "/models/a" model_platform: "tensorflow" }
          config {
            name: "b" base_path: "file:///models/b"
            model_version_policy { latest { num_versions: 2 } }
          }
          config { name: "c" base_path: "c" model_version_policy { all {} } }
          config {
            name: "d" base_path: "/models/d"
            model_version_policy { specific { versions: 3 versions: 12 } }
            version_labels { key: "stable" value: 3 }  # a comment
          }
        }"""
    )
    assert read_config_file(path) == [
        ModelConfig("a", "/models/a"),
        ModelConfig("b", "/models/b", VersionPolicy(latest=2)),
        ModelConfig("c", str(tmp_path / "c"), ALL_VERSIONS),
        ModelConfig("d", "/models/d", VersionPolicy(None, frozenset([3, 12])), {"stable": 3}),
    ]


@pytest.mark.parametrize(
    "text, sentence",
    [
        (b"", "has no model_config_list"),
        (b"custom_model_config {}", "has no model_config_list"),
        (b"model_config_list { config { name: 'a' } }", "needs a name and a base_path"),
        (b"model_config_list { config { nam: 'a' } }", "is not a ModelServerConfig: .*nam"),
        (b"\xff", "it is not UTF-8"),
        (
            b"model_config_list { config { name: 'a' base_path: '/x' model_platform: 'torch' } }",
            "platform 'torch'",
        ),
        (
            b"model_config_list { config { name: 'a' base_path: '/x' model_version_policy { "
            b"specific {} } } }",
            "no version",
        ),
        (
            b"model_config_list {" + b"config { name: 'a' base_path: '/x' }" * 2 + b"}",
            "names the model a twice",
        ),
    ],
)
def test_a_config_file_that_cannot_be_used_is_one_sentence(tmp_path, text, sentence):
    (tmp_path / "m").write_bytes(text)
    with pytest.raises(ServeError, match=sentence) as caught:
        read_config_file(tmp_path / "m")
    assert "\n" not in str(caught.value)


def test_a_missing_config_file(tmp_path):
    with pytest.raises(ServeError, match="nowhere cannot be read: No such file"):
        read_config_file(tmp_path / "nowhere")


# Policies


def test_the_latest_versions_answer_and_make_room(folder, saved_models):
    model = loaded(folder, policy=VersionPolicy(latest=2))
    assert available(model) == [12, 3] and model.version == 12
    shutil.copytree(saved_models / "plain", folder / "20")
    for _ in range(2):
        model.poll()
    assert available(model) == [20, 12] and model.version == 20
    with pytest.raises(RequestRefused, match=r"Specific\(shouter, 3\)"), model.use(3):
        pass


def test_all_versions_answer_until_they_are_deleted(folder):
    model = loaded(folder, policy=ALL_VERSIONS)
    assert available(model) == [12, 3, 1]
    shutil.rmtree(folder / "3")
    model.poll()
    assert available(model) == [12, 1]


def test_specific_versions_answer_alone(folder):
    model = loaded(folder, policy=VersionPolicy(None, frozenset([1, 3])))
    assert available(model) == [3, 1] and model.version == 3


def test_a_specific_version_that_is_missing_or_broken_is_named(folder):
    with pytest.raises(
        ServeError, match="Version 4 of shouter cannot be served: there is no such version"
    ):
        loaded(folder, policy=VersionPolicy(None, frozenset([3, 4])))
    (folder / "4").mkdir()
    (folder / "4" / "saved_model.pb").write_bytes(b"junk")
    with pytest.raises(ServeError, match="Version 4 of shouter cannot be served: (?!there is no)"):
        loaded(folder, policy=VersionPolicy(None, frozenset([3, 4])))


def test_a_label_needs_a_version_that_is_served(folder):
    assert loaded(folder, labels={"stable": 12}).version_of("stable") == 12
    with pytest.raises(
        ServeError, match="The label 'stable' of shouter names version 3, which is not served"
    ):
        loaded(folder, labels={"stable": 3})


def test_a_policy_that_cannot_be_fulfilled_changes_nothing(folder):
    model = loaded(folder, labels={"stable": 12})
    for policy, labels, sentence in (
        (VersionPolicy(None, frozenset([1, 5])), {}, "Version 5 of .* cannot be served: "),
        (ALL_VERSIONS, {"canary": 5}, "The label 'canary' of .* names version 5, which is not"),
    ):
        with pytest.raises(ServeError, match=sentence):
            model.configure(policy, labels)
        assert available(model) == [12] and model.version_of("stable") == 12
    model.configure(ALL_VERSIONS, {"canary": 3})
    assert available(model) == [12, 3, 1] and model.version_of("canary") == 3
    with pytest.raises(RequestRefused, match="Unrecognized servable version label: stable"):
        model.version_of("stable")
    model.configure(VersionPolicy(None, frozenset([3])), {})
    assert available(model) == [3]


# While serving


@pytest.fixture
def server(folder, saved_models, tmp_path):
    shutil.copytree(saved_models / "starred", tmp_path / "other" / "1")
    configs = [
        ModelConfig("shouter", str(folder), VersionPolicy(latest=2), {"stable": 3, "canary": 12})
    ]
    with (
        ModelServer(configs, ServerSettings(port=0, poll_seconds=0.05)) as server,
        grpc.insecure_channel(server.address) as channel,
    ):
        server.channel = channel
        yield server


def text(server, model="shouter", label=None):
    message = predict_pb2.PredictRequest()
    message.model_spec.name = model
    if label:
        message.model_spec.version_label = label
    message.inputs["source"].CopyFrom(tf.make_tensor_proto(["a"], tf.string, [1]))
    response = prediction_service_pb2_grpc.PredictionServiceStub(server.channel).Predict(
        message, timeout=120
    )
    return response.outputs["text"].string_val[0].decode(), response.model_spec.version.value


def reload(server, config):
    message = model_management_pb2.ReloadConfigRequest()
    text_format.Parse(config, message.config)
    stub = model_service_pb2_grpc.ModelServiceStub(server.channel)
    return stub.HandleReloadConfigRequest(message, timeout=60).status


def refused(server, config):
    """Returns the code and the sentence that a config is refused with."""
    with pytest.raises(grpc.RpcError) as caught:
        reload(server, config)
    return caught.value.code().name, caught.value.details()


def test_labels_choose_versions(server):
    assert text(server) == ("A", 12)
    assert text(server, label="stable") == ("A*", 3)
    assert text(server, label="canary") == ("A", 12)
    with pytest.raises(grpc.RpcError, match="Unrecognized servable version label: best"):
        text(server, label="best")
    message = get_model_status_pb2.GetModelStatusRequest()
    message.model_spec.name, message.model_spec.version_label = "shouter", "stable"
    (status,) = (
        model_service_pb2_grpc.ModelServiceStub(server.channel)
        .GetModelStatus(message)
        .model_version_status
    )
    assert status.version == 3


def test_a_config_changes_what_is_served(server, folder, tmp_path):
    config = f"""model_config_list {{
      config {{ name: "shouter" base_path: "{folder}" model_version_policy {{ all {{}} }}
               version_labels {{ key: "stable" value: 1 }} }}
      config {{ name: "other" base_path: "{tmp_path / "other"}" }} }}"""
    assert reload(server, config).error_code == 0
    assert text(server, label="stable") == ("A", 1) and text(server, "other") == ("A*", 1)
    # What cannot be served leaves everything as it is, the models before it in the list included.
    broken = config.replace("value: 1", "value: 12").replace(
        str(tmp_path / "other"), str(tmp_path / "nowhere")
    )
    code, sentence = refused(server, broken)
    assert code == "FAILED_PRECONDITION" and "nowhere does not exist" in sentence
    assert text(server, label="stable") == ("A", 1) and text(server, "other") == ("A*", 1)
    code, sentence = refused(server, config.replace(str(folder), "models"))
    assert code == "INVALID_ARGUMENT" and "must be absolute" in sentence
    # A model that is listed no more ends.
    assert (
        reload(
            server,
            f'model_config_list {{ config {{ name: "o" base_path: "{tmp_path / "other"}" }} }}',
        ).error_code
        == 0
    )
    assert text(server, "o") == ("A*", 1)
    with pytest.raises(grpc.RpcError, match=r"Latest\(shouter\); this server has o"):
        text(server)


def test_health_follows_a_changed_config(server, folder, tmp_path):
    stub = health_pb2_grpc.HealthStub(server.channel)

    def health(model):
        try:
            status = stub.Check(health_pb2.HealthCheckRequest(service=model), timeout=120).status
        except grpc.RpcError as error:
            return error.code().name
        return health_pb2.HealthCheckResponse.ServingStatus.Name(status)

    watched = stub.Watch(health_pb2.HealthCheckRequest(service="other"), timeout=60)
    assert next(watched).status == health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
    assert (health(""), health("shouter"), health("other")) == ("SERVING", "SERVING", "NOT_FOUND")
    other = f'config {{ name: "other" base_path: "{tmp_path / "other"}" }}'
    config = f"model_config_list {{ {other} }}"
    # What changes nothing changes no health.
    assert refused(server, config.replace("/other", "/nowhere"))[0] == "FAILED_PRECONDITION"
    assert (health("shouter"), health("other")) == ("SERVING", "NOT_FOUND")
    assert reload(server, config).error_code == 0
    assert (health(""), health("shouter"), health("other")) == ("SERVING", "NOT_SERVING", "SERVING")
    assert next(watched).status == health_pb2.HealthCheckResponse.SERVING
    both = f'model_config_list {{ {other} config {{ name: "shouter" base_path: "{folder}" }} }}'
    assert reload(server, both).error_code == 0
    assert (health("shouter"), health("other")) == ("SERVING", "SERVING")
    # A server that ends stays unhealthy, whatever is reloaded meanwhile.
    server._health.enter_graceful_shutdown()
    assert reload(server, config).error_code == 0
    assert (health(""), health("shouter"), health("other")) == ("NOT_SERVING",) * 3
    watched.cancel()
