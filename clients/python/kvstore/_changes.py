"""The changes of a dataset."""

from collections.abc import AsyncGenerator, Callable

import grpc

from kvstore import _checks
from kvstore._caller import Calling
from kvstore._errors import BadAnswer
from kvstore._types import Cell, Change, ChangePage, Consumer, MappingChange, ObjectChange, RowChange, Text
from kvstore.v1 import kvstore_pb2 as messages


def _change(message: messages.Change, bad: Callable[[str], BadAnswer]) -> Change:
    kind = message.WhichOneof("what")
    what: RowChange | ObjectChange | MappingChange
    if kind == "column":
        column = message.column
        what = RowChange(
            column.row,
            column.column if column.HasField("column") else None,
            [Cell(cell.timestamp, cell.value) for cell in column.cells],
            column.more,
        )
    elif kind == "object":
        found = message.object
        what = ObjectChange(found.id, found.timestamp, found.data if found.HasField("data") else None)
    elif kind == "mapping":
        entry = message.mapping
        what = MappingChange(
            getattr(entry, "from"), entry.to, entry.sequence if entry.HasField("sequence") else None
        )
    else:
        raise bad("answered with an empty change")
    return Change(message.token, message.at_ms, what)


def _page(
    message: messages.ReadChangesResponse | messages.WatchChangesResponse, bad: Callable[[str], BadAnswer]
) -> ChangePage:
    if not message.token:
        raise bad("answered with changes without a token")
    return ChangePage([_change(change, bad) for change in message.changes], message.token, message.complete_until_ms)


class Changes(Calling):
    def changes(
        self, name: str, token: Text = "begin", *, timeout_s: float | None = None
    ) -> AsyncGenerator[ChangePage, None]:
        """Follows a dataset: yields a ChangePage as often as something was written, and about once a second, without
        changes, while nothing is. A page says what writes have touched, as it is now; every acknowledged write is told
        at least once, and those of a column, object or entry in order.

        token      of a Change or a ChangePage, to go on after it; "begin": with the oldest change that is kept; "now":
                   with what is written from now on.
        timeout_s  how long to follow, then DeadlineExceeded; None: until the caller ends it.

        It goes on by itself when it loses its server; after 12 attempts that brought nothing it gives up: Unavailable.
        FailedPrecondition if the dataset keeps no changes (keep_changes_ms). OutOfRange if some after the token are
        not kept any more: read the whole dataset again. To end it close it (`pages.close()`, asyncio's
        `await pages.aclose()`), or let go of it.
        """
        request = messages.WatchChangesRequest(
            dataset=_checks.text("name", name), token=_checks.octets("token", token)
        )
        return self._watch(request, self._caller.deadline_if_given(timeout_s))

    async def _watch(
        self, request: messages.WatchChangesRequest, deadline: float | None
    ) -> AsyncGenerator[ChangePage, None]:
        failures = 0
        while True:
            stream = self._caller.stream("WatchChanges", request, deadline)
            try:
                while (answer := await stream.read()) is not None:
                    page = _page(answer, self._caller.bad)
                    failures, request.token = 0, page.token
                    yield page
                raise self._caller.bad("ended a stream of changes")
            except grpc.RpcError as error:
                await self._caller.outlast(error, failures, deadline)
                failures += 1
            finally:
                stream.cancel()

    async def read_changes(
        self,
        name: str,
        token: Text = "begin",
        *,
        limit: int = 1000,
        timeout_s: float | None = None,
    ) -> ChangePage:
        """Returns a ChangePage: what writes have touched after a token, as it is now. Every acknowledged write is told
        at least once, and those of a column, object or entry in order. Does not wait: the page is empty if there is
        nothing yet.

        token  as for changes().
        limit  changes of the page, 1..10,000.

        FailedPrecondition if the dataset keeps no changes (keep_changes_ms). OutOfRange if some after the token are
        not kept any more: read the whole dataset again.
        """
        request = messages.ReadChangesRequest(
            dataset=_checks.text("name", name),
            token=_checks.octets("token", token),
            limit=_checks.number("limit", limit, 1, _checks.MAX_ENTRIES),
        )
        deadline = self._caller.deadline(timeout_s)
        answer: messages.ReadChangesResponse = await self._caller.read("ReadChanges", request, deadline)
        if len(answer.changes) > limit:
            raise self._caller.bad("answered with more changes than were asked for")
        return _page(answer, self._caller.bad)

    async def set_consumer(self, name: str, consumer: str, token: Text, *, timeout_s: float | None = None) -> None:
        """Notes how far a follower has come, under a name: what is after the token is kept until it has passed, also if
        it is older than keep_changes_ms, as long as the dataset has no more than 4 GiB of changes.

        name      the dataset.
        consumer  1 to 64 letters, digits, "_", "-", ".".
        token     as for changes().

        OutOfRange as for read_changes. ResourceExhausted: the dataset has 100 consumers.
        """
        request = messages.SetConsumerRequest(
            dataset=_checks.text("name", name),
            name=_checks.text("consumer", consumer),
            token=_checks.octets("token", token),
        )
        await self._caller.write("SetConsumer", request, self._caller.deadline(timeout_s))

    async def list_consumers(self, name: str, *, timeout_s: float | None = None) -> list[Consumer]:
        """Returns the Consumers of a dataset, by name."""
        request = messages.ListConsumersRequest(dataset=_checks.text("name", name))
        deadline = self._caller.deadline(timeout_s)
        answer: messages.ListConsumersResponse = await self._caller.read("ListConsumers", request, deadline)
        return [Consumer(one.name, one.token, one.set_ms, one.lag_ms) for one in answer.consumers]

    async def drop_consumer(self, name: str, consumer: str, *, timeout_s: float | None = None) -> None:
        """Forgets a consumer, so that nothing is kept for it. NotFound if there is none of that name."""
        request = messages.DropConsumerRequest(
            dataset=_checks.text("name", name), name=_checks.text("consumer", consumer)
        )
        await self._caller.write("DropConsumer", request, self._caller.deadline(timeout_s))
