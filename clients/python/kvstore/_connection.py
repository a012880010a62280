"""How a client connects to its server: address, token, encryption."""

import ipaddress
import os
import re
from collections.abc import Callable
from typing import Any

import grpc

from kvstore import _checks
from kvstore._caller import Caller
from kvstore._errors import InvalidArgument
from kvstore._wire import Wire

_MAX_ANSWER_BYTES = 32 << 20

File = str | bytes | os.PathLike[str] | os.PathLike[bytes]
Metadata = list[tuple[str, str]]


class Connection:
    """The parts of a client other than its calls."""

    # Makes the Wire from a function that opens a channel of grpc or of grpc.aio.
    _wire: Callable[[Callable[[Any], Any], Metadata], Wire]

    # The methods of the service: store.stub.GetServer(request, metadata=store.metadata).
    stub: Any
    metadata: Metadata

    def __init__(
        self,
        address: str,
        token: str | None = None,
        ca: File | None = None,
        timeout_s: float = 10.0,
        plain_token: bool = False,
        *,
        cert: File | None = None,
        key: File | None = None,
        server_name: str | None = None,
    ):
        """Connects at the first call, and again when the connection is lost.

        address      "host:port", "[ipv6]:port" or "unix:/path".
        token        sent with each call, if the server requires one: printable ASCII (a byte order mark before it
                     is dropped).
        ca           file (PEM) with the authorities that the server's certificate is verified against, such as
                     Debian's /etc/ssl/certs/ca-certificates.crt; None: the connection is not encrypted.
        timeout_s    how many seconds a call may take, retries included, if it has no timeout_s of its own.
        plain_token  send the token even to another machine without encryption, where others may read it; otherwise
                     that is refused.
        cert, key    files (PEM) with the client's own certificate and its key, if the server requires one; only
                     with ca.
        server_name  the name in the server's certificate, if it is not the one in the address; only with ca.
        """
        _check_address(address)
        _checks.seconds("timeout_s", timeout_s)
        self.metadata = _metadata(address, token, ca is not None, plain_token)
        wire = self._wire(lambda kind: _open_channel(kind, address, ca, cert, key, server_name), self.metadata)
        self.stub = wire.stub
        self._caller = Caller(wire, address, ca is not None, timeout_s)


def _is_local(address: str) -> bool:
    """Returns whether an address is on this machine; all names except "localhost" count as elsewhere."""
    if address.startswith("unix:"):
        return True
    parts = re.fullmatch(r"(?:\[([^]]+)\]|([^:]+)):\d+", address)
    if not parts:
        return False
    host = parts[1] or parts[2]
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _metadata(address: str, token: str | None, encrypted: bool, plain_token: bool) -> Metadata:
    """Returns the metadata of each call. Refuses an invalid token, and to send one where others can read it."""
    if not token:
        return []
    if not isinstance(token, str):
        raise InvalidArgument(f"token: is of type {type(token).__name__}; it is a str")
    # Some editors begin files with a byte order mark.
    token = token.removeprefix("\ufeff")
    octets = token.encode(errors="surrogatepass")
    for at, octet in enumerate(octets, 1):
        if not 0x20 <= octet < 0x7F:
            raise InvalidArgument(
                f"token: byte {at} of {len(octets)} is {octet:#04x}, which is not a printable ASCII character"
            )
    if not encrypted and not plain_token and not _is_local(address):
        raise InvalidArgument(
            f"token: the connection to {address} is not encrypted, so anybody who sees its packets would have the "
            "token: use TLS (ca), or say plain_token=True"
        )
    return [("authorization", "Bearer " + token)]


def _check_address(address: str) -> None:
    if not isinstance(address, str) or not re.fullmatch(r"unix:.+|.+:\d{1,5}", address):
        raise InvalidArgument(f'address: {address!r} is not an address; give "host:port" or "unix:/path"')
    if not address.startswith("unix:") and not 1 <= int(address.rpartition(":")[2]) <= 65535:
        raise InvalidArgument(f"address: the port of {address!r} is not 1 to 65535")


def _open_channel(
    kind: Any, address: str, ca: File | None, cert: File | None, key: File | None, server_name: str | None
) -> Any:
    """Opens a channel of grpc or of grpc.aio, which connects at the first call."""
    options: list[tuple[str, Any]] = [
        # Gives each client a connection of its own; otherwise clients of one address share one.
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.max_receive_message_length", _MAX_ANSWER_BYTES),
        # This client retries by itself, because it knows what is safe to retry.
        ("grpc.enable_retries", 0),
        ("grpc.enable_http_proxy", 0),
        ("grpc.initial_reconnect_backoff_ms", 50),
        # This also limits how long connecting may take.
        ("grpc.min_reconnect_backoff_ms", 5000),
        ("grpc.max_reconnect_backoff_ms", 1000),
        # Detects a server's machine that vanished silently, also in a scan without a deadline.
        ("grpc.keepalive_time_ms", 20000),
        ("grpc.keepalive_timeout_ms", 10000),
        # Refuses compressed answers: a megabyte could become a gigabyte before its size is checked. The first option
        # refuses the call, possibly after the message was decompressed; the second prevents decompression.
        ("grpc.compression_enabled_algorithms_bitset", 1),
        ("grpc.per_message_decompression", 0),
    ]
    if ca is None:
        for field, given in (("cert", cert), ("key", key), ("server_name", server_name)):
            if given is not None:
                raise InvalidArgument(f"{field}: is only for an encrypted connection: give ca")
        return kind.insecure_channel(address, options)
    if (cert is None) != (key is None):
        raise InvalidArgument("cert, key: one without the other")
    credentials = grpc.ssl_channel_credentials(
        root_certificates=_pem("ca", ca), private_key=_pem("key", key), certificate_chain=_pem("cert", cert)
    )
    if server_name is not None:
        options.append(("grpc.ssl_target_name_override", server_name))
    return kind.secure_channel(address, credentials, options)


def _pem(field: str, file: File | None) -> bytes | None:
    if file is None:
        return None
    try:
        with open(file, "rb") as opened:
            return opened.read()
    except OSError as error:
        raise InvalidArgument(f"{field}: {error}") from error
