"""Calls on mappings: for an ID, an ordered list of IDs."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from functools import partial
from typing import Protocol, TypeVar

from kvstore import _checks
from kvstore._batches import outcome_of
from kvstore._caller import Calling
from kvstore._errors import Error, NotFound, entry_error
from kvstore._objects import object_of
from kvstore._types import JoinedObject, JoinedPage, MappingEntry, MappingPage, Object, Text
from kvstore.v1 import kvstore_pb2 as messages

# Entries in a page where all pages are read.
_PAGE_ENTRIES = 1000


T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Request = TypeVar("Request", messages.ListMappingRequest, messages.ListObjectsRequest)


class _Page(Protocol[T_co]):
    @property
    def entries(self) -> Iterable[T_co]: ...

    @property
    def marker(self) -> bytes: ...


def _request(
    kind: type[Request],
    dataset: str,
    source: int,
    descending: bool,
    limit: int,
    offset: int = 0,
    max_bytes: int | None = None,
    marker: Text = b"",
) -> Request:
    options = messages.ListingOptions(
        descending=_checks.flag("descending", descending),
        limit=_checks.number("limit", limit, 1, _checks.MAX_ENTRIES),
        offset=_checks.number("offset", offset, 0, _checks.MAX_UINT64),
        max_bytes=_checks.page_bytes(max_bytes),
        marker=_checks.octets("marker", marker),
    )
    return kind(
        dataset=_checks.text("dataset", dataset), options=options, **{"from": _checks.object_id("source", source)}
    )


def _pair(kind: Callable[..., T], dataset: str, source: int, target: int, **more: int | None) -> T:
    ids = {"from": _checks.object_id("source", source), "to": _checks.object_id("target", target)}
    return kind(dataset=_checks.text("dataset", dataset), **ids, **more)


class Mappings(Calling):
    async def add_mapping(
        self,
        dataset: str,
        source: int,
        target: int,
        sequence: int | None = None,
        *,
        timeout_s: float | None = None,
    ) -> None:
        """Adds (source, target); adding it again changes its sequence.

        sequence  its place in the order, below 2^63; None: the time in ms.
        """
        place = None if sequence is None else _checks.timestamp("sequence", sequence)
        request = _pair(messages.AddMappingRequest, dataset, source, target, sequence=place)
        await self._caller.write("AddMapping", request, self._caller.deadline(timeout_s))

    async def remove_mapping(
        self, dataset: str, source: int, target: int, *, timeout_s: float | None = None
    ) -> bool:
        """Removes (source, target). Returns whether there was such an entry."""
        request = _pair(messages.RemoveMappingRequest, dataset, source, target)
        deadline = self._caller.deadline(timeout_s)
        answer: messages.RemoveMappingResponse = await self._caller.write("RemoveMapping", request, deadline)
        return answer.removed

    async def list_mapping_page(
        self,
        dataset: str,
        source: int,
        descending: bool = False,
        *,
        limit: int = 100,
        offset: int = 0,
        marker: Text = b"",
        timeout_s: float | None = None,
    ) -> MappingPage:
        """Returns one page of the entries of `source`, ordered by (sequence, to), as a MappingPage.

        limit   entries in the page, 1..10,000.
        offset  entries to skip, which costs a step each; page by marker instead.
        marker  MappingPage.marker of the previous page, in the same order. Not together with an offset.
        """
        request = _request(messages.ListMappingRequest, dataset, source, descending, limit, offset, None, marker)
        return await self._mapping_page(request, self._caller.deadline(timeout_s))

    def list_mapping(
        self, dataset: str, source: int, descending: bool = False, *, timeout_s: float | None = None
    ) -> AsyncGenerator[MappingEntry, None]:
        """Yields MappingEntry(to, sequence) for all entries of `source` in order, read page by page.

        timeout_s  covers all pages; None: the client's timeout applies to each page.
        """
        request = _request(messages.ListMappingRequest, dataset, source, descending, _PAGE_ENTRIES)
        return self._all_pages(self._mapping_page, request, self._caller.deadlines(timeout_s))

    async def count_mapping(self, dataset: str, source: int, *, timeout_s: float | None = None) -> int:
        """Returns how many entries `source` has."""
        request = messages.CountMappingRequest(
            dataset=_checks.text("dataset", dataset), **{"from": _checks.object_id("source", source)}
        )
        deadline = self._caller.deadline(timeout_s)
        answer: messages.CountMappingResponse = await self._caller.read("CountMapping", request, deadline)
        return answer.count

    async def list_objects_page(
        self,
        dataset: str,
        source: int,
        descending: bool = False,
        *,
        limit: int = 100,
        offset: int = 0,
        max_bytes: int | None = None,
        marker: Text = b"",
        return_exceptions: bool = False,
        timeout_s: float | None = None,
    ) -> JoinedPage:
        """Joins: returns one page of the mapping with the object behind each entry, as a JoinedPage.

        max_bytes          bytes of objects in a page, at most 64 MiB. A server sends at most 4 MiB.
        return_exceptions  False: if an object could not be read, this raises a BatchError, whose `results` is the list
                           of the entries' objects. True: JoinedObject.object is an Error there. In both cases None
                           means that there is no such object.

        The other arguments are those of list_mapping_page. A page may have fewer than `limit` entries: as long as there
        is a marker, more may follow.
        """
        request = _request(
            messages.ListObjectsRequest, dataset, source, descending, limit, offset, max_bytes, marker
        )
        return await self._joined_page(return_exceptions, request, self._caller.deadline(timeout_s))

    def list_objects(
        self,
        dataset: str,
        source: int,
        descending: bool = False,
        *,
        return_exceptions: bool = False,
        timeout_s: float | None = None,
    ) -> AsyncGenerator[JoinedObject, None]:
        """Yields a JoinedObject for all entries of `source` in order, read page by page. Arguments as for
        list_objects_page and list_mapping.
        """
        request = _request(messages.ListObjectsRequest, dataset, source, descending, _PAGE_ENTRIES)
        read = partial(self._joined_page, return_exceptions)
        return self._all_pages(read, request, self._caller.deadlines(timeout_s))

    # ---- pages ----

    @staticmethod
    async def _all_pages(
        read: Callable[[Request, float], Awaitable[_Page[T]]], request: Request, deadline_of_page: Callable[[], float]
    ) -> AsyncGenerator[T, None]:
        while True:
            page = await read(request, deadline_of_page())
            for entry in page.entries:
                yield entry
            if not page.marker:
                return
            request.options.marker = page.marker

    def _check_page(self, request: Request, count: int, marker: bytes) -> None:
        if count > request.options.limit:
            raise self._caller.bad("answered more entries than a page may have")
        if marker and (count == 0 or marker == request.options.marker):
            raise self._caller.bad("answered a page that does not go on")

    async def _mapping_page(self, request: messages.ListMappingRequest, deadline: float) -> MappingPage:
        answer: messages.ListMappingResponse = await self._caller.read("ListMapping", request, deadline)
        self._check_page(request, len(answer.entries), answer.marker)
        return MappingPage([MappingEntry(one.to, one.sequence) for one in answer.entries], answer.marker)

    async def _joined_page(
        self, return_exceptions: bool, request: messages.ListObjectsRequest, deadline: float
    ) -> JoinedPage:
        answer: messages.ListObjectsResponse = await self._caller.read("ListObjects", request, deadline)
        self._check_page(request, len(answer.results), answer.marker)
        objects: list[Object | Error | None] = []
        for result in answer.results:
            if result.HasField("error"):
                error = entry_error(result.error)
                objects.append(None if isinstance(error, NotFound) else error)
            elif result.object.id != result.entry.to:
                raise self._caller.bad("answered with another object")
            else:
                objects.append(object_of(result.object))
        outcome_of(objects, return_exceptions)
        entries = [
            JoinedObject(result.entry.to, result.entry.sequence, found)
            for result, found in zip(answer.results, objects)
        ]
        return JoinedPage(entries, answer.marker)
