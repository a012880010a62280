"""Calls on objects: JSON documents under 64-bit IDs."""

from collections.abc import Callable, Iterable
from typing import Any, Literal, overload

from kvstore import _checks
from kvstore._batches import Bytes, batch_full, filled, made, outcome_of
from kvstore._caller import Calling
from kvstore._errors import Error, FailedPrecondition, InvalidArgument, NotFound, entry_error
from kvstore._types import Object, Text
from kvstore.v1 import kvstore_pb2 as messages


def object_of(message: messages.Object) -> Object:
    return Object(message.id, message.data, message.timestamp)


class Objects(Calling):
    async def create_object(
        self,
        dataset: str,
        data: Text,
        near: int | None = None,
        shard: int | None = None,
        *,
        request_id: Text | None = None,
        first_attempt: bool = False,
        timeout_s: float | None = None,
    ) -> int:
        """Stores a JSON object under a new ID, and returns the ID. The client's own retries never make a second object.

        data           the text of a JSON object, at most 4 MiB.
        near           store it on the shard of this ID, so that objects that are read together are stored together.
        shard          store it on this shard, 0..65535. At most one of these two; with neither, on any shard.
        request_id     16 random bytes, for callers who retry the call themselves: for a day the same request_id in the
                       same dataset, with the same near and shard, gives the same object.
        first_attempt  this request_id was never tried before, which saves a search for an object that it has made.
        """
        if near is not None and shard is not None:
            raise InvalidArgument("near, shard: give one of them, not both")
        request = messages.CreateObjectRequest(
            dataset=_checks.text("dataset", dataset),
            data=_checks.document("data", data),
            near=None if near is None else _checks.object_id("near", near),
            shard=None if shard is None else _checks.number("shard", shard, 0, 65535),
        )
        if request_id is not None:
            request.attempt.request_id = _checks.octets("request_id", request_id, 16, least=16)
        request.attempt.first = request_id is None or _checks.flag("first_attempt", first_attempt)
        deadline = self._caller.deadline(timeout_s)
        answer: messages.CreateObjectResponse = await self._caller.write("CreateObject", request, deadline)
        return answer.id

    async def get_object(
        self, dataset: str, object_id: int, *, include_inactive: bool = False, timeout_s: float | None = None
    ) -> Object:
        """The Object. NotFound if there is none, or only one that was deleted softly and include_inactive is not
        set."""
        request = messages.GetObjectRequest(
            dataset=_checks.text("dataset", dataset),
            id=_checks.object_id("object_id", object_id),
            include_inactive=_checks.flag("include_inactive", include_inactive),
        )
        deadline = self._caller.deadline(timeout_s)
        answer: messages.GetObjectResponse = await self._caller.read("GetObject", request, deadline)
        if answer.object.id != object_id:
            raise self._caller.bad("answered with another object")
        return object_of(answer.object)

    @overload
    async def get_objects(
        self,
        dataset: str,
        ids: Iterable[int],
        *,
        include_inactive: bool = False,
        return_exceptions: Literal[False] = False,
        timeout_s: float | None = None,
    ) -> list[Object | None]: ...

    @overload
    async def get_objects(
        self,
        dataset: str,
        ids: Iterable[int],
        *,
        include_inactive: bool = False,
        return_exceptions: Literal[True],
        timeout_s: float | None = None,
    ) -> list[Object | None | Error]: ...

    async def get_objects(
        self,
        dataset: str,
        ids: Iterable[int],
        *,
        include_inactive: bool = False,
        return_exceptions: bool = False,
        timeout_s: float | None = None,
    ) -> list[Any]:
        """The Objects in the order asked; None for one that there is not (or was deleted softly), and for nothing else.

        ids                1 to 10,000.
        return_exceptions  False: if an object could not be read this raises a BatchError, whose `results` is the list
                           with an Error in its place. True: that list is returned.

        The answers have about 64 MiB together; later entries are ResourceExhausted, to be asked for in another batch.
        """
        dataset = _checks.text("dataset", dataset)
        inactive = _checks.flag("include_inactive", include_inactive)
        deadline = self._caller.deadline(timeout_s)
        good, results = made(
            _checks.listed("ids", ids, _checks.MAX_BATCH), lambda one: _checks.object_id("ids", one)
        )
        found: list[Object | Error] = []
        size = Bytes()

        def add(result: messages.GetObjectsResponse.Result) -> Object | Error | None:
            if size.full():
                return None
            if result.HasField("error"):
                return entry_error(result.error)
            if result.object.id != good[len(found)]:
                raise self._caller.bad("answered with another object")
            size.add(len(result.object.data))
            return object_of(result.object)

        if good:
            await self._caller.collect(
                "GetObjects",
                lambda: messages.GetObjectsRequest(
                    dataset=dataset, ids=good[len(found) :], include_inactive=inactive
                ),
                found,
                len(good),
                add,
                deadline,
            )
        found.extend(batch_full() for _ in range(len(good) - len(found)))
        all_of_them = [None if isinstance(one, NotFound) else one for one in filled(results, found)]
        return outcome_of(all_of_them, return_exceptions)

    async def update_object(
        self,
        dataset: str,
        object_id: int,
        merge_patch: Text | None = None,
        *,
        data: Text | None = None,
        expected_timestamp: int | None = None,
        include_inactive: bool = False,
        timeout_s: float | None = None,
    ) -> Object:
        """Changes an object in one step; the Object as written.

        merge_patch         a JSON merge patch (RFC 7396), as text; or, in its place:
        data                the whole new document, as text, with expected_timestamp: else it would undo what others
                            wrote.
        expected_timestamp  only if the object's timestamp is still this one, else FailedPrecondition.
        include_inactive    also an object that was deleted softly, to bring it back, say.
        """
        if (merge_patch is None) == (data is None):
            raise InvalidArgument("merge_patch, data: give one of them")
        if data is not None and expected_timestamp is None:
            raise InvalidArgument("data: is only with expected_timestamp; transform_object reads, changes and writes")
        request = messages.UpdateObjectRequest(
            dataset=_checks.text("dataset", dataset),
            id=_checks.object_id("object_id", object_id),
            include_inactive=_checks.flag("include_inactive", include_inactive),
        )
        if merge_patch is not None:
            request.merge_patch = _checks.document("merge_patch", merge_patch)
        if data is not None:
            request.data = _checks.document("data", data)
        if expected_timestamp is not None:
            request.expected_timestamp = _checks.timestamp("expected_timestamp", expected_timestamp)
        return await self._update(request, self._caller.deadline(timeout_s))

    async def transform_object(
        self,
        dataset: str,
        object_id: int,
        transform: Callable[[bytes], Text],
        *,
        expected_timestamp: int | None = None,
        include_inactive: bool = False,
        timeout_s: float | None = None,
    ) -> Object:
        """Reads an object, lets a function change it, and writes it if nobody else has meanwhile, else again; the
        Object as written.

        transform           takes the object's JSON text as bytes and returns the new one, as text. May be called
                            several times. An asyncio client calls it, too; it does not await what it gives.
        expected_timestamp  only if the object's timestamp is this one, else FailedPrecondition.
        include_inactive    also an object that was deleted softly.
        """
        deadline = self._caller.deadline(timeout_s)
        if expected_timestamp is not None:
            _checks.timestamp("expected_timestamp", expected_timestamp)
        count = 0
        while True:
            self._caller.check(deadline)
            found = await self.get_object(
                dataset, object_id, include_inactive=include_inactive, timeout_s=self._caller.left(deadline)
            )
            if expected_timestamp is not None and found.timestamp != expected_timestamp:
                raise FailedPrecondition(f"expected_timestamp: the object's timestamp is {found.timestamp}")
            request = messages.UpdateObjectRequest(
                dataset=dataset,
                id=object_id,
                data=_checks.document("transform", transform(found.data)),
                expected_timestamp=found.timestamp,
                include_inactive=include_inactive,
            )
            try:
                return await self._update(request, deadline)
            except FailedPrecondition as error:
                # Somebody else has changed the object meanwhile.
                lost = expected_timestamp is None and not error.in_doubt
                if not lost or not await self._caller.pause(None, count, deadline):
                    raise
                count += 1

    async def delete_object(
        self, dataset: str, object_id: int, hard: bool = False, *, timeout_s: float | None = None
    ) -> None:
        """Softly: sets "active": false, which hides it from reads; no error if it was so already. hard: removes it for
        good. Its ID is never used again. NotFound if there is none.
        """
        request = messages.DeleteObjectRequest(
            dataset=_checks.text("dataset", dataset),
            id=_checks.object_id("object_id", object_id),
            hard=_checks.flag("hard", hard),
        )
        await self._caller.write("DeleteObject", request, self._caller.deadline(timeout_s))

    async def _update(self, request: messages.UpdateObjectRequest, deadline: float) -> Object:
        answer: messages.UpdateObjectResponse = await self._caller.write("UpdateObject", request, deadline)
        if answer.object.id != request.id:
            raise self._caller.bad("answered with another object", in_doubt=True)
        return object_of(answer.object)
