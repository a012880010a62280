"""The client whose calls block."""

import functools
from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, overload

from kvstore import _checks
from kvstore._blocking import BlockingWire, blocking, iterating
from kvstore._calls import Calls
from kvstore._connection import Connection
from kvstore._errors import Error
from kvstore._reports import Reports as ReportCalls
from kvstore._types import Object, Row, RowDelete, RowRead, RowWrite, Several, Text
from kvstore._wire import finish


class Reports:
    """The reports of one dataset; Client.reports makes it. Thread-safe."""

    def __init__(self, calls: ReportCalls):
        self._calls = calls

    create = blocking(ReportCalls.create)
    alter = blocking(ReportCalls.alter)
    drop = blocking(ReportCalls.drop)
    list = blocking(ReportCalls.list)
    info = blocking(ReportCalls.info)
    describe = blocking(ReportCalls.describe)
    list_metrics = blocking(ReportCalls.list_metrics)
    write = blocking(ReportCalls.write)
    query = blocking(ReportCalls.query)
    delete = blocking(ReportCalls.delete)
    compact = blocking(ReportCalls.compact)
    make_rollups = blocking(ReportCalls.make_rollups)


class Client(Connection):
    """A connection to a server. Thread-safe; an iterator that it returns is for one thread at a time.

    Every call takes a timeout_s (seconds, above 0), after which it raises DeadlineExceeded. Scans, compactions and
    large put_rows have no timeout unless they are given one. Invalid arguments raise InvalidArgument, which is a
    ValueError.
    """

    _wire = BlockingWire

    @functools.cached_property
    def _calls(self) -> Calls:
        return Calls(self._caller)

    def close(self) -> None:
        """Ends the connection and the calls in flight over it."""
        finish(self._caller.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    def reports(self, dataset: str = "reports") -> Reports:
        """Returns the calls on the reports (time series) of a dataset, which need not exist. Nothing is sent."""
        return Reports(ReportCalls(self._caller, _checks.text("dataset", dataset)))

    create_dataset = blocking(Calls.create_dataset)
    alter_dataset = blocking(Calls.alter_dataset)
    drop_dataset = blocking(Calls.drop_dataset)
    get_dataset = blocking(Calls.get_dataset)
    list_datasets = blocking(Calls.list_datasets)
    get_stats = blocking(Calls.get_stats)
    changes = iterating(Calls.changes)
    read_changes = blocking(Calls.read_changes)
    set_consumer = blocking(Calls.set_consumer)
    list_consumers = blocking(Calls.list_consumers)
    drop_consumer = blocking(Calls.drop_consumer)
    compact = blocking(Calls.compact)
    get_metrics = blocking(Calls.get_metrics)

    get_row_page = blocking(Calls.get_row_page)
    get_row = blocking(Calls.get_row)
    iter_row = iterating(Calls.iter_row)
    put_row = blocking(Calls.put_row)
    delete_row = blocking(Calls.delete_row)

    scan_rows = iterating(Calls.scan_rows)
    scan_page = blocking(Calls.scan_page)
    list_partitions = blocking(Calls.list_partitions)

    create_object = blocking(Calls.create_object)
    get_object = blocking(Calls.get_object)
    update_object = blocking(Calls.update_object)
    transform_object = blocking(Calls.transform_object)
    delete_object = blocking(Calls.delete_object)

    add_mapping = blocking(Calls.add_mapping)
    remove_mapping = blocking(Calls.remove_mapping)
    list_mapping_page = blocking(Calls.list_mapping_page)
    list_mapping = iterating(Calls.list_mapping)
    count_mapping = blocking(Calls.count_mapping)
    list_objects_page = blocking(Calls.list_objects_page)
    list_objects = iterating(Calls.list_objects)

    scan_objects = iterating(Calls.scan_objects)
    scan_objects_page = blocking(Calls.scan_objects_page)
    scan_mappings = iterating(Calls.scan_mappings)
    scan_mappings_page = blocking(Calls.scan_mappings_page)
    list_id_partitions = blocking(Calls.list_id_partitions)

    # blocking() wraps these correctly, but cannot express their overloads in types, so they are declared here.
    if TYPE_CHECKING:

        @overload
        def get_rows(
            self,
            dataset: str,
            reads: Several[Text | RowRead],
            *,
            return_exceptions: Literal[False] = False,
            timeout_s: float | None = None,
        ) -> list[Row]: ...

        @overload
        def get_rows(
            self,
            dataset: str,
            reads: Several[Text | RowRead],
            *,
            return_exceptions: Literal[True],
            timeout_s: float | None = None,
        ) -> list[Row | Error]: ...

        def get_rows(self, *_: Any, **__: Any) -> Any: ...

        @overload
        def put_rows(
            self,
            dataset: str,
            writes: Iterable[RowWrite],
            *,
            return_exceptions: Literal[False] = False,
            timeout_s: float | None = None,
        ) -> list[int | None]: ...

        @overload
        def put_rows(
            self,
            dataset: str,
            writes: Iterable[RowWrite],
            *,
            return_exceptions: Literal[True],
            timeout_s: float | None = None,
        ) -> list[int | None | Error]: ...

        def put_rows(self, *_: Any, **__: Any) -> Any: ...

        @overload
        def delete_rows(
            self,
            dataset: str,
            deletes: Several[Text | RowDelete],
            *,
            return_exceptions: Literal[False] = False,
            timeout_s: float | None = None,
        ) -> list[None]: ...

        @overload
        def delete_rows(
            self,
            dataset: str,
            deletes: Several[Text | RowDelete],
            *,
            return_exceptions: Literal[True],
            timeout_s: float | None = None,
        ) -> list[None | Error]: ...

        def delete_rows(self, *_: Any, **__: Any) -> Any: ...

        @overload
        def get_objects(
            self,
            dataset: str,
            ids: Iterable[int],
            *,
            include_inactive: bool = False,
            return_exceptions: Literal[False] = False,
            timeout_s: float | None = None,
        ) -> list[Object | None]: ...

        @overload
        def get_objects(
            self,
            dataset: str,
            ids: Iterable[int],
            *,
            include_inactive: bool = False,
            return_exceptions: Literal[True],
            timeout_s: float | None = None,
        ) -> list[Object | None | Error]: ...

        def get_objects(self, *_: Any, **__: Any) -> Any: ...

    else:
        get_rows = blocking(Calls.get_rows)
        put_rows = blocking(Calls.put_rows)
        delete_rows = blocking(Calls.delete_rows)
        get_objects = blocking(Calls.get_objects)
