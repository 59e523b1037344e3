"""TLS of a server, for gRPC and HTTP alike, from PEM files."""

import dataclasses
import pathlib
import ssl

import grpc

from serving.errors import ServeError


@dataclasses.dataclass(frozen=True)
class ServerTls:
    """The files of a server's TLS.

    Attributes:
        key: its private key.
        certificate: its certificate chain.
        client_ca: certificates of those who sign clients' certificates; where given, a client must show one (mutual TLS).
    """

    key: str
    certificate: str
    client_ca: str | None = None

    def grpc_credentials(self):
        """Returns gRPC's server credentials.

        Raises:
            ServeError: a file is missing, cannot be read or is not in PEM format.
        """
        key, certificate = _read(self.key), _read(self.certificate)
        authority = _read(self.client_ca) if self.client_ca else None
        return grpc.ssl_server_credentials([(key, certificate)], authority, require_client_auth=authority is not None)

    def ssl_context(self):
        """Returns Python's context for an HTTP server.

        Raises:
            ServeError: the files do not belong together.
        """
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=self.client_ca)
        if self.client_ca:
            context.verify_mode = ssl.CERT_REQUIRED
        try:
            context.load_cert_chain(self.certificate, self.key)
        except ssl.SSLError:
            raise ServeError(NOT_ACCEPTED) from None
        return context


NOT_ACCEPTED = "The TLS key and certificate are not accepted; they must be PEM files that belong together."


def of_files(key=None, certificate=None, client_ca=None):
    """Returns the `ServerTls` of these files, or None without TLS.

    Raises:
        ServeError: one of the two files is missing.
    """
    if key is None and certificate is None and client_ca is None:
        return None
    if key is None or certificate is None:
        raise ServeError("TLS needs both a key and a certificate.")
    return ServerTls(str(key), str(certificate), client_ca and str(client_ca))


def _read(path):
    try:
        content = pathlib.Path(path).read_bytes()
    except OSError as error:
        raise ServeError(f"The TLS file {path} cannot be read: {error.strerror}.") from None
    if b"-----BEGIN " not in content:
        raise ServeError(f"The TLS file {path} is not in PEM format.")
    return content
