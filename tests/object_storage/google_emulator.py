"""A Google bucket on this machine: fake-gcs-server, the proxy before it, and Google's names.

The names lead to this machine only for the processes of a mount namespace of their own, which has
another `/etc/hosts`. Nothing of Google is ever asked.
"""

import contextlib
import http.client
import json
import os
import pathlib
import shutil
import ssl
import subprocess
import sys
from collections.abc import Iterator

from tests.engines.clusters import Processes, free_port
from tests.object_storage.google_proxy import GoogleProxy

ROOT = pathlib.Path(__file__).resolve().parents[2]
#: What `make buckets` built.
SERVER = ROOT / "build" / "object_storage" / "fake-gcs-server"
NAMES = ("storage.googleapis.com", "www.googleapis.com", "oauth2.googleapis.com")
# Says at which address of this machine the names are.
_INSIDE = "VERBATIM_TEST_NAMES_AT"


def why_not() -> str:
    """Returns why no bucket can be had here, in a sentence; "" if one can."""
    if not server():
        return "fake-gcs-server is not installed (make buckets builds it; it needs Go)"
    if os.geteuid() != 0:
        return "names of Google must lead to this machine, which only root can do"
    for name in ("unshare", "openssl"):
        if not shutil.which(name):
            return f"{name} is not installed"
    if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
        return "this container may not make a mount namespace"
    return ""


def server() -> str | None:
    """Returns the program, if it is there."""
    return str(SERVER) if SERVER.is_file() else shutil.which("fake-gcs-server")


def enter(folder: pathlib.Path) -> None:
    """Starts this program anew where Google's names lead to this machine; once there, it returns.

    Args:
        folder: for the certificate and the file of names; the same at both calls.
    """
    if os.environ.get(_INSIDE):
        return
    folder.mkdir(parents=True, exist_ok=True)
    # One of this machine's own for each process: at 127.0.0.1 others may listen.
    process = os.getpid()
    host = f"127.31.{process // 250 % 250}.{process % 250 + 1}"
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    names = ",".join(f"DNS:{name}" for name in NAMES)
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-keyout", key, "-out", certificate, "-subj", f"/CN={NAMES[0]}"),
            *("-addext", f"subjectAltName={names}"),
        ],
        check=True,
        capture_output=True,
    )
    hosts = folder / "hosts"
    own = pathlib.Path("/etc/hosts").read_text(encoding="utf-8")
    hosts.write_text(f"{own}\n{host} {' '.join(NAMES)}\n", encoding="utf-8")
    environment = {
        **os.environ,
        _INSIDE: host,
        "CURL_CA_BUNDLE": str(certificate),
        "REQUESTS_CA_BUNDLE": str(certificate),
        "HTTPLIB2_CA_CERTS": str(certificate),
        # Neither a proxy of this machine's nor a server of Google's machines is to be asked.
        "NO_PROXY": "*",
        "no_proxy": "*",
        "NO_GCE_CHECK": "true",
        "GOOGLE_AUTH_TOKEN_FOR_TESTING": "valid",
        "GOOGLE_CLOUD_PROJECT": "tests",
        "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH", "")))),
    }
    for name in ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        environment.pop(name, None)
    arguments = [sys.executable, *sys.orig_argv[1:]]
    script = 'mount --bind "$0" /etc/hosts && exec "$@"'
    os.execvpe(
        "unshare", ["unshare", "-m", "sh", "-c", script, str(hosts), *arguments], environment
    )


@contextlib.contextmanager
def google(folder: pathlib.Path, *buckets: str) -> Iterator[GoogleProxy]:
    """Runs the server and its proxy, with empty buckets; see `enter`, which comes first.

    Args:
        folder: that which `enter` had; logs and objects go there.
        buckets: their names.
    """
    processes = Processes(folder)
    port = free_port()
    program = server()
    assert program, why_not()
    proxy = None
    try:
        processes.start(
            "fake-gcs-server",
            [
                *(program, "-scheme", "http", "-host", "127.0.0.1", "-port", str(port)),
                *("-backend", "memory", "-public-host", NAMES[0]),
                *("-external-url", f"https://{NAMES[0]}"),
            ],
        )
        processes.wait_for("fake-gcs-server", port)
        for bucket in buckets:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            content = json.dumps({"name": bucket})
            connection.request("POST", "/storage/v1/b?project=tests", content)
            answer = connection.getresponse()
            assert answer.status == 200, answer.read()
            connection.close()
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
        proxy = GoogleProxy(os.environ[_INSIDE], 443, port, tls)
        yield proxy
    finally:
        if proxy:
            proxy.close()
        processes.stop_all()
