"""TLS, of the server alone and both ways: gRPC, REST, both clients, files that do not fit."""

import ssl
import urllib.error
import urllib.request

import grpc
import pytest

from serving import tls
from serving.client import RequestError
from serving.server import ModelServer, ServeError, ServerSettings
from tests.serving.support import DEADLINE


def test_tls_of_the_server_alone(ask, tls_server, certificate):
    own = tls.client_credentials(certificate / "cert.pem")
    assert ask(f"localhost:{tls_server.port}", "a", credentials=own) == ["A"]
    # The certificate is not for this name.
    with pytest.raises(RequestError, match="over TLS"):
        ask(tls_server.address, "a", credentials=own, attempts=1)
    with pytest.raises(RequestError, match="No server answers"):
        ask(tls_server.address, "a", attempts=1)


def test_tls_both_ways(ask, mutual_tls_server, certificate):
    key, own = certificate / "key.pem", certificate / "cert.pem"
    address = f"localhost:{mutual_tls_server.port}"
    assert ask(address, "a", credentials=tls.client_credentials(own, key, own)) == ["A"]
    for others in (tls.client_credentials(own), tls.client_credentials(None, key, own)):
        with pytest.raises(
            RequestError, match=f"No server answers at {address} over TLS; check"
        ) as caught:
            ask(address, "a", credentials=others, attempts=1)
        assert caught.value.code == grpc.StatusCode.UNAVAILABLE
    with pytest.raises(RequestError, match="No server answers"):
        ask(address, "a", attempts=1)


def test_credentials_of_grpc_itself(ask, mutual_tls_server, certificate):
    key, own = (certificate / name for name in ("key.pem", "cert.pem"))
    shown = grpc.ssl_channel_credentials(own.read_bytes(), key.read_bytes(), own.read_bytes())
    assert ask(f"localhost:{mutual_tls_server.port}", "a", credentials=shown) == ["A"]


def test_rest_asks_for_a_certificate_too(mutual_tls_server, certificate):
    key, own = certificate / "key.pem", certificate / "cert.pem"
    url = f"https://localhost:{mutual_tls_server.rest_port}/v1/models/shouter"
    context = ssl.create_default_context(cafile=own)
    with pytest.raises((urllib.error.URLError, ConnectionError, ssl.SSLError)):
        urllib.request.urlopen(url, context=context, timeout=DEADLINE)
    context.load_cert_chain(own, key)
    with urllib.request.urlopen(url, context=context, timeout=DEADLINE) as response:
        assert response.status == 200


@pytest.mark.parametrize(
    "key, certificate_file, sentence",
    [
        ("key.pem", None, "both a key and a certificate"),
        ("key.pem", "nothing.pem", "nothing.pem cannot be read: No such file"),
        ("key.pem", "text.pem", "text.pem is not in PEM format"),
        ("cert.pem", "cert.pem", "must be PEM files that belong together"),
    ],
)
def test_files_of_a_server_that_cannot_be_used(
    shared_folder, certificate, key, certificate_file, sentence
):
    own = certificate_file and certificate / certificate_file
    with pytest.raises(ServeError, match=sentence):
        ModelServer(shared_folder, ServerSettings(port=0, tls=tls.of_files(certificate / key, own)))


def test_files_of_a_client_that_cannot_be_used(certificate, tmp_path):
    key, own = certificate / "key.pem", certificate / "cert.pem"
    for arguments, sentence in [
        ((None, key, None), "both a key and a certificate"),
        ((own, None, own), "both a key and a certificate"),
        ((tmp_path / "nothing.pem",), "nothing.pem cannot be read: No such file"),
        ((key,), "key.pem holds no certificate"),
        ((own, own, own), "must be PEM files that belong together"),
    ]:
        with pytest.raises(RequestError, match=sentence):
            tls.client_credentials(*arguments)
