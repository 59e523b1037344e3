"""TLS from PEM files: for a server's gRPC and HTTP, and for a client."""

import dataclasses
import os
import pathlib
import ssl

import grpc

from serving.errors import RequestError, ServeError

Path = str | os.PathLike[str]


@dataclasses.dataclass(frozen=True)
class ServerTls:
    """The files of a server's TLS.

    Attributes:
        key: its private key.
        certificate: its certificate chain.
        client_ca: the authorities that sign clients' certificates. If given, a client must present
            one (mutual TLS).
    """

    key: str
    certificate: str
    client_ca: str | None = None

    def grpc_credentials(self) -> grpc.ServerCredentials:
        """Returns gRPC's server credentials.

        Raises:
            ServeError: a file is missing, cannot be read or is not in PEM format.
        """
        key, certificate = _read(self.key), _read(self.certificate)
        authority = _read(self.client_ca) if self.client_ca else None
        return grpc.ssl_server_credentials(
            [(key, certificate)], authority, require_client_auth=authority is not None
        )

    def ssl_context(self) -> ssl.SSLContext:
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


def of_files(
    key: Path | None = None, certificate: Path | None = None, client_ca: Path | None = None
) -> ServerTls | None:
    """Returns the `ServerTls` of these files, or None without TLS.

    Raises:
        ServeError: the key or the certificate is missing.
    """
    if key is None and certificate is None and client_ca is None:
        return None
    if key is None or certificate is None:
        raise ServeError(_BOTH_NEEDED)
    return ServerTls(str(key), str(certificate), None if client_ca is None else str(client_ca))


def client_credentials(
    authority: Path | None = None, key: Path | None = None, certificate: Path | None = None
) -> grpc.ChannelCredentials:
    """Returns the gRPC credentials of a client, for `serving.client.Client`.

    Args:
        authority: PEM file of certificates that sign the server's; None uses gRPC's authorities.
        key: PEM file of the client's private key, with `certificate`, for a server that asks for
            one (mutual TLS); None presents none.
        certificate: PEM file of the client's certificate chain.

    Raises:
        RequestError: a file is missing, cannot be read or is not valid.
    """
    # gRPC checks the files only when it connects, and then does not say what is wrong. Python
    # checks them at once.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        if (key is None) != (certificate is None):
            raise ServeError(_BOTH_NEEDED)
        authority_pem, key_pem, certificate_pem = (
            None if path is None else _read(path) for path in (authority, key, certificate)
        )
        if key is not None and certificate is not None:
            _load_pair(context, key, certificate)
    except ServeError as error:
        raise RequestError(str(error)) from None
    if authority is not None:
        try:
            context.load_verify_locations(authority)
        except ssl.SSLError:
            raise RequestError(f"The TLS file {authority} holds no certificate.") from None
    return grpc.ssl_channel_credentials(authority_pem, key_pem, certificate_pem)


def _load_pair(context: ssl.SSLContext, key: Path, certificate: Path) -> None:
    """Loads a key and its certificate into a context of Python's."""
    try:
        # Without a password, Python would ask for one at the terminal.
        context.load_cert_chain(certificate, key, password="")
    except ssl.SSLError:
        raise ServeError(NOT_ACCEPTED) from None


def _read(path: Path) -> bytes:
    try:
        content = pathlib.Path(path).read_bytes()
    except OSError as error:
        raise ServeError(f"The TLS file {path} cannot be read: {error.strerror}.") from None
    if b"-----BEGIN " not in content:
        raise ServeError(f"The TLS file {path} is not in PEM format.")
    return content
