"""Scans of datasets of objects and of mappings, and partitions for scans in parallel."""

from collections.abc import AsyncGenerator

from kvstore import _checks
from kvstore._caller import Calling
from kvstore._errors import InvalidArgument
from kvstore._objects import object_of
from kvstore._types import IdPartition, Object, ObjectPage, ScannedMapping, ScannedMappingPage, Text
from kvstore.v1 import kvstore_pb2 as messages

# Objects or entries in a page where all pages are read.
_PAGE_ENTRIES = 1000


def _range(start_id: int, end_id: int | None) -> messages.IdRange:
    start = _checks.object_id("start_id", start_id)
    if end_id is None:
        return messages.IdRange(start=start)
    end = _checks.number("end_id", end_id, 0, _checks.MAX_ID + 1)
    if start >= end:
        raise InvalidArgument(f"start_id: {start} is not before end_id {end}; the range [start, end) is empty")
    return messages.IdRange(start=start, end=end)


def _objects_request(
    dataset: str,
    start_id: int,
    end_id: int | None,
    include_inactive: bool,
    limit: int,
    max_bytes: int | None,
    marker: Text,
) -> messages.ScanObjectsRequest:
    return messages.ScanObjectsRequest(
        dataset=_checks.text("dataset", dataset),
        range=_range(start_id, end_id),
        include_inactive=_checks.flag("include_inactive", include_inactive),
        limit=_checks.number("limit", limit, 1, _checks.MAX_ENTRIES),
        max_bytes=_checks.page_bytes(max_bytes),
        marker=_checks.octets("marker", marker),
    )


def _mappings_request(
    dataset: str, start_id: int, end_id: int | None, limit: int, marker: Text
) -> messages.ScanMappingsRequest:
    return messages.ScanMappingsRequest(
        dataset=_checks.text("dataset", dataset),
        range=_range(start_id, end_id),
        limit=_checks.number("limit", limit, 1, _checks.MAX_ENTRIES),
        marker=_checks.octets("marker", marker),
    )


