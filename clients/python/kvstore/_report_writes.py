"""Writing points: a stream of batches, of which two are in flight at a time."""

from collections import deque
from collections.abc import Iterable, Iterator

import grpc

from kvstore import _checks
from kvstore._caller import MOST_FAILURES, REFUSED, Caller
from kvstore._errors import BatchError, Error, entry_error
from kvstore._report_points import batches_of
from kvstore._report_types import Point
from kvstore._reporting import Reporting
from kvstore._wire import Stream
from kvstore.v1 import reports_pb2 as messages

_BATCHES_AHEAD = 2

# The codes with which a batch is refused as it is. With others some of its rows may have been written.
_NOTHING_WRITTEN = {
    "INVALID_ARGUMENT",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "FAILED_PRECONDITION",
    "PERMISSION_DENIED",
    "UNAUTHENTICATED",
    "UNIMPLEMENTED",
}

# A message, and how many points it has.
_Batch = tuple[messages.WritePointsRequest, int]


class _Load:
    """One write: the batches that are not sent yet, those that wait for an answer, and what became of the others.

    named    whether the batches have IDs, so that they can be sent again.
    results  for each batch that was sent how many points it has, or its Error. A last Error says why no more were sent.
    """

    def __init__(self, caller: Caller, ready: Iterable[_Batch], more: Iterator[_Batch], named: bool):
        self._caller = caller
        self._ready = deque(ready)
        self._more = more
        self._named = named
        self._waiting: deque[_Batch] = deque()
        self._failed = False  # Whether a batch was answered with an error.
        self._wrong: Error | None = None  # Why a batch could not be made.
        self.results: list[int | Error] = []

    async def run(self, deadline: float | None) -> None:
        """Sends all batches, or as many as it can until one fails."""
        await self._repeat(deadline)
        if self._wrong is not None:
            self.results.append(self._wrong)

    async def _repeat(self, deadline: float | None) -> None:
        failures = 0
        in_doubt = False
        while True:
            before = len(self.results)
            try:
                return await self._once(deadline)
            except Error as over:
                why, told = None, over
            except grpc.RpcError as error:
                why, told = self._caller.judge(error, writes=True)
                told.__cause__ = error
            in_doubt = told.in_doubt = in_doubt or told.in_doubt
            moved = len(self.results) > before
            failures = 0 if moved else failures
            again = why is not None and not self._failed and (self._named or (why == REFUSED and not moved))
            over_again = deadline is None and failures == MOST_FAILURES
            if not again or over_again or not await self._caller.pause(why, failures, deadline):
                self.results.extend(told for _ in range(max(1, len(self._waiting))))
                return
            failures += 1
            self._ready.extendleft(reversed(self._waiting))
            self._waiting.clear()

    async def _once(self, deadline: float | None) -> None:
        stream = self._caller.stream("WritePoints", None, deadline)
        try:
            for _ in range(_BATCHES_AHEAD):
                self._send_next(stream)
            while self._waiting:
                answer: messages.WritePointsResponse | None = await stream.read()
                if answer is None:
                    raise self._caller.bad("answered fewer batches than were sent", in_doubt=True)
                self._take(answer)
                self._send_next(stream)
        finally:
            stream.cancel()

    def _send_next(self, stream: Stream) -> None:
        batch = self._next()
        if batch is None:
            stream.send(None)
            return
        self._waiting.append(batch)
        stream.send(batch[0])

    def _next(self) -> _Batch | None:
        if self._failed:
            return None
        if self._ready:
            return self._ready.popleft()
        if self._wrong is not None:
            return None
        try:
            return next(self._more, None)
        except Error as wrong:
            # Batches before it were sent, and are waited for.
            wrong.in_doubt = True
            self._wrong = wrong
            return None

    def _take(self, answer: messages.WritePointsResponse) -> None:
        _, points = self._waiting[0]
        if answer.HasField("error"):
            self._failed = True
            told = entry_error(answer.error)
            told.in_doubt = told.in_doubt or told.code not in _NOTHING_WRITTEN
            self.results.append(told)
        elif answer.written != points:
            raise self._caller.bad("answered with another number of points than were sent", in_doubt=True)
        else:
            self.results.append(points)
        self._waiting.popleft()


class ReportWrites(Reporting):
    async def write(
        self,
        report: str,
        points: Iterable[Point],
        *,
        batch: str = "",
        add: bool = False,
        timeout_s: float | None = None,
    ) -> int:
        """Writes Points. Returns how many there were.

        points     any iterable, also a generator of more than fits into memory: they are sent in batches of about
                   50,000 points or 4 MiB, two of which are in flight at a time. Of points with the same series and
                   time the last one counts, or with `add` their sum.
        batch      makes the write safe to repeat for 30 days: with the same ID and the same points in the same order it
                   happens once, however often it is tried. With other points it is FailedPrecondition. Without one, each
                   call is a write of its own.
        add        add the values to those that are there (sets and distributions: unite them) rather than replace them.
        timeout_s  None: the client's timeout, but no limit for more than one batch.

        Readers see the points of a series and a period at once, others at different moments. A write with an ID that
        loses its server is sent again from the first batch without an answer. Without an ID it is sent again only if
        the server turned it away as a whole; otherwise it is in doubt (Error.in_doubt).

        If there is more than one batch, an error is a BatchError, whose `results` has for each batch that was sent the
        number of its points or an Error; no more are sent then. Repeat the whole write under its ID.
        """
        batches = batches_of(
            self._dataset,
            _checks.text("report", report),
            points,
            _checks.text("batch", batch),
            _checks.flag("add", add),
        )
        ready = [one for one in (next(batches, None), next(batches, None)) if one is not None]
        if not ready:
            return 0
        if len(ready) == 1:
            deadline: float | None = self._caller.deadline(timeout_s)
        else:
            deadline = self._caller.deadline_if_given(timeout_s)
        load = _Load(self._caller, ready, batches, named=batch != "")
        await load.run(deadline)
        errors = [result for result in load.results if isinstance(result, Error)]
        if errors:
            raise errors[0] if len(ready) == 1 else BatchError(load.results)
        return sum(result for result in load.results if isinstance(result, int))
