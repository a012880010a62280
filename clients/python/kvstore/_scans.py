"""Reading many rows: scans, and the parts that a dataset can be scanned by."""

import grpc

from kvstore import _checks
from kvstore._caller import MOST_FAILURES
from kvstore._errors import InvalidArgument
from kvstore._items import columns_of
from kvstore._types import Partition, Row, ScanPage
from kvstore.v1 import kvstore_pb2 as messages


def _request(dataset, start, end, shard, columns, versions, start_timestamp, end_timestamp, marker, limit):
    start = _checks.octets("start", start, _checks.MAX_KEY_BYTES)
    end = _checks.octets("end", end, _checks.MAX_KEY_BYTES)
    if end and start >= end:
        raise InvalidArgument("start: is not before end")
    return messages.ScanRowsRequest(
        dataset=_checks.text("dataset", dataset),
        range=messages.RowRange(start=start, end=end, shard=_checks.text("shard", shard)),
        columns=_checks.columns(columns),
        versions=_checks.versions(versions),
        marker=_checks.octets("marker", marker),
        limit=limit,
        packed=True,
        **_checks.time_range(start_timestamp, end_timestamp),
    )


class Scans:
    def scan_rows(
        self,
        dataset,
        start=b"",
        end=b"",
        columns=None,
        versions=1,
        timeout_s=None,
        *,
        start_timestamp=0,
        end_timestamp=None,
        shard="",
        marker=b"",
    ):
        """Yields (row key, Row) for each row of [start, end) that has something to return, in byte order of the keys on
        an embedded store, in that order within each shard on shards. b"" as an end: no end.

        columns, versions, start_timestamp, end_timestamp
                   what to read of each row, as for get_row_page.
        timeout_s  how long all of the scan may take, also what its caller takes between two rows; None: as long as it
                   needs.
        shard      only rows of this one, as a Partition names it; "": of all.
        marker     begin behind the rows that a ScanPage ended with. The other arguments must be the same.

        A scan that loses its server goes on by itself behind the last row, with growing pauses, until its time is over;
        without a timeout_s it gives up after 12 attempts that brought nothing, some seconds: Unavailable.
        FailedPrecondition if the dataset was moved to another backend meanwhile: begin again. Each row is read as it is
        at one moment (one that comes in pieces and loses its server between two of them: at two) and put together in
        memory. To end a scan early close it (`rows.close()`), or let go of it.
        """
        request = _request(dataset, start, end, shard, columns, versions, start_timestamp, end_timestamp, marker, 0)
        return self._rows(request, self._caller.deadline_if_given(timeout_s))

    def scan_page(
        self,
        dataset,
        start=b"",
        end=b"",
        columns=None,
        versions=1,
        *,
        start_timestamp=0,
        end_timestamp=None,
        shard="",
        marker=b"",
        limit=100,
        timeout_s=None,
    ):
        """At most `limit` (1..10,000) rows of a scan at once: a ScanPage, whose marker the next call takes, also in
        another process. Arguments as for scan_rows.
        """
        limit = _checks.number("limit", limit, 1, _checks.MAX_ENTRIES)
        request = _request(dataset, start, end, shard, columns, versions, start_timestamp, end_timestamp, marker, limit)
        rows = list(self._rows(request, self._caller.deadline(timeout_s)))
        return ScanPage(rows, request.marker if len(rows) >= limit else b"")

    def list_partitions(self, dataset, wanted, *, timeout_s=None):
        """About `wanted` (1..65536) Partitions of similar size that together cover the dataset, for scans in parallel:

        for part in store.list_partitions("events", 8):
            rows = store.scan_rows("events", part.start, part.end, shard=part.shard)
        """
        request = messages.ListPartitionsRequest(
            dataset=_checks.text("dataset", dataset), wanted=_checks.number("wanted", wanted, 1, 65536)
        )
        answer = self._caller.read("ListPartitions", request, self._caller.deadline(timeout_s))
        return [
            Partition(part.name, part.range.start, part.range.end, part.range.shard) for part in answer.partitions
        ]

    def _rows(self, request, deadline):
        """Whole rows from the pieces that large ones come in. A `limit` of the request counts down."""
        limit = request.limit
        key, row = None, None
        for piece in self._pieces(request, deadline):
            if key is not None and piece.key != key:
                # What was left of it is gone since: it was deleted.
                yield key, row
                row = None
            if row is None:
                row = Row()
            key = piece.key
            for column, cells in columns_of(piece).items():
                row.setdefault(column, []).extend(cells)
            if piece.continues:
                continue
            if limit:
                request.limit -= 1
            yield key, row
            key, row = None, None
            if limit and request.limit == 0:
                return
        if key is not None:
            yield key, row

    def _pieces(self, request, deadline):
        """Rows and pieces of rows, across servers that go away. The request's marker is behind the last message."""
        failures = 0
        while True:
            stream = self._caller.start("ScanRows", request, deadline)
            try:
                empty = False
                for answer in stream:
                    # A message without rows says how far the server has looked; at an end that it was at, only once.
                    moved = answer.marker not in (b"", request.marker)
                    if not answer.rows and not moved and empty:
                        raise self._caller.bad("answered a scan with one message after the other without rows")
                    empty = empty or not (answer.rows or moved)
                    if 0 < request.limit < len(answer.rows):
                        raise self._caller.bad("answered more rows than were asked for")
                    if moved:
                        request.marker = answer.marker
                    if answer.rows or moved:
                        failures = 0
                    yield from answer.rows
                return
            except grpc.RpcError as error:
                why, told = self._caller.judge(error, writes=False)
                over = deadline is None and failures == MOST_FAILURES
                if not why or over or not self._caller.pause(why, failures, deadline):
                    raise told from error
                failures += 1
            finally:
                stream.cancel()