class IdScans(Calling):
    def scan_objects(
        self,
        dataset: str,
        start_id: int = 0,
        end_id: int | None = None,
        *,
        include_inactive: bool = False,
        marker: Text = b"",
        timeout_s: float | None = None,
    ) -> AsyncGenerator[Object, None]:
        """Yields the Objects of a dataset with IDs from start_id to before end_id, in ascending order of their IDs,
        read page by page. An object that exists all the time is yielded once, also if its dataset migrates meanwhile.

        end_id            None: no end.
        include_inactive  also objects that were deleted softly.
        marker            begin after an ObjectPage; the other arguments must be the same.
        timeout_s         covers all pages; None: the client's timeout applies to each page.
        """
        request = _objects_request(dataset, start_id, end_id, include_inactive, _PAGE_ENTRIES, None, marker)
        return self._all_objects(request, timeout_s)

    async def scan_objects_page(
        self,
        dataset: str,
        start_id: int = 0,
        end_id: int | None = None,
        *,
        include_inactive: bool = False,
        limit: int = 1000,
        max_bytes: int | None = None,
        marker: Text = b"",
        timeout_s: float | None = None,
    ) -> ObjectPage:
        """Returns one page of scan_objects, an ObjectPage. It may have fewer than `limit` objects, or none: as long as
        there is a marker, more may follow.

        limit      objects in the page, 1..10,000.
        max_bytes  bytes of objects in the page, at most 64 MiB. A server sends at most 4 MiB.
        """
        request = _objects_request(dataset, start_id, end_id, include_inactive, limit, max_bytes, marker)
        return await self._object_page(request, self._caller.deadline(timeout_s))

    def scan_mappings(
        self,
        dataset: str,
        start_id: int = 0,
        end_id: int | None = None,
        *,
        marker: Text = b"",
        timeout_s: float | None = None,
    ) -> AsyncGenerator[ScannedMapping, None]:
        """Yields ScannedMapping(source, target, sequence) for all entries whose source is in the range, in ascending
        order of (source, target). Arguments as for scan_objects.
        """
        request = _mappings_request(dataset, start_id, end_id, _PAGE_ENTRIES, marker)
        return self._all_mappings(request, timeout_s)

    async def scan_mappings_page(
        self,
        dataset: str,
        start_id: int = 0,
        end_id: int | None = None,
        *,
        limit: int = 1000,
        marker: Text = b"",
        timeout_s: float | None = None,
    ) -> ScannedMappingPage:
        """Returns one page of scan_mappings, a ScannedMappingPage. Arguments as for scan_objects_page."""
        request = _mappings_request(dataset, start_id, end_id, limit, marker)
        return await self._scanned_mapping_page(request, self._caller.deadline(timeout_s))

    async def list_id_partitions(
        self, dataset: str, wanted: int, *, timeout_s: float | None = None
    ) -> list[IdPartition]:
        """About `wanted` (1..65536) IdPartitions of similar size that together cover a dataset of objects or mappings,
        for scans in parallel:

        for part in store.list_id_partitions("pins", 8):
            objects = store.scan_objects("pins", part.start_id, part.end_id)
        """
        request = messages.ListPartitionsRequest(
            dataset=_checks.text("dataset", dataset), wanted=_checks.number("wanted", wanted, 1, 65536)
        )
        deadline = self._caller.deadline(timeout_s)
        answer: messages.ListPartitionsResponse = await self._caller.read("ListPartitions", request, deadline)
        return [
            IdPartition(part.name, part.ids.start, part.ids.end if part.ids.HasField("end") else _checks.MAX_ID + 1)
            for part in answer.partitions
        ]

    # ---- pages ----

    async def _all_objects(
        self, request: messages.ScanObjectsRequest, timeout_s: float | None
    ) -> AsyncGenerator[Object, None]:
        deadline_of_page = self._caller.deadlines(timeout_s)
        while True:
            page = await self._object_page(request, deadline_of_page())
            for one in page.objects:
                yield one
            if not page.marker:
                return
            request.marker = page.marker

    async def _all_mappings(
        self, request: messages.ScanMappingsRequest, timeout_s: float | None
    ) -> AsyncGenerator[ScannedMapping, None]:
        deadline_of_page = self._caller.deadlines(timeout_s)
        while True:
            page = await self._scanned_mapping_page(request, deadline_of_page())
            for entry in page.entries:
                yield entry
            if not page.marker:
                return
            request.marker = page.marker

    async def _object_page(self, request: messages.ScanObjectsRequest, deadline: float) -> ObjectPage:
        answer: messages.ScanObjectsResponse = await self._caller.read("ScanObjects", request, deadline)
        self._check_scanned(request, len(answer.objects), answer.marker)
        lowest = request.range.start
        for one in answer.objects:
            if one.id < lowest or not self._ends_behind(request.range, one.id):
                raise self._caller.bad("answered a scan with objects that are not in its range or order")
            lowest = one.id + 1
        return ObjectPage([object_of(one) for one in answer.objects], answer.marker)

    async def _scanned_mapping_page(
        self, request: messages.ScanMappingsRequest, deadline: float
    ) -> ScannedMappingPage:
        answer: messages.ScanMappingsResponse = await self._caller.read("ScanMappings", request, deadline)
        self._check_scanned(request, len(answer.entries), answer.marker)
        # "from" is a word of Python.
        entries = [ScannedMapping(getattr(one, "from"), one.to, one.sequence) for one in answer.entries]
        last = (request.range.start, -1)
        for entry in entries:
            if (entry.source, entry.target) <= last or not self._ends_behind(request.range, entry.source):
                raise self._caller.bad("answered a scan with entries that are not in its range or order")
            last = (entry.source, entry.target)
        return ScannedMappingPage(entries, answer.marker)

    @staticmethod
    def _ends_behind(ids: messages.IdRange, one: int) -> bool:
        return not ids.HasField("end") or one < ids.end

    def _check_scanned(
        self, request: messages.ScanObjectsRequest | messages.ScanMappingsRequest, count: int, marker: bytes
    ) -> None:
        if count > request.limit:
            raise self._caller.bad("answered more entries than a page may have")
        if marker and marker == request.marker:
            raise self._caller.bad("answered a page that does not go on")
