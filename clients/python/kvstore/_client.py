"""The client: a connection, and the calls of all shapes of data over it."""

from kvstore import _checks, _connection
from kvstore._batches import Batches
from kvstore._caller import Caller
from kvstore._datasets import Datasets
from kvstore._mappings import Mappings
from kvstore._objects import Objects
from kvstore._rows import Rows
from kvstore._scans import Scans
from kvstore.v1 import kvstore_pb2_grpc


class Client(Datasets, Rows, Batches, Scans, Objects, Mappings):
    """A connection to a server. Thread-safe; what it yields belongs to one thread at a time.

    address      "host:port", "[ipv6]:port" or "unix:/path". Connected to when it is needed, and again when it is lost.
    token        sent with each call, where the server wants one: printable ASCII (a byte order mark before it is left
                 out).
    ca           file (PEM) with the certificates that the server's is checked against, such as Debian's
                 /etc/ssl/certs/ca-certificates.crt; None: the connection is not encrypted.
    timeout_s    how many seconds a call may take, its repetitions included, that is not given a timeout_s of its own.
    plain_token  send the token to another machine without encryption, too, where others may see it; else that is
                 refused.
    cert, key    files (PEM) with the client's own certificate and its key, where the server wants one; only with ca.
    server_name  the name in the server's certificate, if it is not the one in the address; only with ca.

    Every call takes a timeout_s (seconds above 0): then DeadlineExceeded. Scans, compactions and large put_rows have
    none unless they are given one. InvalidArgument, which is a ValueError, for arguments that are none.
    """

    def __init__(
        self,
        address,
        token=None,
        ca=None,
        timeout_s=10.0,
        plain_token=False,
        *,
        cert=None,
        key=None,
        server_name=None,
    ):
        _connection.check_address(address)
        _checks.seconds("timeout_s", timeout_s)
        metadata = _connection.metadata(address, token, ca is not None, plain_token)
        channel = _connection.open_channel(address, ca, cert, key, server_name)
        # The methods as they are: store.stub.GetServer(request, metadata=store.metadata).
        self.stub = kvstore_pb2_grpc.KVStoreStub(channel)
        self.metadata = metadata
        self._caller = Caller(channel, self.stub, address, metadata, ca is not None, timeout_s)

    def close(self):
        """Ends the connection and what is under way over it."""
        self._caller.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
