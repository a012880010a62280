"""Calls on one row."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

from kvstore import _checks
from kvstore._caller import Calling
from kvstore._errors import BadAnswer, InvalidArgument
from kvstore._items import PageOfColumns, columns_of, count_of
from kvstore._types import Cell, CellNames, CellWrite, Condition, Row, RowRead, Several, Text, Values
from kvstore.v1 import kvstore_pb2 as messages

# Columns in a page where all pages are read.
_PAGE_COLUMNS = 1000


def read_options(read: RowRead) -> messages.ReadOptions:
    """Returns a RowRead as a message ReadOptions."""
    start, end = _checks.time_range(read.start_timestamp, read.end_timestamp)
    return messages.ReadOptions(
        columns=_checks.columns(read.columns),
        versions=_checks.versions(read.versions),
        limit=_checks.number("limit", read.limit, 1, _checks.MAX_UINT32),
        max_bytes=_checks.page_bytes(read.max_bytes),
        marker=_checks.octets("marker", read.marker),
        packed=True,
        start_timestamp=start,
        end_timestamp=end,
        after_column=_checks.after_column(read.after_column),
    )


def _row_request(dataset: str, read: RowRead) -> messages.GetRowRequest:
    return messages.GetRowRequest(
        dataset=_checks.text("dataset", dataset), row=_checks.row_key(read.row), options=read_options(read)
    )


def row_of(answer: PageOfColumns, options: messages.ReadOptions, bad: Callable[[str], BadAnswer]) -> Row:
    """Checks an answer to these ReadOptions and returns it as a Row."""
    if count_of(answer) > options.limit:
        raise bad("answered more entries than a page may have")
    if answer.marker and answer.marker == options.marker:
        raise bad("answered a page that does not go on")
    return Row(columns_of(answer), answer.marker)


def cells_of(values: Values, timestamp: int | None) -> list[messages.CellWrite]:
    """Returns messages CellWrite for {column: value}, or for a list of CellWrite."""
    if timestamp is not None:
        timestamp = _checks.timestamp("timestamp", timestamp)
    given: Sequence[tuple[Text, Text] | tuple[Text, Text, int | None]]
    if isinstance(values, Mapping):
        given = [CellWrite(column, value) for column, value in values.items()]
    elif isinstance(values, (str, bytes)):
        kind = type(values).__name__
        raise InvalidArgument(f"values: is of type {kind}; it is {{column: value}} or a list of CellWrite")
    else:
        given = _checks.listed("values", values)
    if not given:
        raise InvalidArgument("values: is empty; a put has at least one")
    if len(given) > _checks.MAX_CELLS:
        raise InvalidArgument(f"values: has {len(given)} cells; a put has at most {_checks.MAX_CELLS}")
    cells, total = [], 0
    for one in given:
        if not isinstance(one, tuple) or not 2 <= len(one) <= 3:
            raise InvalidArgument("values: an entry is no CellWrite(column, value, timestamp)")
        column, value, own = one if isinstance(one, CellWrite) else CellWrite(*one)
        cell = messages.CellWrite(
            column=_checks.octets("column", column, _checks.MAX_KEY_BYTES),
            value=_checks.octets("value", value, _checks.MAX_VALUE_BYTES),
            timestamp=timestamp if own is None else _checks.timestamp("timestamp", own),
        )
        total += len(cell.column) + len(cell.value)
        cells.append(cell)
    if total > _checks.MAX_PUT_BYTES:
        raise InvalidArgument(f"values: {total} bytes of names and values; a put has at most {_checks.MAX_PUT_BYTES}")
    return cells


def condition_of(condition: Condition | None) -> messages.Condition | None:
    """Returns a Condition as a message; None for None."""
    if condition is None:
        return None
    if not isinstance(condition, Condition):
        kind = type(condition).__name__
        raise InvalidArgument(f"condition: is of type {kind}; it is a kvstore.Condition(column, equals)")
    column = _checks.octets("condition.column", condition.column, _checks.MAX_KEY_BYTES)
    if condition.equals is None:
        return messages.Condition(column=column)
    return messages.Condition(
        column=column, equals=_checks.octets("condition.equals", condition.equals, _checks.MAX_VALUE_BYTES)
    )


def delete_options(columns: Several[Text] | None, cells: CellNames | None) -> messages.DeleteOptions:
    """Returns the message DeleteOptions."""
    if cells is None:
        return messages.DeleteOptions(columns=_checks.columns(columns))
    if columns is not None:
        raise InvalidArgument("columns, cells: give one of them, not both")
    names = messages.CellNames()
    for one in _checks.listed("cells", cells):
        if not isinstance(one, tuple) or len(one) != 2:
            raise InvalidArgument("cells: an entry is no CellName(column, timestamp)")
        names.names.add(
            column=_checks.octets("column", one[0], _checks.MAX_KEY_BYTES),
            timestamp=_checks.timestamp("timestamp", one[1]),
        )
    return messages.DeleteOptions(cells=names)


class Rows(Calling):
    async def get_row_page(
        self,
        dataset: str,
        row: Text,
        columns: Several[Text] | None = None,
        versions: int = 1,
        *,
        start_timestamp: int = 0,
        end_timestamp: int | None = None,
        limit: int = 100,
        max_bytes: int | None = None,
        marker: Text = b"",
        after_column: Text | None = None,
        timeout_s: float | None = None,
    ) -> Row:
        """Returns one page of a row as a Row. Pass its `marker` to the next call; it is b"" if nothing follows.

        columns          a list of names; None: all.
        versions         at most this many cells of each column, newest first.
        start_timestamp  only cells from this time on (ms) ...
        end_timestamp    ... and before this one; None: no end.
        limit            columns in a page.
        max_bytes        bytes of names and values in a page, at most 64 MiB. A server sends at most 4 MiB.
        marker           Row.marker of the previous page, which was read with the same arguments.
        after_column     the first page begins after this column, in byte order, whether there is such a column or not;
                         None: with the first column. Not looked at where there is a marker.

        A page may have fewer than `limit` columns, even none, and a column may continue on the next page: as long as
        there is a marker, more may follow. A row that does not exist is an empty Row.
        """
        read = RowRead(row, columns, versions, start_timestamp, end_timestamp, limit, max_bytes, marker, after_column)
        return await self._row_page(_row_request(dataset, read), self._caller.deadline(timeout_s))

    async def get_row(
        self,
        dataset: str,
        row: Text,
        columns: Several[Text] | None = None,
        versions: int = 1,
        *,
        start_timestamp: int = 0,
        end_timestamp: int | None = None,
        after_column: Text | None = None,
        timeout_s: float | None = None,
    ) -> Row:
        """Returns the whole row, or the named columns of it, as a Row; reads as many pages as that takes.

        The whole Row is in memory; use iter_row or get_row_page for rows that are too large for that. The arguments
        are those of get_row_page; timeout_s covers all pages together.
        """
        read = RowRead(
            row, columns, versions, start_timestamp, end_timestamp, limit=_PAGE_COLUMNS, after_column=after_column
        )
        deadline = self._caller.deadline(timeout_s)
        return Row([found async for found in self._columns(_row_request(dataset, read), lambda: deadline)])

    def iter_row(
        self,
        dataset: str,
        row: Text,
        columns: Several[Text] | None = None,
        versions: int = 1,
        *,
        start_timestamp: int = 0,
        end_timestamp: int | None = None,
        after_column: Text | None = None,
        timeout_s: float | None = None,
    ) -> AsyncGenerator[tuple[bytes, list[Cell]], None]:
        """Yields (column, [Cell, newest first]) of the whole row, with one page of it in memory at a time.

        Concurrent writes never make it skip or repeat a column that exists throughout. The arguments are those of
        get_row_page; a timeout_s covers all pages together, without one the client's timeout applies to each page.
        """
        read = RowRead(
            row, columns, versions, start_timestamp, end_timestamp, limit=_PAGE_COLUMNS, after_column=after_column
        )
        return self._columns(_row_request(dataset, read), self._caller.deadlines(timeout_s))

    async def put_row(
        self,
        dataset: str,
        row: Text,
        values: Values,
        timestamp: int | None = None,
        *,
        condition: Condition | None = None,
        sync: bool = False,
        timeout_s: float | None = None,
    ) -> int | None:
        """Writes cells of one row, all or none. Returns the timestamp that the store assigned, None if it assigned
        none.

        values     {column: value}, or a list of CellWrite; names and values have at most 8 MiB together, a value at
                   most 4 MiB.
        timestamp  timestamp in ms of the cells that have none of their own; None: the store assigns one, later than
                   all that it has assigned in this row.
        condition  a Condition that must hold; otherwise nothing is written: AlreadyExists or FailedPrecondition.
        sync       write to stable storage before the answer, whatever the dataset's durability is.
        """
        request = messages.PutRowRequest(
            dataset=_checks.text("dataset", dataset),
            row=_checks.row_key(row),
            cells=cells_of(values, timestamp),
            condition=condition_of(condition),
            sync=_checks.flag("sync", sync),
        )
        deadline = self._caller.deadline(timeout_s)
        answer: messages.PutRowResponse = await self._caller.write("PutRow", request, deadline)
        return answer.timestamp if answer.HasField("timestamp") else None

    async def delete_row(
        self,
        dataset: str,
        row: Text,
        columns: Several[Text] | None = None,
        *,
        cells: CellNames | None = None,
        timeout_s: float | None = None,
    ) -> None:
        """Removes what exists at this moment, all or none: the row, or `columns` of it, or single cells.

        columns  a list of names: all versions of these columns.
        cells    a list of CellName, only where the dataset keeps all versions (max_versions 0), else
                 FailedPrecondition.

        Deleting something that does not exist is not an error.
        """
        request = messages.DeleteRowRequest(
            dataset=_checks.text("dataset", dataset), row=_checks.row_key(row), options=delete_options(columns, cells)
        )
        await self._caller.write("DeleteRow", request, self._caller.deadline(timeout_s))

    async def _row_page(self, request: messages.GetRowRequest, deadline: float) -> Row:
        answer: messages.GetRowResponse = await self._caller.read("GetRow", request, deadline)
        return row_of(answer, request.options, self._caller.bad)

    async def _columns(
        self, request: messages.GetRowRequest, deadline_of_page: Callable[[], float]
    ) -> AsyncGenerator[tuple[bytes, list[Cell]], None]:
        # The last column of a page may continue on the next one.
        column: bytes | None = None
        cells: list[Cell] = []
        while True:
            page = await self._row_page(request, deadline_of_page())
            for name, more in page.items():
                if name == column:
                    cells.extend(more)
                    continue
                if column is not None:
                    yield column, cells
                column, cells = name, more
            if not page.marker:
                break
            request.options.marker = page.marker
        if column is not None:
            yield column, cells
