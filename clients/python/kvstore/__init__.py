"""A client of a kvstore server.

    import kvstore

    with kvstore.Client("127.0.0.1:7400") as store:
        store.create_dataset("events", max_versions=50)
        store.put_row("events", "user:7", {"click": "pin:3"})
        for column, cells in store.get_row("events", "user:7").items():
            print(column, cells[0].timestamp, cells[0].value)

kvstore.aio has the same client for asyncio. docs/python.md has a table of all calls beside those of C++. Wherever bytes
are expected, a str stands for its UTF-8 bytes; results are bytes. Times are in ms, except timeout_s.

Errors are `kvstore.Error`, with a subclass for each code: `kvstore.NotFound`, `kvstore.Unavailable`, ... The client
retries a call that the server turned away, and a read whose connection was lost, until its timeout. Writes have a
request ID, by which the server recognises a retry. `Error.in_doubt` is true for a write that may or may not have
happened. `BadAnswer` means that the server's answer does not fit the request, `BatchError` that some entries of a batch
failed.

`Client.reports()` has the calls on reports, which are time series on top of datasets.

Every method of the services (wire/kvstore/v1/kvstore.proto, reports.proto) can also be called directly, by
`Client.stub` with the messages of `kvstore.messages` and `kvstore.v1.reports_pb2`; such calls raise gRPC's exceptions
and are not retried.
"""

from kvstore._client import Client, Reports
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
    OutOfRange,
    PermissionDenied,
    ResourceExhausted,
    Unauthenticated,
    Unavailable,
    Unimplemented,
)
from kvstore._report_types import (
    Expression,
    Filter,
    Metric,
    MetricPage,
    PartCost,
    Point,
    QueryCost,
    QueryResult,
    Report,
    ReportCompaction,
    Rollup,
    RollupsMade,
    SegmentKey,
    Series,
    Top,
)
from kvstore._types import (
    Cell,
    CellName,
    CellWrite,
    Change,
    ChangePage,
    Compaction,
    Condition,
    Consumer,
    Dataset,
    IdPartition,
    JoinedObject,
    JoinedPage,
    MappingChange,
    MappingEntry,
    MappingPage,
    Object,
    ObjectChange,
    ObjectPage,
    Partition,
    Row,
    RowChange,
    RowDelete,
    RowRead,
    RowWrite,
    ScanPage,
    ScannedMapping,
    ScannedMappingPage,
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
    "Change",
    "ChangePage",
    "Client",
    "Compaction",
    "Condition",
    "Consumer",
    "DataLoss",
    "Dataset",
    "DeadlineExceeded",
    "Error",
    "Expression",
    "FailedPrecondition",
    "Filter",
    "IdPartition",
    "Internal",
    "InvalidArgument",
    "JoinedObject",
    "JoinedPage",
    "MappingChange",
    "MappingEntry",
    "MappingPage",
    "Metric",
    "MetricPage",
    "NotFound",
    "Object",
    "ObjectChange",
    "ObjectPage",
    "PartCost",
    "Partition",
    "OutOfRange",
    "PermissionDenied",
    "Point",
    "QueryCost",
    "QueryResult",
    "Report",
    "ReportCompaction",
    "Reports",
    "ResourceExhausted",
    "Rollup",
    "RollupsMade",
    "Row",
    "RowChange",
    "RowDelete",
    "RowRead",
    "RowWrite",
    "ScanPage",
    "ScannedMapping",
    "ScannedMappingPage",
    "SegmentKey",
    "Series",
    "Stats",
    "Top",
    "Unauthenticated",
    "Unavailable",
    "Unimplemented",
    "messages",
]
