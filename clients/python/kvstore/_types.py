"""The arguments and results of calls. Plain values, immutable except Row."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol, TypeVar

from kvstore._errors import Error

# Accepted wherever bytes are expected; a str stands for its UTF-8 form.
Text = bytes | str
T_co = TypeVar("T_co", covariant=True)


class Several(Protocol[T_co]):
    """A list, a tuple or a set, but not str or bytes, which a type checker would accept as a list, too."""

    def __contains__(self, value: object, /) -> bool: ...

    def __iter__(self) -> Iterator[T_co]: ...

    def __len__(self) -> int: ...


class Cell(NamedTuple):
    """One version of a column."""

    timestamp: int  # ms
    value: bytes


class Row(dict[bytes, list[Cell]]):
    """The columns of a row, or of a page of one: {column: [Cell, newest first]}, in byte order of the columns.

    marker  b"": nothing follows. Else what get_row_page takes to go on after this page.
    """

    marker: bytes

    def __init__(
        self, columns: Mapping[bytes, list[Cell]] | Iterable[tuple[bytes, list[Cell]]] = (), marker: bytes = b""
    ):
        super().__init__(columns)
        self.marker = marker


class CellWrite(NamedTuple):
    """One cell to write. Without a timestamp (ms) the store assigns one, the same for all such cells of a put."""

    column: Text
    value: Text
    timestamp: int | None = None


# The values that a put writes: {column: value}, or a list of CellWrite.
Values = Mapping[str, Text] | Mapping[bytes, Text] | Iterable[tuple[Text, Text] | tuple[Text, Text, int | None]]


class CellName(NamedTuple):
    """One cell of a row."""

    column: Text
    timestamp: int


CellNames = Iterable[tuple[Text, int]]


class Condition(NamedTuple):
    """A condition that must hold for a put to happen; it is checked atomically with the put.

    equals  the newest value that the column must have, else FailedPrecondition. None: the column must be absent, else
            AlreadyExists.
    """

    column: Text
    equals: Text | None = None


class RowRead(NamedTuple):
    """One entry of get_rows; the fields are the arguments of get_row_page."""

    row: Text
    columns: Several[Text] | None = None
    versions: int = 1
    start_timestamp: int = 0
    end_timestamp: int | None = None
    limit: int = 100
    max_bytes: int | None = None
    marker: Text = b""
    after_column: Text | None = None


class RowWrite(NamedTuple):
    """One entry of put_rows; the fields are the arguments of put_row."""

    row: Text
    values: Values
    timestamp: int | None = None
    condition: Condition | None = None
    sync: bool = False


class RowDelete(NamedTuple):
    """One entry of delete_rows; the fields are the arguments of delete_row."""

    row: Text
    columns: Several[Text] | None = None
    cells: CellNames | None = None


class ScanPage(NamedTuple):
    """Some rows of a scan.

    rows    [(row key, Row)]
    marker  b"": nothing follows. Else what scan_page and scan_rows take to go on after the last row.
    """

    rows: list[tuple[bytes, Row]]
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
    timestamp: int  # When it was last changed, in ms. Grows with every change, so that it serves as a version.


class MappingEntry(NamedTuple):
    """An entry of a mapping; entries are ordered by (sequence, to)."""

    to: int
    sequence: int


class MappingPage(NamedTuple):
    """A page of a mapping. marker b"": nothing follows."""

    entries: list[MappingEntry]
    marker: bytes


class ObjectPage(NamedTuple):
    """Some objects of a scan, in ascending order of their IDs.

    marker  b"": nothing follows. Else what scan_objects_page and scan_objects take to go on after this page.
    """

    objects: list[Object]
    marker: bytes


class ScannedMapping(NamedTuple):
    """An entry of a mapping as a scan returns it."""

    source: int
    target: int
    sequence: int


class ScannedMappingPage(NamedTuple):
    """Some entries of a scan, in ascending order of (source, target). The marker is as in ObjectPage."""

    entries: list[ScannedMapping]
    marker: bytes


class IdPartition(NamedTuple):
    """A part of a dataset of objects, or of mappings by their source: IDs from start_id to before end_id."""

    name: str  # For people and for logs.
    start_id: int
    end_id: int


class JoinedObject(NamedTuple):
    """An entry of a mapping and the object that it leads to.

    object  None: there is none. An Error: why it could not be read.
    """

    to: int
    sequence: int
    object: Object | Error | None


class JoinedPage(NamedTuple):
    """A page of a mapping with its objects. marker b"": nothing follows."""

    entries: list[JoinedObject]
    marker: bytes


class Dataset(NamedTuple):
    """A dataset's settings; docs/data-model.md says what each is for."""

    name: str
    shape: str  # "rows", "objects", "mappings"
    backend: str
    type: int  # Type number of objects, 1..1023; else 0.
    max_versions: int  # 0: all
    ttl_ms: int  # 0: cells do not expire
    durability: str  # "process", "machine"
    compression: str  # "none", "lz4", "zstd"
    blob_threshold: int  # bytes; 0: none
    engine: str
    incarnation: int  # Distinguishes it from an earlier dataset of the same name.
    table: str
    keep_changes_ms: int = 0  # How long changes are kept; 0: they are not recorded.


class RowChange(NamedTuple):
    """A column that a write has touched, with all of its visible cells, newest first; none: it is gone."""

    row: bytes
    column: bytes | None  # None: the whole row was deleted.
    cells: list[Cell]
    more: bool = False  # There are more than these newest ones, in a column of more than about a megabyte.


class ObjectChange(NamedTuple):
    """An object that a write has touched."""

    id: int
    timestamp: int
    data: bytes | None  # JSON; None: it is gone.


class MappingChange(NamedTuple):
    """An entry of a mapping that a write has touched."""

    source: int
    target: int
    sequence: int | None  # None: it is gone.


class Change(NamedTuple):
    """What a write has touched, as it is now: it may have been written again since, which follows as another change."""

    token: bytes  # To go on after this change.
    at_ms: int  # When the write was made.
    what: RowChange | ObjectChange | MappingChange


class ChangePage(NamedTuple):
    """A page of changes. complete_until_ms: all writes made until then are in it or before it; 0: more follows."""

    changes: list[Change]
    token: bytes  # To go on after this page.
    complete_until_ms: int


class Consumer(NamedTuple):
    """Somebody who follows a dataset and has said how far it has come (set_consumer)."""

    name: str
    token: bytes  # The place after what it has dealt with; b"": some of what is after that is not kept any more.
    set_ms: int  # When that was said.
    lag_ms: int  # How old the oldest change after the token is; 0: there is none.


class Stats(NamedTuple):
    """Rough sizes of a dataset, which cost no read of data."""

    approximate_bytes: int
    approximate_entries: int  # Cells, objects or entries of mappings, stale ones included.


class Compaction(NamedTuple):
    """The result of `compact`."""

    bytes_before: int  # on disk
    bytes_after: int
    expired_cells: int
    surplus_cells: int
