"""A client of a kvstore server.

    import kvstore

    with kvstore.Client("127.0.0.1:7400") as store:
        store.create_dataset("events", max_versions=50)
        store.put_row("events", "user:7", {"click": "pin:3"})
        for column, cells in store.get_row("events", "user:7").items():
            print(column, cells[0].timestamp, cells[0].value)

docs/python.md has a table of all calls beside those of C++. A str is taken as its UTF-8 bytes wherever bytes are
wanted; answers have bytes. Times are ms, but for timeout_s.

Errors are `kvstore.Error`, with a subclass for each code: `kvstore.NotFound`, `kvstore.Unavailable`, ... A call that
was turned away, or that was lost on its way and changes nothing, is made again until its time is over; writes have a
request ID, by which the server knows a repetition. `Error.in_doubt` says of a write that nobody knows whether it
happened. A server that answers something else than what it was asked: `BadAnswer`. Entries of a batch that failed:
`BatchError`.

Every method of the service (wire/kvstore/v1/kvstore.proto) can also be called as it is, by `Client.stub` with the
messages of `kvstore.messages`; such calls raise what gRPC does and are not repeated.
"""

from kvstore._client import Client
from kvstore._errors import (
    AlreadyExists,
    BadAnswer,
    BatchError,
    Cancelled,
    DataLoss,
    DeadlineExceeded,
    Error,
    FailedPrecondition,
    Internal,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    ResourceExhausted,
    Unauthenticated,
    Unavailable,
    Unimplemented,
)
from kvstore._types import (
    Cell,
    CellName,
    CellWrite,
    Compaction,
    Condition,
    Dataset,
    JoinedObject,
    JoinedPage,
    MappingEntry,
    MappingPage,
    Object,
    Partition,
    Row,
    RowDelete,
    RowRead,
    RowWrite,
    ScanPage,
    Stats,
)
from kvstore.v1 import kvstore_pb2 as messages

__all__ = [
    "AlreadyExists",
    "BadAnswer",
    "BatchError",
    "Cancelled",
    "Cell",
    "CellName",
    "CellWrite",
    "Client",
    "Compaction",
    "Condition",
    "DataLoss",
    "Dataset",
    "DeadlineExceeded",
    "Error",
    "FailedPrecondition",
    "Internal",
    "InvalidArgument",
    "JoinedObject",
    "JoinedPage",
    "MappingEntry",
    "MappingPage",
    "NotFound",
    "Object",
    "Partition",
    "PermissionDenied",
    "ResourceExhausted",
    "Row",
    "RowDelete",
    "RowRead",
    "RowWrite",
    "ScanPage",
    "Stats",
    "Unauthenticated",
    "Unavailable",
    "Unimplemented",
    "messages",
]
