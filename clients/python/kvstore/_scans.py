"""Reading many rows: scans, and partitions for scans in parallel."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

import grpc

from kvstore import _checks
from kvstore._caller import Calling
from kvstore._errors import InvalidArgument
from kvstore._items import columns_of
from kvstore._types import Partition, Row, ScanPage, Several, Text
from kvstore.v1 import kvstore_pb2 as messages


def _request(
    dataset: str,
    start: Text,
    end: Text,
    shard: str,
    columns: Several[Text] | None,
    versions: int,
    start_timestamp: int,
    end_timestamp: int | None,
    marker: Text,
    limit: int,
) -> messages.ScanRowsRequest:
    start = _checks.octets("start", start, _checks.MAX_KEY_BYTES)
    end = _checks.octets("end", end, _checks.MAX_KEY_BYTES)
    if end and start >= end:
        raise InvalidArgument("start: is not before end")
    since, until = _checks.time_range(start_timestamp, end_timestamp)
    return messages.ScanRowsRequest(
        dataset=_checks.text("dataset", dataset),
        range=messages.RowRange(start=start, end=end, shard=_checks.text("shard", shard)),
        columns=_checks.columns(columns),
        versions=_checks.versions(versions),
        marker=_checks.octets("marker", marker),
        limit=limit,
        packed=True,
        start_timestamp=since,
        end_timestamp=until,
    )


class Scans(Calling):
    def scan_rows(
        self,
        dataset: str,
        start: Text = b"",
        end: Text = b"",
        columns: Several[Text] | None = None,
        versions: int = 1,
        timeout_s: float | None = None,
        *,
        start_timestamp: int = 0,
        end_timestamp: int | None = None,
        shard: str = "",
        marker: Text = b"",
    ) -> AsyncGenerator[tuple[bytes, Row], None]:
        """Yields (row key, Row) for each row of [start, end) that has something to return, in byte order of the keys on
        an embedded store, in that order within each shard on shards. b"" as an end: no end.

        columns, versions, start_timestamp, end_timestamp
                   what to read of each row, as for get_row_page.
        timeout_s  how long all of the scan may take, also what its caller takes between two rows; None: as long as it
                   needs.
        shard      only rows of this one, as a Partition names it; "": of all.
        marker     begin after the rows that a ScanPage ended with. The other arguments must be the same.

        A scan that loses its server goes on by itself after the last row, with growing pauses, until its time is over;
        without a timeout_s it gives up after 12 attempts that brought nothing, some seconds: Unavailable.
        FailedPrecondition if the dataset was moved to another backend meanwhile: begin again. Each row is read as it is
        at one moment (one that comes in pieces and loses its server between two of them: at two) and put together in
        memory. To end a scan early close it (`rows.close()`, asyncio's `await rows.aclose()`), or let go of it.
        """
        request = _request(dataset, start, end, shard, columns, versions, start_timestamp, end_timestamp, marker, 0)
        return self._rows(request, self._caller.deadline_if_given(timeout_s))

    async def scan_page(
        self,
        dataset: str,
        start: Text = b"",
        end: Text = b"",
        columns: Several[Text] | None = None,
        versions: int = 1,
        *,
        start_timestamp: int = 0,
        end_timestamp: int | None = None,
        shard: str = "",
        marker: Text = b"",
        limit: int = 100,
        timeout_s: float | None = None,
    ) -> ScanPage:
        """At most `limit` (1..10,000) rows of a scan at once: a ScanPage, whose marker the next call takes, also in
        another process. Arguments as for scan_rows.
        """
        limit = _checks.number("limit", limit, 1, _checks.MAX_ENTRIES)
        request = _request(dataset, start, end, shard, columns, versions, start_timestamp, end_timestamp, marker, limit)
        rows = [row async for row in self._rows(request, self._caller.deadline(timeout_s))]
        return ScanPage(rows, request.marker if len(rows) >= limit else b"")

    async def list_partitions(self, dataset: str, wanted: int, *, timeout_s: float | None = None) -> list[Partition]:
        """About `wanted` (1..65536) Partitions of similar size that together cover the dataset, for scans in parallel:

        for part in store.list_partitions("events", 8):
            rows = store.scan_rows("events", part.start, part.end, shard=part.shard)
        """
        request = messages.ListPartitionsRequest(
            dataset=_checks.text("dataset", dataset), wanted=_checks.number("wanted", wanted, 1, 65536)
        )
        deadline = self._caller.deadline(timeout_s)
        answer: messages.ListPartitionsResponse = await self._caller.read("ListPartitions", request, deadline)
        return [
            Partition(part.name, part.range.start, part.range.end, part.range.shard) for part in answer.partitions
        ]

    async def _rows(
        self, request: messages.ScanRowsRequest, deadline: float | None
    ) -> AsyncGenerator[tuple[bytes, Row], None]:
        """Yields whole rows, joined from the pieces in which large ones arrive. Decrements the request's `limit`."""
        limit = request.limit
        key, row = b"", None
        async with aclosing(self._answers(request, deadline)) as answers:
            async for answer in answers:
                for piece in answer.rows:
                    if row is not None and piece.key != key:
                        # The rest of the row was deleted meanwhile.
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
                    row = None
                    if limit and request.limit == 0:
                        return
            if row is not None:
                yield key, row

    async def _answers(
        self, request: messages.ScanRowsRequest, deadline: float | None
    ) -> AsyncGenerator[messages.ScanRowsResponse, None]:
        """Yields messages of rows and pieces of rows, and resumes when the server is lost. The request's marker is
        always after the last message."""
        failures = 0
        while True:
            stream = self._caller.stream("ScanRows", request, deadline)
            try:
                empty = False
                while (answer := await stream.read()) is not None:
                    # A message without rows says how far the server has read; the same position must not come twice.
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
                    yield answer
                return
            except grpc.RpcError as error:
                await self._caller.outlast(error, failures, deadline)
                failures += 1
            finally:
                stream.cancel()
