"""Where the server is, and how it is reached: address, token, encryption."""

import ipaddress
import re

import grpc

from kvstore._errors import InvalidArgument

_MAX_ANSWER_BYTES = 32 << 20


def is_local(address):
    """Whether only this machine reaches an address; names but "localhost" are taken to be elsewhere."""
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


def metadata(address, token, encrypted, plain_token):
    """What is sent with each call. Refuses tokens that are none, and to show one to others."""
    if not token:
        return []
    if not isinstance(token, str):
        raise InvalidArgument(f"token: is of type {type(token).__name__}; it is a str")
    # The byte order mark that some editors begin files with.
    token = token.removeprefix("\ufeff")
    for at, character in enumerate(token, 1):
        if not " " <= character <= "~":
            raise InvalidArgument(f"token: character {at} of {len(token)} is no printable ASCII character")
    if not encrypted and not plain_token and not is_local(address):
        raise InvalidArgument(
            f"token: the connection to {address} is not encrypted, and whoever sees its packets would have the "
            "token: give ca, or say plain_token=True"
        )
    return [("authorization", "Bearer " + token)]


def check_address(address):
    if not isinstance(address, str) or not re.fullmatch(r"unix:.+|.+:\d{1,5}", address):
        raise InvalidArgument(f'address: {address!r} is none; it is "host:port" or "unix:/path"')


def open_channel(address, ca, cert, key, server_name):
    """The channel; nothing is connected before the first call."""
    options = [
        # A connection of its own; else clients of one address share one.
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.max_receive_message_length", _MAX_ANSWER_BYTES),
        # Repeating is done by this client, which knows what may be repeated.
        ("grpc.enable_retries", 0),
        ("grpc.enable_http_proxy", 0),
        ("grpc.initial_reconnect_backoff_ms", 50),
        # This is also how long making a connection may take.
        ("grpc.min_reconnect_backoff_ms", 5000),
        ("grpc.max_reconnect_backoff_ms", 1000),
        # A server's machine that is gone without a word is found out, also in a scan without a deadline.
        ("grpc.keepalive_time_ms", 20000),
        ("grpc.keepalive_timeout_ms", 10000),
        # Nothing that is compressed is taken: a megabyte could become a gigabyte before its size is looked at.
        # The first refuses the call, which may be after the message was unpacked; the second does not unpack.
        ("grpc.compression_enabled_algorithms_bitset", 1),
        ("grpc.per_message_decompression", 0),
    ]
    if ca is None:
        for field, given in (("cert", cert), ("key", key), ("server_name", server_name)):
            if given is not None:
                raise InvalidArgument(f"{field}: is only for an encrypted connection: give ca")
        return grpc.insecure_channel(address, options)
    if (cert is None) != (key is None):
        raise InvalidArgument("cert, key: one without the other")
    credentials = grpc.ssl_channel_credentials(
        root_certificates=_pem("ca", ca), private_key=_pem("key", key), certificate_chain=_pem("cert", cert)
    )
    if server_name is not None:
        options.append(("grpc.ssl_target_name_override", server_name))
    return grpc.secure_channel(address, credentials, options)


def _pem(field, file):
    if file is None:
        return None
    try:
        with open(file, "rb") as opened:
            return opened.read()
    except OSError as error:
        raise InvalidArgument(f"{field}: {error}") from error
