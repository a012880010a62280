"""Calls on mappings: for an ID, an ordered list of IDs."""

from kvstore import _checks
from kvstore._batches import outcome_of
from kvstore._errors import NotFound, entry_error
from kvstore._objects import object_of
from kvstore._types import JoinedObject, JoinedPage, MappingEntry, MappingPage
from kvstore.v1 import kvstore_pb2 as messages

# Entries of a page where all pages are read.
_PAGE_ENTRIES = 1000


def _request(kind, dataset, source, descending, limit, offset=0, max_bytes=None, marker=b""):
    """A ListMappingRequest or a ListObjectsRequest."""
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


def _pair(kind, dataset, source, target, **more):
    ids = {"from": _checks.object_id("source", source), "to": _checks.object_id("target", target)}
    return kind(dataset=_checks.text("dataset", dataset), **ids, **more)


class Mappings:
    def add_mapping(self, dataset, source, target, sequence=None, *, timeout_s=None):
        """Adds (source, target); adding it again changes its sequence.

        sequence  its place, below 2^63; None: now, in ms.
        """
        place = None if sequence is None else _checks.timestamp("sequence", sequence)
        request = _pair(messages.AddMappingRequest, dataset, source, target, sequence=place)
        self._caller.write("AddMapping", request, self._caller.deadline(timeout_s))

    def remove_mapping(self, dataset, source, target, *, timeout_s=None):
        """Removes (source, target). Whether there was such an entry."""
        request = _pair(messages.RemoveMappingRequest, dataset, source, target)
        return self._caller.write("RemoveMapping", request, self._caller.deadline(timeout_s)).removed

    def list_mapping_page(
        self, dataset, source, descending=False, *, limit=100, offset=0, marker=b"", timeout_s=None
    ):
        """One page of the entries of `source` by (sequence, to): a MappingPage.

        limit   entries of the page, 1..10,000.
        offset  entries to skip; costs a step each: page by marker instead.
        marker  MappingPage.marker of the page before, in the same order. Not with an offset.
        """
        request = _request(messages.ListMappingRequest, dataset, source, descending, limit, offset, None, marker)
        return self._mapping_page(request, self._caller.deadline(timeout_s))

    def list_mapping(self, dataset, source, descending=False, *, timeout_s=None):
        """Yields MappingEntry(to, sequence) for all entries of `source` in order, read page by page.

        timeout_s  for all of it; None: each page may take as long as the client was told.
        """
        request = _request(messages.ListMappingRequest, dataset, source, descending, _PAGE_ENTRIES)
        return self._all_pages(self._mapping_page, request, self._caller.deadlines(timeout_s))

    def count_mapping(self, dataset, source, *, timeout_s=None):
        """How many entries `source` has."""
        request = messages.CountMappingRequest(
            dataset=_checks.text("dataset", dataset), **{"from": _checks.object_id("source", source)}
        )
        return self._caller.read("CountMapping", request, self._caller.deadline(timeout_s)).count

    def list_objects_page(
        self,
        dataset,
        source,
        descending=False,
        *,
        limit=100,
        offset=0,
        max_bytes=None,
        marker=b"",
        return_exceptions=False,
        timeout_s=None,
    ):
        """The join: one page of the mapping with the object behind each entry, a JoinedPage.

        max_bytes          bytes of objects of a page, at most 64 MiB. A server sends at most 4 MiB.
        return_exceptions  False: if an object could not be read this raises a BatchError, whose `results` is the list
                           of entries' objects. True: JoinedObject.object is an Error there. None is always: there is
                           none.

        The other arguments as for list_mapping_page. A page may have less than `limit` entries: as long as there is a
        marker, more may follow.
        """
        request = _request(
            messages.ListObjectsRequest, dataset, source, descending, limit, offset, max_bytes, marker
        )
        return self._joined_page(request, self._caller.deadline(timeout_s), return_exceptions)

    def list_objects(self, dataset, source, descending=False, *, return_exceptions=False, timeout_s=None):
        """Yields a JoinedObject for all entries of `source` in order, read page by page. Arguments as for
        list_objects_page and list_mapping.
        """
        request = _request(messages.ListObjectsRequest, dataset, source, descending, _PAGE_ENTRIES)
        return self._all_pages(
            lambda *page: self._joined_page(*page, return_exceptions), request, self._caller.deadlines(timeout_s)
        )

    # ---- pages ----

    @staticmethod
    def _all_pages(read, request, deadline_of_page):
        while True:
            page = read(request, deadline_of_page())
            yield from page.entries
            if not page.marker:
                return
            request.options.marker = page.marker

    def _check_page(self, request, count, marker):
        if count > request.options.limit:
            raise self._caller.bad("answered more entries than a page may have")
        if marker and (count == 0 or marker == request.options.marker):
            raise self._caller.bad("answered a page that does not go on")

    def _mapping_page(self, request, deadline):
        answer = self._caller.read("ListMapping", request, deadline)
        self._check_page(request, len(answer.entries), answer.marker)
        return MappingPage([MappingEntry(one.to, one.sequence) for one in answer.entries], answer.marker)

    def _joined_page(self, request, deadline, return_exceptions):
        answer = self._caller.read("ListObjects", request, deadline)
        self._check_page(request, len(answer.results), answer.marker)
        objects = []
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
