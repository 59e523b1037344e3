"""A tiny model, servers that serve it, and a certificate, for all tests of this folder."""

import shutil
import subprocess
import urllib.parse

import pytest

from serving import protos

# Before TensorFlow, as in a program that makes a client first: all tests here show that TensorFlow
# is none the worse.
protos.message("PredictRequest")

from pipeline.documents.file_translator import DocumentTranslator  # noqa: E402
from serving.limits import Limits  # noqa: E402
from serving.server import ModelServer, ServerSettings  # noqa: E402
from serving.tls import of_files  # noqa: E402
from tests.browser import Browser  # noqa: E402
from tests.serving.page_models import save_page_models  # noqa: E402
from tests.serving.scripted_server import ScriptedServer  # noqa: E402
from tests.serving.shouter import Shouter  # noqa: E402
from tests.serving.support import ask_async, ask_sync  # noqa: E402


@pytest.fixture(scope="session")
def saved_models(tmp_path_factory):
    """Two SavedModels, to be copied: texts of the second end in `*`, and it reads terms."""
    folder = tmp_path_factory.mktemp("saved")
    Shouter("").save(folder / "plain")
    Shouter("*", reads_terms=True).save(folder / "starred")
    return folder


@pytest.fixture
def model_folder(tmp_path, saved_models):
    """`models/shouter` with version 1."""
    folder = tmp_path / "models" / "shouter"
    shutil.copytree(saved_models / "plain", folder / "1")
    return folder


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory, saved_models):
    """`shouter` with version 7, for tests that change nothing on disk."""
    folder = tmp_path_factory.mktemp("shared") / "shouter"
    shutil.copytree(saved_models / "plain", folder / "7")
    return folder


@pytest.fixture(scope="session")
def shared_server(shared_folder):
    """A running server of `shared_folder`; a request may hold 16 texts of 100 bytes."""
    limits = Limits(max_batch_size=16, max_text_bytes=100)
    with ModelServer(shared_folder, ServerSettings(port=0, rest_port=0, limits=limits)) as server:
        yield server


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    """A key and a self-signed certificate for localhost, and a file that is neither."""
    if not shutil.which("openssl"):
        pytest.skip("openssl is not installed")
    folder = tmp_path_factory.mktemp("tls")
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 "
        "-subj /CN=localhost"
    )
    command += " -addext subjectAltName=DNS:localhost"
    subprocess.run(command.split(), cwd=folder, check=True, capture_output=True)
    (folder / "text.pem").write_text("hello")
    return folder


@pytest.fixture
def scripted_server():
    """A running `ScriptedServer`."""
    with ScriptedServer() as server:
        yield server


@pytest.fixture(scope="session")
def tls_server(shared_folder, certificate):
    """A running server with TLS that asks clients for no certificate."""
    tls = of_files(certificate / "key.pem", certificate / "cert.pem")
    with ModelServer(shared_folder, ServerSettings(port=0, tls=tls)) as server:
        yield server


@pytest.fixture(scope="session")
def mutual_tls_server(shared_folder, certificate):
    """A running server with TLS and REST that asks clients for a certificate."""
    own = certificate / "cert.pem"
    tls = of_files(certificate / "key.pem", own, own)
    with ModelServer(shared_folder, ServerSettings(port=0, rest_port=0, tls=tls)) as server:
        yield server


@pytest.fixture(scope="session")
def chromium(tmp_path_factory):
    """A browser with a page of 1200 by 900 pixels."""
    with Browser(tmp_path_factory.mktemp("browser")) as running:
        running.resize(1200, 900)
        yield running


@pytest.fixture(params=[ask_sync, ask_async], ids=["sync", "async"])
def ask(request):
    """Function of an address and texts; returns the texts of the answers.

    `timeouts` is that of each call.
    """
    return request.param


@pytest.fixture(scope="session")
def page_server(tmp_path_factory, saved_models):
    """A running server of the models that the web page is tested with."""
    configs = save_page_models(tmp_path_factory.mktemp("models"), saved_models)
    limits = Limits(max_text_bytes=200, max_file_bytes=1000)
    settings = ServerSettings(port=0, rest_port=0, limits=limits, files=DocumentTranslator())
    with ModelServer(configs, settings) as server:
        yield server


@pytest.fixture
def open_page(chromium, page_server):
    """Opens the page by a link that says what is asked; returns the browser."""

    def open_with(**asked):
        link = urllib.parse.urlencode({"model": "shouter", **asked})
        chromium.open(f"http://{page_server.rest_address}/#{link}")
        chromium.wait_for("document.querySelectorAll('#model option').length")
        return chromium

    return open_with
