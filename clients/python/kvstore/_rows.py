"""Calls on one row."""

from kvstore import _checks
from kvstore._errors import InvalidArgument
from kvstore._items import columns_of, count_of
from kvstore._types import CellName, CellWrite, Condition, Row, RowRead
from kvstore.v1 import kvstore_pb2 as messages

# Columns of a page where all pages are read.
_PAGE_COLUMNS = 1000


def read_options(read):
    """The message ReadOptions of a RowRead."""
    return messages.ReadOptions(
        columns=_checks.columns(read.columns),
        versions=_checks.versions(read.versions),
        limit=_checks.number("limit", read.limit, 1, _checks.MAX_UINT32),
        max_bytes=_checks.page_bytes(read.max_bytes),
        marker=_checks.octets("marker", read.marker),
        packed=True,
        **_checks.time_range(read.start_timestamp, read.end_timestamp),
    )


def _row_request(dataset, read):
    return messages.GetRowRequest(
        dataset=_checks.text("dataset", dataset), row=_checks.row_key(read.row), options=read_options(read)
    )


def row_of(answer, options, bad):
    """The Row of an answer to these ReadOptions."""
    if count_of(answer) > options.limit:
        raise bad("answered more entries than a page may have")
    if answer.marker and answer.marker == options.marker:
        raise bad("answered a page that does not go on")
    return Row(columns_of(answer), answer.marker)


def cells_of(values, timestamp):
    """Messages CellWrite from {column: value}, or from a list of CellWrite."""
    if timestamp is not None:
        timestamp = _checks.timestamp("timestamp", timestamp)
    if isinstance(values, dict):
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
        if not isinstance(one, (CellWrite, tuple)) or not 2 <= len(one) <= 3:
            raise InvalidArgument("values: an entry is no CellWrite(column, value, timestamp)")
        own = one[2] if len(one) == 3 else None
        cell = messages.CellWrite(
            column=_checks.octets("column", one[0], _checks.MAX_KEY_BYTES),
            value=_checks.octets("value", one[1], _checks.MAX_VALUE_BYTES),
            timestamp=timestamp if own is None else _checks.timestamp("timestamp", own),
        )
        total += len(cell.column) + len(cell.value)
        cells.append(cell)
    if total > _checks.MAX_PUT_BYTES:
        raise InvalidArgument(f"values: {total} bytes of names and values; a put has at most {_checks.MAX_PUT_BYTES}")
    return cells


def condition_of(condition):
    """The message Condition; None for None."""
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


def delete_options(columns, cells):
    """The message DeleteOptions."""
    if cells is None:
        return messages.DeleteOptions(columns=_checks.columns(columns))
    if columns is not None:
        raise InvalidArgument("columns, cells: give one of them, not both")
    names = messages.CellNames()
    for one in _checks.listed("cells", cells):
        if not isinstance(one, (CellName, tuple)) or len(one) != 2:
            raise InvalidArgument("cells: an entry is no CellName(column, timestamp)")
        names.names.add(
            column=_checks.octets("column", one[0], _checks.MAX_KEY_BYTES),
            timestamp=_checks.timestamp("timestamp", one[1]),
        )
    return messages.DeleteOptions(cells=names)


class Rows:
    def get_row_page(
        self,
        dataset,
        row,
        columns=None,
        versions=1,
        *,
        start_timestamp=0,
        end_timestamp=None,
        limit=100,
        max_bytes=None,
        marker=b"",
        timeout_s=None,
    ):
        """One page of a row: a Row. Its `marker` is b"" if nothing follows, else it is given to the next call.

        columns          a list of names; None: all.
        versions         at most so many cells of each column, newest first.
        start_timestamp  only cells from this time on (ms) ...
        end_timestamp    ... and before this one; None: no end.
        limit            columns of a page.
        max_bytes        bytes of names and values of a page, at most 64 MiB. A server sends at most 4 MiB.
        marker           Row.marker of the page before, which was read with the same arguments.

        A page may have less than `limit` columns, even none, and a column may go on in the next one: as long as there
        is a marker, more may follow. A row that does not exist is an empty Row.
        """
        read = RowRead(row, columns, versions, start_timestamp, end_timestamp, limit, max_bytes, marker)
        return self._row_page(_row_request(dataset, read), self._caller.deadline(timeout_s))

    def get_row(
        self, dataset, row, columns=None, versions=1, *, start_timestamp=0, end_timestamp=None, timeout_s=None
    ):
        """The whole row, or those columns of it that are named, in as many pages as that takes: a Row.

        All of it is in memory then; iter_row and get_row_page are for rows that are too large for that. Arguments as
        for get_row_page; timeout_s is for all pages together.
        """
        read = RowRead(row, columns, versions, start_timestamp, end_timestamp, limit=_PAGE_COLUMNS)
        deadline = self._caller.deadline(timeout_s)
        return Row(self._columns(_row_request(dataset, read), lambda: deadline))

    def iter_row(
        self, dataset, row, columns=None, versions=1, *, start_timestamp=0, end_timestamp=None, timeout_s=None
    ):
        """Yields (column, [Cell, newest first]) of the whole row, with one page of it in memory at a time.

        Writes meanwhile make it neither skip nor repeat a column that exists throughout. Arguments as for get_row_page;
        a timeout_s is for all of it, without one each page may take as long as the client was told.
        """
        read = RowRead(row, columns, versions, start_timestamp, end_timestamp, limit=_PAGE_COLUMNS)
        return self._columns(_row_request(dataset, read), self._caller.deadlines(timeout_s))

    def put_row(self, dataset, row, values, timestamp=None, *, condition=None, sync=False, timeout_s=None):
        """Writes cells of one row, all or none. Returns the timestamp that the store assigned, None if it assigned
        none.

        values     {column: value}, or a list of CellWrite; names and values at most 8 MiB together, a value at most 4
                   MiB.
        timestamp  of all cells that bring none (ms); None: the store assigns one, later than all that it gave to this
                   row.
        condition  a Condition that must hold, else nothing is written: AlreadyExists or FailedPrecondition.
        sync       force it to stable storage before the answer, whatever the dataset's durability.
        """
        request = messages.PutRowRequest(
            dataset=_checks.text("dataset", dataset),
            row=_checks.row_key(row),
            cells=cells_of(values, timestamp),
            condition=condition_of(condition),
            sync=_checks.flag("sync", sync),
        )
        answer = self._caller.write("PutRow", request, self._caller.deadline(timeout_s))
        return answer.timestamp if answer.HasField("timestamp") else None

    def delete_row(self, dataset, row, columns=None, *, cells=None, timeout_s=None):
        """Removes what is there at this moment, all or none: the row; or `columns` of it; or single cells.

        columns  a list of names: all versions of these columns.
        cells    a list of CellName, only where the dataset keeps all versions (max_versions 0), else
                 FailedPrecondition.

        To delete what is not there is no error.
        """
        request = messages.DeleteRowRequest(
            dataset=_checks.text("dataset", dataset), row=_checks.row_key(row), options=delete_options(columns, cells)
        )
        self._caller.write("DeleteRow", request, self._caller.deadline(timeout_s))

    def _row_page(self, request, deadline):
        return row_of(self._caller.read("GetRow", request, deadline), request.options, self._caller.bad)

    def _columns(self, request, deadline_of_page):
        # The last column of a page may go on in the next one.
        column, cells = None, []
        while True:
            page = self._row_page(request, deadline_of_page())
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
