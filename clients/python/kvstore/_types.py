"""What goes into calls and comes out of them. Plain values: all but Row cannot be changed."""

from typing import NamedTuple, Optional, Union

from kvstore._errors import Error

Text = Union[bytes, str]


class Cell(NamedTuple):
    """One version of a column."""

    timestamp: int  # ms
    value: bytes


class Row(dict):
    """The columns of a row, or of a page of one: {column: [Cell, newest first]}, in byte order of the columns.

    marker  b"": nothing follows. Else what get_row_page takes to go on behind this page.
    """

    def __init__(self, columns=(), marker=b""):
        super().__init__(columns)
        self.marker = marker


class CellWrite(NamedTuple):
    """One cell to write. Without a timestamp (ms) the store assigns one, the same for all such cells of a put."""

    column: Text
    value: Text
    timestamp: Optional[int] = None


class CellName(NamedTuple):
    """One cell of a row."""

    column: Text
    timestamp: int


class Condition(NamedTuple):
    """Must hold for a put to happen, and is checked in one step with it.

    equals  the newest value that the column must have, else FailedPrecondition. None: the column must be absent, else
            AlreadyExists.
    """

    column: Text
    equals: Optional[Text] = None


class RowRead(NamedTuple):
    """One entry of get_rows; the fields are the arguments of get_row_page."""

    row: Text
    columns: Optional[list] = None
    versions: int = 1
    start_timestamp: int = 0
    end_timestamp: Optional[int] = None
    limit: int = 100
    max_bytes: Optional[int] = None
    marker: Text = b""


class RowWrite(NamedTuple):
    """One entry of put_rows; the fields are the arguments of put_row."""

    row: Text
    values: Union[dict, list]
    timestamp: Optional[int] = None
    condition: Optional[Condition] = None
    sync: bool = False


class RowDelete(NamedTuple):
    """One entry of delete_rows; the fields are the arguments of delete_row."""

    row: Text
    columns: Optional[list] = None
    cells: Optional[list] = None


class ScanPage(NamedTuple):
    """Some rows of a scan.

    rows    [(row key, Row)]
    marker  b"": nothing follows. Else what scan_page and scan_rows take to go on behind the last row.
    """

    rows: list
    marker: bytes


class Partition(NamedTuple):
    """A part of a dataset: rows from start (inclusive) to end (exclusive, b"" for the last) of a shard ("" for all)."""

    name: str  # For people and for logs.
    start: bytes
    end: bytes
    shard: str


class Object(NamedTuple):
    """A JSON document."""

    id: int
    data: bytes  # The text of a JSON object.
    timestamp: int  # When it was last changed, ms. Grows with every change: it serves as its version.


class MappingEntry(NamedTuple):
    """Where a mapping leads; entries are ordered by (sequence, to)."""

    to: int
    sequence: int


class MappingPage(NamedTuple):
    """A page of a mapping. marker b"": nothing follows."""

    entries: list  # of MappingEntry
    marker: bytes


class JoinedObject(NamedTuple):
    """An entry of a mapping and the object that it leads to.

    object  None: there is none. An Error: why it could not be read.
    """

    to: int
    sequence: int
    object: Union[Object, Error, None]


class JoinedPage(NamedTuple):
    """A page of a mapping with its objects. marker b"": nothing follows."""

    entries: list  # of JoinedObject
    marker: bytes


class Dataset(NamedTuple):
    """A dataset's settings; docs/data-model.md says what each is for."""

    name: str
    shape: str  # "rows", "objects", "mappings"
    backend: str
    type: int  # Of objects: 1..1023; else 0.
    max_versions: int  # 0: all
    ttl_ms: int  # 0: cells do not expire
    durability: str  # "process", "machine"
    compression: str  # "none", "lz4", "zstd"
    blob_threshold: int  # bytes; 0: none
    engine: str
    incarnation: int  # Tells it from an earlier one of the same name.
    table: str


class Stats(NamedTuple):
    """Rough sizes of a dataset, which cost no read of data."""

    approximate_bytes: int
    approximate_entries: int  # Cells, objects or entries of mappings, stale ones included.


class Compaction(NamedTuple):
    """What `compact` gave back."""

    bytes_before: int  # on disk
    bytes_after: int
    expired_cells: int
    surplus_cells: int
