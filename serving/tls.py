"""TLS from PEM files: of a server, for gRPC and HTTP alike, and of a client."""

import dataclasses
import pathlib
import ssl

import grpc

from serving.errors import RequestError, ServeError


@dataclasses.dataclass(frozen=True)
class ServerTls:
    """The files of a server's TLS.

    Attributes:
        key: its private key.
        certificate: its certificate chain.
        client_ca: certificates of those who sign clients' certificates; where given, a client must
            show one (mutual TLS).
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
        return grpc.ssl_server_credentials(
            [(key, certificate)], authority, require_client_auth=authority is not None
        )

    def ssl_context(self):
        """Returns Python's context for an HTTP server.

        Raises:
            ServeError: the files do not belong together.
        """
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=self.client_ca)
        if self.client_ca:
            context.verify_mode = ssl.CERT_REQUIRED
        _load_pair(context, self.key, self.certificate)
        return context


_BOTH_NEEDED = "TLS needs both a key and a certificate."
NOT_ACCEPTED = (
    "The TLS key and certificate are not accepted; they must be PEM files that belong together."
)


def of_files(key=None, certificate=None, client_ca=None):
    """Returns the `ServerTls` of these files, or None without TLS.

    Raises:
        ServeError: one of the two files is missing.
    """
    if key is None and certificate is None and client_ca is None:
        return None
    if key is None or certificate is None:
        raise ServeError(_BOTH_NEEDED)
    return ServerTls(str(key), str(certificate), client_ca and str(client_ca))


def client_credentials(authority=None, key=None, certificate=None):
    """Returns the gRPC credentials of a client, for `serving.client.Client`.

    Args:
        authority: PEM file of who signs the server's certificate; None is the authorities that gRPC
            brings.
        key: PEM file of the client's private key, with `certificate`, for a server that asks for
            one (mutual TLS); None shows none.
        certificate: PEM file of the client's certificate chain.

    Raises:
        RequestError: a file is missing, cannot be read or is no good.
    """
    # gRPC looks at the files no sooner than it connects, and then only says that it could not;
    # Python says it now.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        if (key is None) != (certificate is None):
            raise ServeError(_BOTH_NEEDED)
        authority_pem, key_pem, certificate_pem = (
            None if path is None else _read(path) for path in (authority, key, certificate)
        )
        if key is not None:
            _load_pair(context, key, certificate)
    except ServeError as error:
        raise RequestError(str(error)) from None
    if authority is not None:
        try:
            context.load_verify_locations(authority)
        except ssl.SSLError:
            raise RequestError(f"The TLS file {authority} holds no certificate.") from None
    return grpc.ssl_channel_credentials(authority_pem, key_pem, certificate_pem)


def _load_pair(context, key, certificate):
    """Loads a key and its certificate into a context of Python's."""
    try:
        context.load_cert_chain(
            certificate, key, password=""
        )  # instead of asking whoever sits at the terminal
    except ssl.SSLError:
        raise ServeError(NOT_ACCEPTED) from None


def _read(path):
    try:
        content = pathlib.Path(path).read_bytes()
    except OSError as error:
        raise ServeError(f"The TLS file {path} cannot be read: {error.strerror}.") from None
    if b"-----BEGIN " not in content:
        raise ServeError(f"The TLS file {path} is not in PEM format.")
    return content
